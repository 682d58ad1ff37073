"""Exact leave-one-out scores of the labelled rows, for any α, without refitting.

F is linear in Y and unlabelled rows are zero in Y, so deleting the label of row i takes its own
contribution away and changes nothing else. With F̄_L the features of the labelled rows (ℓ × r) and
K = α(1−α)(I − αH)⁻¹ of :mod:`biglp._algebra.systems`,

    f_i without its own label = F̄_i·K·B − (F̄_i·K·F̄_iᵀ)·w_i·y_i,

and the class masses lose what row i brought:  ((1 − α) + t·K·F̄_iᵀ)·w_i·y_i. A label of
weight w_i is left out as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._algebra.balance import total_mass
from biglp._algebra.systems import System


@dataclass(frozen=True)
class LabelledRows:
    """Normalised features of (some of) the labelled rows.

    Attributes
    ----------
    features : ndarray or CSR array of shape (l, r)
    codes : ndarray of shape (l,)
    given : ndarray of shape (l, c), optional
        w·Y of these rows, where labels have weights or are distributions.
    """

    features: Any
    codes: np.ndarray
    given: np.ndarray | None = None

    def targets(self, n_classes: int) -> np.ndarray:
        """Rows of w·Y.  (l, c)."""
        return np.eye(n_classes)[self.codes] if self.given is None else self.given


def leave_one_out(
    spectrum: System, labelled: LabelledRows, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of each labelled row without its own label, and the class masses without it.

    Returns
    -------
    scores : ndarray of shape (l, c)
    masses : ndarray of shape (l, c)
    """
    coefficients = spectrum.coefficients(alpha)
    scores = labelled.features @ coefficients
    targets = labelled.targets(scores.shape[1])
    scores -= spectrum.returns(labelled.features, alpha)[:, None] * targets
    counts = np.maximum(spectrum.sums.counts - targets, 0.0)  # weights need not cancel exactly
    brought = labelled.features @ spectrum.towards_all(alpha)
    from_graph = spectrum.sums.totals @ coefficients - brought[:, None] * targets
    return scores, total_mass(counts, from_graph, alpha)


def left_alone(counts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Labelled rows without which one of their classes would have no label.  (l, c) → (l,)."""
    return np.asarray(((targets > 0) & (counts - targets <= 1e-9 * counts)).any(axis=1))
