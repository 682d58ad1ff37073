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
    """Covariance of the rows given some labels.

    Attributes
    ----------
    covariance : ndarray of shape (q, q), or (d, q, q)
        M; of each of d sets of labels.
    noise : float
        σ² of a label.
    """

    covariance: np.ndarray
    noise: float

    @classmethod
    def of(
        cls, values: np.ndarray, n_rows: int, labelled: np.ndarray, alpha: float = ALPHA
    ) -> Posterior:
        """Posterior given the features of the labelled rows.

        Parameters
        ----------
        values : ndarray of shape (q,)
            λ, within [0, 1].
        n_rows : int
            Rows behind H.
        labelled : ndarray of shape (l, q), or (d, l, q)
            Features of the labelled rows; of each of d sets of labels.
        alpha : float
        """
        stiffness = 1.0 - alpha * values
        noise = NOISE * float((values / stiffness).sum()) / n_rows
        noise = noise if noise > 0 else 1.0
        system = np.diag(stiffness) + labelled.swapaxes(-1, -2) @ labelled / noise
        return cls(np.linalg.inv(system), noise)

    def variances(self, features: np.ndarray) -> np.ndarray:
        """cov(i, i) of rows.  (b, q) → (b,), or (d, b)."""
        return np.einsum("...ij,ij->...i", features @ self.covariance, features)

    def gains(self, features: np.ndarray, weighted_gram: np.ndarray) -> np.ndarray:
        """Weighted variance of all rows that the label of each row would take.  (b, q) → (b,)."""
        spread = features @ self.covariance
        taken = np.einsum("ij,ij->i", spread @ weighted_gram, spread)
        return taken / (self.noise + np.einsum("ij,ij->i", spread, features))

    def correlations(self, features: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Squared correlation of rows with one row.  (b, q), (q,) → (b,)."""
        spread = self.covariance @ row
        own = float(row @ spread)
        product = self.variances(features) * own
        squared = (features @ spread) ** 2
        return np.minimum(squared / np.where(product > 0, product, 1.0), 1.0)

    def observed(self, row: np.ndarray) -> Posterior:
        """Posterior after the label of one more row.  (q,)."""
        spread = self.covariance @ row
        change = np.outer(spread, spread) / (self.noise + float(row @ spread))
        return Posterior(self.covariance - change, self.noise)


def choose_batch(
    posterior: Posterior,
    features: np.ndarray,
    log_weights: np.ndarray,
    weighted_gram: np.ndarray,
    n: int,
    powers: tuple[float, float],
) -> np.ndarray:
    """Choose rows one after the other, each given those before it.

    Row j scores w_j · gain_j^b · Π_i (1 − s·ρ_ij²)^d over the rows i chosen before it, where gain
    is the variance that its label would take from all rows, and ρ its correlation with row i when
    that was chosen: a row that says what another will have said comes late, however large its
    weight is, and a copy of a chosen row comes last. Ties go to the first row.

    Parameters
    ----------
    posterior : Posterior
    features : ndarray of shape (b, q)
        Candidates.
    log_weights : ndarray of shape (b,)
        Logarithm of w.
    weighted_gram : ndarray of shape (q, q)
        H_w.
    n : int
        How many to choose; all when there are fewer.
    powers : tuple of float
        b and d.

    Returns
    -------
    chosen : ndarray of shape (n,)
        Positions among the candidates, in the order of choice.
    """
    gain_power, overlap_power = powers
    logs, chosen = log_weights.astype(np.float64), []
    for _ in range(min(n, len(features))):
        gains = np.maximum(posterior.gains(features, weighted_gram), np.finfo(np.float64).tiny)
        best = int((logs + gain_power * np.log(gains)).argmax())
        chosen.append(best)
        row = features[best]
        logs = logs + overlap_power * np.log1p(-OVERLAP * posterior.correlations(features, row))
        logs[(features == row).all(axis=1)] -= LAST
        logs[best] = -np.inf
        posterior = posterior.observed(row)
    return np.array(chosen, dtype=np.int64)
