"""Exact leave-one-out scores of the labelled rows, for any α, without refitting.

F is linear in Y and unlabelled rows are zero in Y, so deleting the label of row i takes its own
contribution away and changes nothing else. With F̄_L the features of the labelled rows (ℓ × r) and
K = α(1−α)(I − αH)⁻¹ of :mod:`biglp._propagate.spectrum`,

    f_i without its own label = F̄_i·K·B − (F̄_i·K·F̄_iᵀ)·y_i,

and the class masses lose what row i brought:  (1 − α) + t·K·F̄_iᵀ  of class y_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._propagate.class_balance import total_mass
from biglp._propagate.spectrum import Graph


@dataclass(frozen=True)
class LabelledRows:
    """Normalised features of (some of) the labelled rows.

    Attributes
    ----------
    features : ndarray or CSR array of shape (l, r)
    codes : ndarray of shape (l,)
    """

    features: Any
    codes: np.ndarray


def leave_one_out(
    spectrum: Graph, labelled: LabelledRows, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of each labelled row without its own label, and the class masses without it.

    Returns
    -------
    scores : ndarray of shape (l, c)
    masses : ndarray of shape (l, c)
    """
    coefficients = spectrum.coefficients(alpha)
    scores = labelled.features @ coefficients
    every = np.arange(len(labelled.codes))
    scores[every, labelled.codes] -= spectrum.returns(labelled.features, alpha)
    counts = np.tile(spectrum.sums.counts, (len(every), 1))
    counts[every, labelled.codes] -= 1
    from_graph = np.tile(spectrum.sums.totals @ coefficients, (len(every), 1))
    from_graph[every, labelled.codes] -= labelled.features @ spectrum.towards_all(alpha)
    return scores, total_mass(counts, from_graph, alpha)
