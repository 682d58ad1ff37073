"""What labels say of rows: label spreading and Poisson learning in r-space, and leave-one-out.

Notation of :mod:`.systems`: F̄ (n × r) normalised features, H = F̄ᵀF̄, B = F̄ᵀY, t = F̄ᵀ1, S = F̄F̄ᵀ.

Label spreading in closed form is C of a system, F = (1−α)Y + F̄·C. Here are the paper's iteration to
the same point, and leave-one-out: exact, for any α, without refitting. F is linear in Y and
unlabelled rows are zero in Y, so deleting the label of row i takes its own contribution away and
changes nothing else. With K = α(1−α)(I − αH)⁻¹

    f_i without its own label = F̄_i·K·B − (F̄_i·K·F̄_iᵀ)·w_i·y_i,

and the class masses lose what row i brought:  ((1 − α) + t·K·F̄_iᵀ)·w_i·y_i. A label of
weight w_i is left out as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.balance import class_mass
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import Spectrum, System
from biglp._core.errors import warn_caller


@dataclass(frozen=True)
class LabelledRows:
    """Normalised features of (some of) the labelled rows, and their labels."""

    features: Any  # array or CSR array, (l, r)
    codes: np.ndarray  # (l,)
    given: np.ndarray | None = None  # w·Y, where labels have weights or are distributions: (l, c)

    def targets(self, n_classes: int) -> np.ndarray:
        """Rows of w·Y.  (l, c)."""
        return np.eye(n_classes)[self.codes] if self.given is None else self.given


def leave_one_out(
    system: System, labelled: LabelledRows, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of each labelled row without its own label, and the class masses then.  2 × (l, c)."""
    coefficients = system.coefficients(alpha)
    scores = labelled.features @ coefficients
    targets = labelled.targets(scores.shape[1])
    scores -= system.returns(labelled.features, alpha)[:, None] * targets
    counts = np.maximum(system.sums.counts - targets, 0.0)  # weights need not cancel exactly
    brought = labelled.features @ system.towards_all(alpha)
    from_graph = system.sums.totals @ coefficients - brought[:, None] * targets
    return scores, class_mass(counts, from_graph, alpha)


def left_alone(counts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Labelled rows without which one of their classes would have no label.  (l, c) → (l,)."""
    return np.asarray(((targets > 0) & (counts - targets <= 1e-9 * counts)).any(axis=1))


def without_noise(coefficients: np.ndarray, sums: GramSums, alpha: float) -> np.ndarray:
    """Put coefficients that are rounding errors at zero.  (p, c) → (p, c).

    Where H has entries of both signs (Nyström), parts of the graph that no label reaches come out
    as small numbers instead of zero. Where it has not, nothing has cancelled, and the smallest
    coefficient is as exact as the largest.
    """
    entries = sums.gram.data if sparse.issparse(sums.gram) else sums.gram
    if (entries >= 0).all():
        return coefficients
    size = np.abs(coefficients)
    # The solve multiplies rounding errors by its condition, at most 1 / (1 − α).
    noise = len(coefficients) * np.finfo(np.float64).eps / (1.0 - alpha) * size.max(axis=0)
    return np.where(size > noise, coefficients, 0.0)


def iterate(
    sums: GramSums, alpha: float, radius: float, *, max_iter: int = 10_000, tol: float = 1e-7
) -> tuple[np.ndarray, int]:
    """Iterate to C (Eq. 2.3, Algorithm S.5): coefficients (r, c), and the iterations done.

    The paper iterates on n-vectors, f ← αF̄F̄ᵀf + (1−α)f₀. With u = F̄ᵀf and b = F̄ᵀf₀ the same is
    u ← αHu + (1−α)b on r numbers, and f = αF̄u + (1−α)f₀ at the end: an iteration costs O(r²c)
    whatever n is, and no row is touched. Two departures from S.5:

    1. It starts at f₀ instead of random numbers in [−1, 1].
    2. ``tol`` is relative. Scores are of size 1/n, so an absolute tolerance stops at once and
       leaves the random start in the labels.
    """
    step = (alpha / radius) * sums.gram
    source = (1.0 - alpha) * sums.targets
    state = sums.targets
    change = np.inf
    for iteration in range(1, max_iter + 1):
        fresh = step @ state + source
        change = float(np.abs(fresh - state).max() / (np.abs(fresh).max() or 1.0))
        state = fresh
        if change <= tol * (1.0 - alpha):  # a slow iteration changes little long before its end
            return (alpha / radius) * state, iteration
    from biglp._core.errors import StoppedShortWarning  # loads scikit-learn, so only now

    warn_caller(
        f"label propagation stopped after max_iter={max_iter} iterations with a relative change of "
        f"{change:.1e} (tolerance {tol:.0e}); use solver='closed_form', or a smaller alpha "
        f"(alpha={alpha} now).",
        StoppedShortWarning,
    )
    return (alpha / radius) * state, max_iter


# --------------------------------------------------------------------------------------------------
# Poisson learning (Calder et al., 2020). Each label is a source of its class and the mean label ȳ
# is drained from all of them alike, so that nothing is left over where little is known:
#
#     (I − S)·F = Y − 1_L·ȳᵀ,   F without any part along √d,   ȳ = Σ_i w_i·y_i / Σ_i w_i.
#
# For anchor graphs d = 1 and this is Poisson learning on the graph's Laplacian; for the others it
# is the same on the normalised graph. By the matrix inversion lemma
#
#     F = (Y − 1_L·ȳᵀ) + F̄·C,   C = [P·U·diag(1/(1−λ))·Uᵀ·P − u·uᵀ/ρ]·(B − (B·1)·ȳᵀ),
#
# where u = a/‖a‖, a = F̄ᵀ√d, is the constant mode: H·a = a exactly, with the eigenvalue 1 whose gain
# is infinite, and P = I − u·uᵀ takes it out. a is known without any eigenproblem (the column sums
# of F, which for anchors are t), so that the mode goes by a projection before and after the filter:
# its rounding error is multiplied by itself, not by the largest gain. Subtracting the mean of F
# over all rows instead would subtract numbers of size 1 to find those of size 1/n, which float32
# cannot do.
#
# Leave-one-out: without label i both B and ȳ change. With m_i = φ̄_i·[…]·(B − φ̄_iᵀ·w_i·y_iᵀ),
#
#     f_i without its own label = m_i − (m_i·1)·ȳ₍ᵢ₎.


SMALLEST_GAP = 1e-6
"""1 − λ below which two parts of the graph count as hardly connected: sums of float32 numbers do
not tell smaller gaps from none, and Poisson learning has no answer where there is none."""
WRONG_MODE = 1e-3
"""Residual ‖Hu/ρ − u‖ above which repaired degrees or negative similarities have moved the mode."""


def mean_label(counts: np.ndarray) -> np.ndarray:
    """ȳ: share of each class among the labels.  (..., c) → (..., c)."""
    return counts / counts.sum(axis=-1, keepdims=True)


def centred(columns: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Columns for the classes with the mean label drained: X − (X·1)·ȳᵀ.  (..., c)."""
    return columns - columns.sum(axis=-1, keepdims=True) * mean_label(counts)


def constant_mode(spectrum: Spectrum, column_sums: np.ndarray | None) -> np.ndarray:
    """u, from s = Fᵀ1, mixed, or without it from t, as where degrees are 1.  (r,)."""
    mode = spectrum.sums.constant if column_sums is None else column_sums
    mode = mode / (np.linalg.norm(mode) or 1.0)
    moved = spectrum.sums.gram @ mode - spectrum.radius * mode
    if np.linalg.norm(moved) > WRONG_MODE * spectrum.radius:
        return spectrum.vectors[:, -1]
    return mode


def poisson_coefficients(spectrum: Spectrum, mode: np.ndarray) -> np.ndarray:
    """C, so that F = (Y − 1_L·ȳᵀ) + F̄·C.  (r, c)."""
    return _solved(spectrum, mode, centred(spectrum.sums.targets, spectrum.sums.counts))


def leave_one_out_poisson(
    spectrum: Spectrum, labelled: LabelledRows, mode: np.ndarray
) -> np.ndarray:
    """Scores of each labelled row without its own label.  (l, c)."""
    features = labelled.features
    along = features @ mode
    turned = (features - np.outer(along, mode)) @ spectrum.vectors
    own = (turned * turned) @ _poisson_gain(spectrum) - along**2 / spectrum.radius
    targets = labelled.targets(spectrum.sums.targets.shape[1])
    scores = features @ _solved(spectrum, mode, spectrum.sums.targets) - own[:, None] * targets
    remaining = np.maximum(spectrum.sums.counts - targets, 0.0)
    remaining[remaining.sum(axis=1) == 0] = 1.0  # the only label there is
    return centred(scores, remaining)


def _poisson_gain(spectrum: Spectrum) -> np.ndarray:
    """1 / (1 − λ), bounded, with the division of S by its radius folded in.  (r,)."""
    return 1.0 / np.maximum(1.0 - spectrum.values, SMALLEST_GAP) / spectrum.radius


def _solved(spectrum: Spectrum, mode: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[P·U·diag(1/(1−λ))·Uᵀ·P − u·uᵀ/ρ]·columns."""
    along = mode @ columns
    turned = spectrum.vectors.T @ (columns - np.outer(mode, along))
    solved = spectrum.vectors @ (_poisson_gain(spectrum)[:, None] * turned)
    return solved - np.outer(mode, mode @ solved + along / spectrum.radius)
