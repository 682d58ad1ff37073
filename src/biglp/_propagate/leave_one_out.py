"""Exact leave-one-out scores of the labelled rows, for any α, without refitting.

F is linear in Y and unlabelled rows are zero in Y, so deleting the label of row i takes its own
contribution away and changes nothing else. With Ē = F̄_L·U (ℓ × r) the rotated features of the
labelled rows and g the gain of :mod:`biglp._propagate.spectrum`,

    f_i without its own label = Ē_i·diag(g)·UᵀB − (Ē_i·diag(g)·Ē_iᵀ)·w_i·y_i,

and the class masses lose what row i brought:  ((1 − α) + t·U·diag(g)·Ē_iᵀ)·w_i·y_i.
O(ℓ·r·c) for each α. A label of weight w_i is left out as a whole.
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
    given : ndarray of shape (l, c), optional
        w·Y of these rows, where labels have weights or are distributions.
    """

    features: np.ndarray
    codes: np.ndarray
    given: np.ndarray | None = None

    def targets(self, n_classes: int) -> np.ndarray:
        """Rows of w·Y.  (l, c)."""
        return np.eye(n_classes)[self.codes] if self.given is None else self.given


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
    targets = labelled.targets(scores.shape[1])
    scores -= own[:, None] * targets
    counts = np.maximum(spectrum.sums.counts - targets, 0.0)  # weights need not cancel exactly
    brought = rotated @ (gain * spectrum.rotated_totals)
    from_graph = spectrum.sums.totals @ spectrum.coefficients(alpha) - brought[:, None] * targets
    return scores, total_mass(counts, from_graph, alpha)


def left_alone(counts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Labelled rows without which one of their classes would have no label.  (l, c) → (l,)."""
    return np.asarray(((targets > 0) & (counts - targets <= 1e-9 * counts)).any(axis=1))
