"""Exact leave-one-out scores of the labelled rows, for any α, without refitting.

F is linear in Y and unlabelled rows are zero in Y, so deleting the label of row i takes its own
contribution away and changes nothing else. With Ē = F̄_L·U (ℓ × r) the rotated features of the
labelled rows and g the gain of :mod:`biglp._propagate.spectrum`,

    f_i without its own label = Ē_i·diag(g)·UᵀB − (Ē_i·diag(g)·Ē_iᵀ)·y_i,

and the class masses lose what row i brought:  (1 − α) + t·U·diag(g)·Ē_iᵀ  of class y_i.
O(ℓ·r·c) for each α.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biglp._propagate.class_balance import total_mass
from biglp._propagate.spectrum import Spectrum


@dataclass(frozen=True)
class LabelledRows:
    """Normalised features of (some of) the labelled rows.

    Attributes
    ----------
    features : ndarray of shape (l, r)
    codes : ndarray of shape (l,)
    """

    features: np.ndarray
    codes: np.ndarray


def leave_one_out(
    spectrum: Spectrum, labelled: LabelledRows, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of each labelled row without its own label, and the class masses without it.

    Returns
    -------
    scores : ndarray of shape (l, c)
    masses : ndarray of shape (l, c)
    """
    rotated = labelled.features @ spectrum.vectors
    gain = spectrum.gain(alpha)
    own = (rotated * rotated) @ gain
    scores = rotated @ (gain[:, None] * spectrum.rotated_targets)
    every = np.arange(len(labelled.codes))
    scores[every, labelled.codes] -= own
    counts = np.tile(spectrum.sums.counts, (len(every), 1))
    counts[every, labelled.codes] -= 1
    from_graph = np.tile(spectrum.sums.totals @ spectrum.coefficients(alpha), (len(every), 1))
    from_graph[every, labelled.codes] -= rotated @ (gain * spectrum.rotated_totals)
    return scores, total_mass(counts, from_graph, alpha)
