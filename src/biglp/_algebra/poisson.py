"""Poisson learning (Calder et al., 2020) in r-space.

Each label is a source of its class and the mean label ȳ is drained from all of them alike, so that
nothing is left over where little is known:

    (I − S)·F = Y − 1_L·ȳᵀ,   F without any part along √d,   ȳ = Σ_i w_i·y_i / Σ_i w_i.

For anchor graphs d = 1 and this is Poisson learning on the graph's Laplacian; for the others it is
the same on the normalised graph. By the matrix inversion lemma

    F = (Y − 1_L·ȳᵀ) + F̄·C,   C = [P·U·diag(1/(1−λ))·Uᵀ·P − u·uᵀ/ρ]·(B − (B·1)·ȳᵀ),

where u = a/‖a‖, a = F̄ᵀ√d, is the constant mode: H·a = a exactly, with the eigenvalue 1 whose gain
is infinite, and P = I − u·uᵀ takes it out. a is known without any eigenproblem (the column sums of
F, which for anchors are t), so that the mode goes by a projection before and after the filter: its
rounding error is multiplied by itself, not by the largest gain. Subtracting the mean of F over all
rows instead would subtract numbers of size 1 to find those of size 1/n, which float32 cannot do.

Leave-one-out: without label i both B and ȳ change. With m_i = φ̄_i·[…]·(B − φ̄_iᵀ·w_i·y_iᵀ),

    f_i without its own label = m_i − (m_i·1)·ȳ₍ᵢ₎.
"""

from __future__ import annotations

import numpy as np

from biglp._algebra.leave_one_out import LabelledRows
from biglp._algebra.systems import Spectrum

SMALLEST_GAP = 1e-6
"""1 − λ below which two parts of the graph count as hardly connected: sums of float32 numbers do
not tell smaller gaps from none, and Poisson learning has no answer where there is none."""
WRONG_MODE = 1e-3
"""Residual ‖Hu/ρ − u‖ above which repaired degrees or negative similarities have moved the mode."""


def constant_mode(spectrum: Spectrum, column_sums: np.ndarray | None = None) -> np.ndarray:
    """Return u, the direction of the constant mode.  (r,).

    Parameters
    ----------
    spectrum : Spectrum
    column_sums : ndarray of shape (r,), optional
        s = Fᵀ1, mixed; without it degrees are 1 and t takes its place.
    """
    mode = spectrum.sums.constant if column_sums is None else column_sums
    mode = mode / (np.linalg.norm(mode) or 1.0)
    moved = spectrum.sums.gram @ mode - spectrum.radius * mode
    if np.linalg.norm(moved) > WRONG_MODE * spectrum.radius:
        return spectrum.vectors[:, -1]
    return mode


def gain(spectrum: Spectrum) -> np.ndarray:
    """1 / (1 − λ), bounded, with the division of S by its radius folded in.  (r,)."""
    return 1.0 / np.maximum(1.0 - spectrum.values, SMALLEST_GAP) / spectrum.radius


def mean_label(counts: np.ndarray) -> np.ndarray:
    """ȳ: share of each class among the labels.  (..., c) → (..., c)."""
    return counts / counts.sum(axis=-1, keepdims=True)


def centred(columns: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Columns for the classes with the mean label drained: X − (X·1)·ȳᵀ.  (..., c)."""
    return columns - columns.sum(axis=-1, keepdims=True) * mean_label(counts)


def poisson_coefficients(spectrum: Spectrum, mode: np.ndarray | None = None) -> np.ndarray:
    """C, so that F = (Y − 1_L·ȳᵀ) + F̄·C.  (r, c)."""
    mode = constant_mode(spectrum) if mode is None else mode
    return _solved(spectrum, mode, centred(spectrum.sums.targets, spectrum.sums.counts))


def leave_one_out_poisson(
    spectrum: Spectrum, labelled: LabelledRows, mode: np.ndarray | None = None
) -> np.ndarray:
    """Scores of each labelled row without its own label.  (l, c)."""
    mode = constant_mode(spectrum) if mode is None else mode
    features = labelled.features
    along = features @ mode
    turned = (features - np.outer(along, mode)) @ spectrum.vectors
    own = (turned * turned) @ gain(spectrum) - along**2 / spectrum.radius
    targets = labelled.targets(spectrum.sums.targets.shape[1])
    scores = features @ _solved(spectrum, mode, spectrum.sums.targets) - own[:, None] * targets
    left = np.maximum(spectrum.sums.counts - targets, 0.0)
    left[left.sum(axis=1) == 0] = 1.0  # the only label there is
    return centred(scores, left)


def _solved(spectrum: Spectrum, mode: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[P·U·diag(1/(1−λ))·Uᵀ·P − u·uᵀ/ρ]·columns."""
    along = mode @ columns
    turned = spectrum.vectors.T @ (columns - np.outer(mode, along))
    found = spectrum.vectors @ (gain(spectrum)[:, None] * turned)
    return found - np.outer(mode, mode @ found + along / spectrum.radius)
