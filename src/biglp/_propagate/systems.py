"""Label propagation in closed form (Eq. 2.4, 2.5) for every α, once the Gram matrix is known.

Notation: H = F̄ᵀF̄ = U·diag(λ)·Uᵀ (r × r), B = F̄ᵀY (r × c), S = F̄F̄ᵀ.

    F = (1−α)(I − αS)⁻¹Y = (1−α)Y + F̄·C,   C = α(1−α)(I − αH)⁻¹B = U·g(λ)·UᵀB,
    g(λ) = α(1−α) / (1 − αλ).

Four classes answer the same questions. :class:`Spectrum` decomposes a dense H once, O(r³), and
every α is then cheap. :class:`DenseSystem` factorises it for each of a few α, which is quicker.
:class:`.card_system.CardSystem` does that on a card. :class:`SparseSystem` solves with a sparse H
by conjugate gradients for each α: with thousands of landmarks that takes a second where the
decomposition takes minutes.

The second form is the matrix inversion lemma: only r × r numbers are solved for. Forming H costs
O(nr²), which the paper's O(k³ + nk) leaves out.

The paper needs αρ(S) < 1, and ρ(S) ≤ 1 holds only when W ≥ 0, which Nyström does not give. The
largest eigenvalue is known here for free, so S is divided by it whenever it is above 1.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from biglp._propagate.cholesky import Cholesky
from biglp._propagate.closed_form import solve
from biglp._propagate.conjugate import energies, solve_in_layers
from biglp._propagate.sums import GramSums

DENSE_RANK = 2000
"""Rank up to which the decomposition is quick whatever else is asked."""
DENSE_WORK = 10_000
"""And up to √(this · ℓ): solving for each of many labelled rows would take longer."""
MOST_LABELLED, MOST_SOLVED = 5000, 1000
"""Labelled rows that leave-one-out looks at; and where each of them has to be solved for. More
change nothing and cost time."""
COLUMNS_EACH, COLUMNS_AT_ONCE = 32, 64
"""Labelled rows that a thread solves for at once, which its cache can hold, and all threads."""
KEPT_FACTORS = 2
"""Factors that are kept: those of the α that a committee asks for, side by side."""
ROUNDING = 1e-4
"""Rows of an anchor graph add up to 1 but for float32's rounding, and so does this bound."""
FACTOR_RANK = 200
"""Rank from which on factors for a few α are quicker than all eigenvectors."""
MOST_ON_CARD = 8192
"""Rank up to which H is dense on a card, where that takes three times half a gigabyte."""


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
    most_labelled: ClassVar[int] = MOST_LABELLED

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

    def solved(self, alpha: float) -> np.ndarray:
        """C again, by a solve that leaves exact zeros where no label reaches.  (r, c)."""
        return solve(self.sums, alpha, self.radius)

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
    n_threads : int
        Threads that may solve for labelled rows side by side.
    """

    radius: float
    sums: GramSums
    n_threads: int = 1
    most_labelled: ClassVar[int] = MOST_SOLVED
    _latest: dict[float, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, sums: GramSums, n_threads: int = 1) -> SparseSystem:
        """Bound the largest eigenvalue of H, which is 1 but for rounding."""
        return cls(max(1.0, _largest_eigenvalue(sums)), sums, n_threads)

    def coefficients(self, alpha: float) -> np.ndarray:
        """C, so that F = (1−α)Y + F̄·C.  (r, c)."""
        if alpha not in self._latest:
            share = alpha / self.radius
            solved = solve_in_layers(self.sums.gram, share, self.sums.targets)
            found = (1.0 - alpha) * share * solved
            _keep(self._latest, alpha, found)
            return found
        return self._latest[alpha]

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        """What a row with features f gives to all rows is f times this.  (r,)."""
        share = alpha / self.radius
        solved = solve_in_layers(self.sums.gram, share, self.sums.totals[:, None])
        return (1.0 - alpha) * share * solved[:, 0]

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        share = alpha / self.radius

        def part(start: int) -> np.ndarray:
            rows = features[start : start + COLUMNS_EACH]
            rows = rows.toarray() if sparse.issparse(rows) else rows
            return energies(self.sums.gram, share, np.ascontiguousarray(rows.T))

        starts = range(0, features.shape[0], COLUMNS_EACH)
        with ThreadPoolExecutor(min(self.n_threads, COLUMNS_AT_ONCE // COLUMNS_EACH)) as pool:
            return (1.0 - alpha) * share * np.concatenate([np.empty(0), *pool.map(part, starts)])


@dataclass(frozen=True)
class DenseSystem:
    """The Gram matrix H of an anchor graph, dense, factorised for each α that is asked for.

    A Cholesky factor costs a thirtieth of all eigenvectors, and a committee asks for few α.

    Attributes
    ----------
    radius : float
        max(1, a bound on the largest eigenvalue of H): what S is divided by.
    sums : GramSums
        The sums behind it.
    """

    radius: float
    sums: GramSums
    most_labelled: ClassVar[int] = MOST_LABELLED
    _latest: dict[float, Any] = field(default_factory=dict, repr=False, compare=False)
    _found: dict[float, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def coefficients(self, alpha: float) -> np.ndarray:
        """C, so that F = (1−α)Y + F̄·C.  (r, c)."""
        found = self._found.get(alpha)
        if found is None:  # the answer asks for it, and leave-one-out again
            found = self._solved(alpha, self.sums.targets)
            _keep(self._found, alpha, found)
        return found

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        """What a row with features f gives to all rows is f times this.  (r,)."""
        return self._solved(alpha, self.sums.totals)

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        columns = features.toarray() if sparse.issparse(features) else features
        half = self._factor(alpha).half(columns.T)
        return (1.0 - alpha) * alpha / self.radius * np.einsum("ij,ij->j", half, half)

    def _solved(self, alpha: float, right: np.ndarray) -> np.ndarray:
        solved = self._factor(alpha).solve(right)
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved)

    def _factor(self, alpha: float) -> Any:
        found = self._latest.get(alpha)
        if found is None:
            _keep(self._latest, alpha, None)  # room first: r × r numbers each
            found = self._latest[alpha] = self._made(alpha)
        return found

    def _made(self, alpha: float) -> Any:
        """The Cholesky factor of I − αH."""
        system = self.sums.gram * (-alpha / self.radius)
        system.flat[:: len(system) + 1] += 1.0
        return Cholesky.of(system)


def _keep(latest: dict[float, Any], alpha: float, found: Any) -> None:
    """Keep what was found for an α, and of the others only the latest; threads may do so at once.

    Each α is asked for by one thread.
    """
    for other in list(latest)[: max(len(latest) + 1 - KEPT_FACTORS, 0)]:
        latest.pop(other, None)
    latest[alpha] = found


System = Spectrum | SparseSystem | DenseSystem
"""What propagation asks: ``solved``, ``coefficients``, ``towards_all``, ``returns``."""


def take_apart(
    sums: GramSums, n_labelled: int | None = None, device: str = "cpu", n_threads: int = 1
) -> System:
    """Prepare the Gram matrix for any α.

    Parameters
    ----------
    sums : GramSums
    n_labelled : int, optional
        Labelled rows that leave-one-out will look at; without it all eigenvectors are taken.
    device : str
        Where the rows are: a large matrix is factorised there.
    n_threads : int
        Threads that may solve for labelled rows side by side; the numbers are the same.
    """
    rank, is_sparse = sums.gram.shape[0], sparse.issparse(sums.gram)
    few_labels = n_labelled is not None and n_labelled <= rank
    on_card = device != "cpu" and FACTOR_RANK <= rank <= MOST_ON_CARD
    if few_labels and (on_card or (rank >= FACTOR_RANK and not is_sparse)):
        bound = _largest_eigenvalue(sums)
        if bound <= 1.0 + ROUNDING:
            radius = max(1.0, bound)
            if not on_card:
                return DenseSystem(radius, sums)
            from biglp._propagate.card_system import CardSystem  # a kind of the one above

            return CardSystem(radius, sums, device=device)
    return SparseSystem.of(sums, n_threads) if is_sparse else Spectrum.of(sums)


def is_sparse_rank(rank: int, n_labelled: int) -> bool:
    """Whether solving with a sparse Gram matrix is faster than its decomposition."""
    return rank > DENSE_RANK and rank**2 > DENSE_WORK * min(n_labelled, MOST_SOLVED)


def _largest_eigenvalue(sums: GramSums) -> float:
    """Bound the largest eigenvalue of an H ≥ 0; infinity where H has negative entries.

    For any v > 0 it is at most max_i (Hv)_i / v_i (Collatz), and of an anchor graph t = Φ̄ᵀ1 is the
    eigenvector, so that the bound is the value.
    """
    entries = sums.gram.data if sparse.issparse(sums.gram) else sums.gram
    used = sums.totals > 0
    if entries.min(initial=0.0) < 0 or (sums.totals < 0).any():
        return float("inf")
    grown = (sums.gram @ sums.totals)[used] / sums.totals[used]
    return float(grown.max(initial=1.0))
