"""What the labels leave open: the posterior of a Gaussian field on the low-rank graph.

Label spreading at α is the mean of a Gaussian field whose covariance over rows is
K = Φ̄·(I − αH)⁻¹·Φ̄ᵀ. A label is an observation of its row with noise σ². Given the labelled rows L,

    M = (I − αH + Φ̄_Lᵀ·Φ̄_L / σ²)⁻¹,     cov(i, j) = φ̄_iᵀ·M·φ̄_j,

r × r numbers whatever n is, and the same for every class. One more label at row j takes

    cov(i, j)² / (σ² + cov(j, j))

from the variance of row i; with weights w_i on the rows and H_w = Σ_i w_i·φ̄_i·φ̄_iᵀ it takes
φ̄_jᵀ·M·H_w·M·φ̄_j / (σ² + cov(j, j)) from all of them (V-optimality), and M changes by rank one:

    M ← M − M·φ̄_j·φ̄_jᵀ·M / (σ² + cov(j, j)).

Everything is written in the basis of the q leading eigenvectors of H, in which H = diag(λ): the
others hardly spread (1 / (1 − αλ) ≈ 1) and say little about any other row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ALPHA = 0.99
NOISE = 1.0
"""σ² as a multiple of the mean variance of a row before any label."""
OVERLAP = 0.9
"""s, below 1 so that rows that are all alike can still be told apart by their weights."""
LAST = 1e3
"""Far below any logarithm of a score: for copies of a row that is chosen already."""


@dataclass(frozen=True)
class Posterior:
    """Covariance of the rows given some labels."""

    covariance: np.ndarray  # M, (q, q); of each of d sets of labels: (d, q, q)
    noise: float  # σ² of a label

    @classmethod
    def from_labels(cls, values: np.ndarray, n_rows: int, labelled: np.ndarray) -> Posterior:
        """Posterior given λ (q,) of ``n_rows`` rows and features of labelled ones, (…, l, q)."""
        stiffness = 1.0 - ALPHA * values
        noise = NOISE * float((values / stiffness).sum()) / n_rows
        noise = noise if noise > 0 else 1.0
        system = np.diag(stiffness) + labelled.swapaxes(-1, -2) @ labelled / noise
        return cls(np.linalg.inv(system), noise)

    def variances(self, features: np.ndarray) -> np.ndarray:
        """cov(i, i) of rows.  (b, q) → (b,), or (d, b)."""
        return np.einsum("...ij,ij->...i", features @ self.covariance, features)


def choose_batch(
    posterior: Posterior,
    features: np.ndarray,
    log_weights: np.ndarray,
    weighted_gram: np.ndarray,
    n: int,
    powers: tuple[float, float],
) -> np.ndarray:
    """Choose n rows of some (b, q) one after the other, each given those before it.  (n,).

    Row j scores w_j · gain_j^b · Π_i (1 − s·ρ_ij²)^d over the rows i chosen before it, where gain
    is the variance that its label would take from all rows, and ρ its correlation with row i when
    that was chosen: a row that says what another will have said comes late, however large its
    weight is, and a copy of a chosen row comes last. Ties go to the first row. ``log_weights`` (b,)
    are log w, ``weighted_gram`` (q, q) is H_w, ``powers`` are b and d.
    """
    gain_power, overlap_power = powers
    covariance, noise = posterior.covariance, posterior.noise
    logs, chosen = log_weights.astype(np.float64), []
    for _ in range(min(n, len(features))):
        spread = features @ covariance
        variances = np.einsum("ij,ij->i", spread, features)
        taken = np.einsum("ij,ij->i", spread @ weighted_gram, spread)
        gains = np.maximum(taken / (noise + variances), np.finfo(np.float64).tiny)
        best = int((logs + gain_power * np.log(gains)).argmax())
        chosen.append(best)
        row = features[best]
        spread = covariance @ row
        variance = float(row @ spread)
        product = variances * variance
        correlations = (features @ spread) ** 2 / np.where(product > 0, product, 1.0)
        logs = logs + overlap_power * np.log1p(-OVERLAP * np.minimum(correlations, 1.0))
        logs[(features == row).all(axis=1)] -= LAST
        logs[best] = -np.inf
        covariance = covariance - np.outer(spread, spread) / (noise + variance)
    return np.array(chosen, dtype=np.int64)
