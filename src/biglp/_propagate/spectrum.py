"""Label propagation in closed form (Eq. 2.4, 2.5) for every α, once the Gram matrix is known.

Notation: H = F̄ᵀF̄ = U·diag(λ)·Uᵀ (r × r), B = F̄ᵀY (r × c), S = F̄F̄ᵀ.

    F = (1−α)(I − αS)⁻¹Y = (1−α)Y + F̄·C,   C = α(1−α)(I − αH)⁻¹B = U·g(λ)·UᵀB,
    g(λ) = α(1−α) / (1 − αλ).

Two classes answer the same questions. :class:`Spectrum` decomposes a dense H once, O(r³), and every
α is then cheap. :class:`SparseSystem` solves with a sparse H by conjugate gradients for each α:
with thousands of landmarks that takes a second where the decomposition takes minutes.

The second form is the matrix inversion lemma: only r × r numbers are solved for. Forming H costs
O(nr²), which the paper's O(k³ + nk) leaves out.

The paper needs αρ(S) < 1, and ρ(S) ≤ 1 holds only when W ≥ 0, which Nyström does not give. The
largest eigenvalue is known here for free, so S is divided by it whenever it is above 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from biglp._propagate.conjugate import energies, solve_in_layers
from biglp._propagate.statistics import GramSums

DENSE_RANK = 2000
"""Rank up to which the decomposition is quick whatever else is asked."""
DENSE_WORK = 10_000
"""And up to √(this · ℓ): solving for each of many labelled rows would take longer."""
MOST_LABELLED = 1000
"""Labelled rows that leave-one-out looks at where each of them has to be solved for."""
COLUMNS_AT_ONCE = 64


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

    def towards_all(self, alpha: float) -> np.ndarray:
        """What a row with features f gives to all rows is f times this.  (r,)."""
        return self.vectors @ (self.gain(alpha) * self.rotated_totals)

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        rotated = features @ self.vectors
        return (rotated * rotated) @ self.gain(alpha)


@dataclass(frozen=True)
class SparseSystem:
    """The Gram matrix H of an anchor graph, sparse and non-negative, solved for each α.

    Attributes
    ----------
    radius : float
        max(1, a bound on the largest eigenvalue of H): what S is divided by.
    sums : GramSums
        The sums behind it.
    """

    radius: float
    sums: GramSums

    @classmethod
    def of(cls, sums: GramSums) -> SparseSystem:
        """Bound the largest eigenvalue of H, which is 1 but for rounding.

        For any v > 0 it is at most max_i (Hv)_i / v_i (Collatz), and t = Φ̄ᵀ1 is its eigenvector.
        """
        used = sums.totals > 0
        grown = (sums.gram @ sums.totals)[used] / sums.totals[used]
        return cls(max(1.0, float(grown.max(initial=1.0))), sums)

    def coefficients(self, alpha: float) -> np.ndarray:
        """C, so that F = (1−α)Y + F̄·C.  (r, c)."""
        share = alpha / self.radius
        return (1.0 - alpha) * share * solve_in_layers(self.sums.gram, share, self.sums.targets)

    def towards_all(self, alpha: float) -> np.ndarray:
        """What a row with features f gives to all rows is f times this.  (r,)."""
        share = alpha / self.radius
        solved = solve_in_layers(self.sums.gram, share, self.sums.totals[:, None])
        return (1.0 - alpha) * share * solved[:, 0]

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        share = alpha / self.radius
        found = [np.empty(0)]
        for start in range(0, features.shape[0], COLUMNS_AT_ONCE):
            part = features[start : start + COLUMNS_AT_ONCE]
            columns = part.toarray() if sparse.issparse(part) else part
            found.append(energies(self.sums.gram, share, np.ascontiguousarray(columns.T)))
        return (1.0 - alpha) * share * np.concatenate(found)


Graph = Spectrum | SparseSystem
"""What propagation asks: ``sums``, ``radius``, ``coefficients``, ``towards_all``, ``returns``."""


def take_apart(sums: GramSums) -> Graph:
    """Prepare the Gram matrix for any α."""
    return SparseSystem.of(sums) if sparse.issparse(sums.gram) else Spectrum.of(sums)


def is_sparse_rank(rank: int, n_labelled: int) -> bool:
    """Whether solving with a sparse Gram matrix is faster than its decomposition."""
    return rank > DENSE_RANK and rank**2 > DENSE_WORK * min(n_labelled, MOST_LABELLED)
