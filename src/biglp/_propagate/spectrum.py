"""Label propagation in closed form (Eq. 2.4, 2.5), for every α from one eigendecomposition.

Notation: H = F̄ᵀF̄ = U·diag(λ)·Uᵀ (r × r), B = F̄ᵀY (r × c), S = F̄F̄ᵀ.

    F = (1−α)(I − αS)⁻¹Y = (1−α)Y + F̄·C,   C = α(1−α)(I − αH)⁻¹B = U·g(λ)·UᵀB,
    g(λ) = α(1−α) / (1 − αλ).

The second form is the matrix inversion lemma: only r × r numbers are solved for. Forming H costs
O(nr²), which the paper's O(k³ + nk) leaves out.

The paper needs αρ(S) < 1, and ρ(S) ≤ 1 holds only when W ≥ 0, which Nyström does not give. The
largest eigenvalue is known here for free, so S is divided by it whenever it is above 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from biglp._propagate.statistics import GramSums


@dataclass(frozen=True)
class Spectrum:
    """The Gram matrix H taken apart, once for all α.

    Attributes
    ----------
    values : ndarray of shape (r,)
        λ, increasing, divided by ``radius`` and therefore within [0, 1].
    vectors : ndarray of shape (r, r)
        U.
    radius : float
        max(1, largest eigenvalue of H): what S was divided by.
    sums : GramSums
        The sums behind it.
    """

    values: np.ndarray
    vectors: np.ndarray
    radius: float
    sums: GramSums

    @classmethod
    def of(cls, sums: GramSums) -> Spectrum:
        """Decompose H."""
        values, vectors = sums.eigen
        radius = max(1.0, float(values[-1]))
        return cls(np.clip(values / radius, 0.0, 1.0), vectors, radius, sums)

    @cached_property
    def rotated_targets(self) -> np.ndarray:
        """UᵀB.  (r, c)."""
        return self.vectors.T @ self.sums.targets

    @cached_property
    def rotated_totals(self) -> np.ndarray:
        """Uᵀt.  (r,)."""
        return self.vectors.T @ self.sums.totals

    def gain(self, alpha: float) -> np.ndarray:
        """g(λ), with the division of S by the radius folded in.  (r,)."""
        return alpha * (1.0 - alpha) / (1.0 - alpha * self.values) / self.radius

    def coefficients(self, alpha: float) -> np.ndarray:
        """C, so that F = (1−α)Y + F̄·C.  (r, c)."""
        return self.vectors @ (self.gain(alpha)[:, None] * self.rotated_targets)
