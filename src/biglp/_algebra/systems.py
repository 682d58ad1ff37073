"""Label propagation in closed form (Eq. 2.4, 2.5) for every α, once the Gram matrix is known.

Notation: H = F̄ᵀF̄ = U·diag(λ)·Uᵀ (r × r), B = F̄ᵀY (r × c), S = F̄F̄ᵀ.

    F = (1−α)(I − αS)⁻¹Y = (1−α)Y + F̄·C,   C = α(1−α)(I − αH)⁻¹B = U·g(λ)·UᵀB,
    g(λ) = α(1−α) / (1 − αλ).

Four classes answer the same questions. :class:`Spectrum` decomposes a dense H once, O(r³), and
every α is then cheap. :class:`.dense_system.DenseSystem` factorises it for each of a few α, which
is quicker. :class:`.card_system.CardSystem` does that on a card. :class:`SparseSystem` solves with
a sparse H by conjugate gradients for each α, where labels are few: with thousands of landmarks that
takes a second where the decomposition takes minutes.

The second form is the matrix inversion lemma: only r × r numbers are solved for. Forming H costs
O(nr²), which the paper's O(k³ + nk) leaves out.

The paper needs αρ(S) < 1, and ρ(S) ≤ 1 holds only when W ≥ 0, which Nyström does not give. The
largest eigenvalue is known here for free, so S is divided by it whenever it is above 1.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse

from biglp._algebra.conjugate import LAYERS_BY_STEPS, energies, solve_in_layers
from biglp._algebra.spreading import solve
from biglp._algebra.sums import GramSums

# --------------------------------------------------------------------------------------------------
# Cholesky's factor of a dense matrix, a few columns at a time, by products that let others work.
#
# A = L·Lᵀ. With the columns in groups, of which k is one and those before it are done,
#
#     A_ik ← A_ik − Σ_{j<k} L_ij·L_kjᵀ,    A_kk = L_kk·L_kkᵀ,    L_ik = A_ik·L_kk⁻ᵀ for i > k.
#
# SciPy's LAPACK does the same a tenth faster, but it keeps the interpreter's lock all the while:
# factors that two threads make are then made one after the other, and whatever else waits. NumPy's
# products let go of it.
#
# Where A is an M-matrix, L has its signs and L_kk⁻¹ none that are negative: every sum is one of
# numbers of one sign, nothing cancels, and what was an exact zero remains one.


COLUMNS = 64
"""Columns of a group: with 2,000 in all, 32 to 96 are equally quick and 256 a fifth slower."""

GROUP = 4 * COLUMNS
"""Columns of the inverse that are found at once."""


@dataclass(frozen=True)
class Cholesky:
    """The factor L of a positive definite matrix.

    Attributes
    ----------
    lower : ndarray of shape (r, r)
        L; above its diagonal is what was there before.
    inverses : list of ndarrays of shape (b, b)
        L_kk⁻¹ of each group of columns.
    """

    lower: np.ndarray
    inverses: list[np.ndarray]

    @classmethod
    def of(cls, matrix: np.ndarray) -> Cholesky:
        """Factorise a matrix, in place; only its lower half is looked at."""
        found = cls(matrix, [])
        for start in range(0, len(matrix), COLUMNS):
            stop = start + COLUMNS
            own, below = matrix[start:stop, start:stop], matrix[stop:, start:stop]
            if start:
                before = matrix[start:stop, :start].T
                matrix[start:, start:stop] -= matrix[start:, :start] @ before
            own[:] = np.linalg.cholesky(own)
            inverse, _ = linalg.lapack.dtrtri(own, lower=1)
            found.inverses.append(inverse)
            below[:] = below @ inverse.T
        return found

    def half(self, right: np.ndarray) -> np.ndarray:
        """L⁻¹·R, so that RᵀA⁻¹R is the product of this with itself.  (r, q)."""
        solved = np.array(right, order="C")
        for number, inverse in enumerate(self.inverses):
            start = number * COLUMNS
            stop = start + COLUMNS
            part = solved[start:stop]
            part -= self.lower[start:stop, :start] @ solved[:start]
            part[:] = inverse @ part
        return solved

    def solve(self, right: np.ndarray) -> np.ndarray:
        """A⁻¹·R.  (r, q)."""
        solved = self.half(right)
        for number in reversed(range(len(self.inverses))):
            start = number * COLUMNS
            stop = start + COLUMNS
            part = solved[start:stop]
            part -= self.lower[stop:, start:stop].T @ solved[stop:]
            part[:] = self.inverses[number].T @ part
        return solved

    def inverse(self) -> np.ndarray:
        """L⁻ᵀ, an upper triangle: rows with features f times this are (L⁻¹f)ᵀ.  (r, r)."""
        found = np.zeros_like(self.lower)
        for number, inverse in enumerate(self.inverses):
            start = number * COLUMNS
            stop = start + COLUMNS
            for left in range(0, start, GROUP):  # what is below the diagonal adds nothing
                right = min(left + GROUP, start)
                before = found[left:right, left:start] @ self.lower[start:stop, left:start].T
                found[left:right, start:stop] = -(before @ inverse.T)
            found[start:stop, start:stop] = inverse.T
        return found


# --------------------------------------------------------------------------------------------------
# Label propagation by a Cholesky factor of I − αH for each of a few α.
#
# Notation as in :mod:`.systems`; L·Lᵀ = I − αH is the factor (:mod:`.cholesky`), and
#
#     fᵀ(I − αH)⁻¹f = ‖L⁻¹f‖²
#
# is what comes back to a row with features f.


MOST_LABELLED, MOST_SOLVED = 5000, 1000
"""Labelled rows that leave-one-out looks at; and where each of them has to be solved for. More
change nothing and cost time."""
KEPT_FACTORS = 2
"""Factors that are kept: those of the α that a committee asks for, side by side."""
DENSE_ROWS_AT_ONCE = 256
"""Labelled rows that are solved for at once."""


@dataclass(frozen=True)
class DenseSystem:
    """The Gram matrix H of an anchor graph, factorised for each α that is asked for.

    A Cholesky factor costs a thirtieth of all eigenvectors, and a committee asks for few α. A
    sparse H becomes dense in its factor only.

    Attributes
    ----------
    radius : float
        max(1, a bound on the largest eigenvalue of H): what S is divided by.
    sums : GramSums
        The sums behind it.
    """

    radius: float
    sums: GramSums
    _latest: dict[float, Any] = field(default_factory=dict, repr=False, compare=False)
    _found: dict[float, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def most_labelled(self) -> int:
        """Labelled rows that leave-one-out looks at."""
        return MOST_SOLVED if sparse.issparse(self.sums.gram) else MOST_LABELLED

    def coefficients(self, alpha: float) -> np.ndarray:
        """C, so that F = (1−α)Y + F̄·C.  (r, c)."""
        found = self._found.get(alpha)
        if found is None:  # the answer asks for it, and leave-one-out again
            found = self._solved(alpha, self.sums.targets)
            keep_latest(self._found, alpha, found)
        return found

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        """What a row with features f gives to all rows is f times this.  (r,)."""
        return self._solved(alpha, self.sums.totals)

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        factor, (n_rows, rank) = self._factor(alpha), features.shape
        is_sparse = sparse.issparse(features)
        # L⁻¹ takes as long as solves for two thirds of r rows; each row then takes hardly any.
        inverse = factor.inverse() if is_sparse and 3 * n_rows > 2 * rank else None
        energies = np.empty(n_rows)
        for start in range(0, n_rows, DENSE_ROWS_AT_ONCE):
            rows = features[start : start + DENSE_ROWS_AT_ONCE]
            if inverse is None:
                half = factor.half(rows.toarray().T if is_sparse else rows.T)
                energies[start : start + DENSE_ROWS_AT_ONCE] = np.einsum("ij,ij->j", half, half)
            else:
                half = rows @ inverse
                energies[start : start + DENSE_ROWS_AT_ONCE] = np.einsum("ij,ij->i", half, half)
        return (1.0 - alpha) * alpha / self.radius * energies

    def _solved(self, alpha: float, right: np.ndarray) -> np.ndarray:
        solved = self._factor(alpha).solve(right)
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved)

    def _factor(self, alpha: float) -> Any:
        found = self._latest.get(alpha)
        if found is None:
            keep_latest(self._latest, alpha, None)  # room first: r × r numbers each
            found = self._latest[alpha] = self._made(alpha)
        return found

    def _made(self, alpha: float) -> Any:
        """The Cholesky factor of I − αH."""
        gram, share = self.sums.gram, alpha / self.radius
        if sparse.issparse(gram):
            system = gram.toarray()
            system *= -share
        else:
            system = gram * -share
        system.flat[:: len(system) + 1] += 1.0
        return Cholesky.of(system)


def keep_latest(latest: dict[float, Any], alpha: float, found: Any) -> None:
    """Keep what was found for an α, and of the others only the latest; threads may do so at once.

    Each α is asked for by one thread.
    """
    for other in list(latest)[: max(len(latest) + 1 - KEPT_FACTORS, 0)]:
        latest.pop(other, None)
    latest[alpha] = found


# --------------------------------------------------------------------------------------------------


DENSE_RANK = 2000
"""Rank up to which the decomposition is quick whatever else is asked."""
DENSE_WORK = 10_000
"""And up to √(this · ℓ): solving for each of many labelled rows would take longer."""
COLUMNS_EACH, COLUMNS_AT_ONCE = 32, 64
"""Labelled rows that a thread solves for at once, which its cache can hold, and all threads."""
ROUNDING = 1e-4
"""Rows of an anchor graph add up to 1 but for float32's rounding, and so does this bound."""
FACTOR_RANK = 200
"""Rank from which on factors for a few α are quicker than all eigenvectors."""
MOST_FACTORED = 5000
"""Rank up to which a sparse H may be factorised: a factor takes 200 MB there."""
STEP_PASSES, PRODUCTS_A_STEP = 144, 260
"""What all steps of a solve take for an entry of H beside r³ of a factor, as measured on MNIST,
KDD Cup 99 and simulated rows with 2,500 to 4,000 landmarks (docs/benchmarks.md)."""
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
            keep_latest(self._latest, alpha, found)
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


System = Spectrum | SparseSystem | DenseSystem
"""What propagation asks: ``solved``, ``coefficients``, ``towards_all``, ``returns``."""


def take_apart(
    sums: GramSums,
    n_labelled: int | None = None,
    device: str = "cpu",
    n_threads: int = 1,
    *,
    few_alphas: bool = False,
) -> System:
    """Prepare the Gram matrix for any α.

    Parameters
    ----------
    sums : GramSums
    n_labelled : int, optional
        Labelled rows that leave-one-out will look at; without it all eigenvectors are taken, or a
        sparse matrix is left sparse.
    device : str
        Where the rows are: a large matrix is factorised there.
    n_threads : int
        Threads that may solve for labelled rows side by side; the numbers are the same.
    few_alphas : bool
        Whether no more than a few α will be asked for: factors are quicker however many labels
        there are.
    """
    rank, is_sparse = sums.gram.shape[0], sparse.issparse(sums.gram)
    on_card = device != "cpu" and rank <= MOST_ON_CARD
    labels = n_labelled or 0
    if is_sparse:
        factored = on_card or is_factored(rank, labels, sums.targets.shape[1], sums.gram.nnz)
    else:
        factored = few_alphas or labels <= rank
    if n_labelled is not None and rank >= FACTOR_RANK and factored:
        bound = _largest_eigenvalue(sums)
        if bound <= 1.0 + ROUNDING:
            radius = max(1.0, bound)
            if not on_card:
                return DenseSystem(radius, sums)

            return CardSystem(radius, sums, device=device)
    return SparseSystem.of(sums, n_threads) if is_sparse else Spectrum.of(sums)


def is_sparse_rank(rank: int, n_labelled: int) -> bool:
    """Whether the Gram matrix is summed as a sparse one."""
    return rank > DENSE_RANK and rank**2 > DENSE_WORK * min(n_labelled, MOST_SOLVED)


def is_factored(rank: int, n_labelled: int, n_classes: int, n_entries: int) -> bool:
    """Whether a factor of a sparse Gram matrix is made in less time than all is solved for.

    Conjugate gradients take a step for each labelled row and, in layers, some for each class, and a
    step as long as a pass over the entries of H and over STEP_PASSES numbers for each of its rows.
    """
    columns = min(n_labelled, MOST_SOLVED) + LAYERS_BY_STEPS * n_classes
    steps = columns * (n_entries + STEP_PASSES * rank)
    return rank <= MOST_FACTORED and steps * PRODUCTS_A_STEP > rank**3


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


# --------------------------------------------------------------------------------------------------
# The Gram matrix H of an anchor graph on a card, factorised there for each α that is asked for.
#
# A card factorises thousands of landmarks in milliseconds in float64, where conjugate gradients on
# a processor take a second.


GPU_ROWS_AT_ONCE = 1024
"""Labelled rows that are solved for at once: together they take less than a factor."""


@dataclass(frozen=True)
class CardSystem(DenseSystem):
    """A dense system whose matrix and factors are on a card.

    Attributes
    ----------
    device : str
        A device of torch.
    """

    device: str = "cuda"

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        torch, factor = sys.modules["torch"], self._factor(alpha)
        energies = np.empty(features.shape[0])
        for start in range(0, len(energies), GPU_ROWS_AT_ONCE):
            rows = features[start : start + GPU_ROWS_AT_ONCE]
            columns = self._there((rows.toarray() if sparse.issparse(rows) else rows).T)
            half = torch.linalg.solve_triangular(factor, columns, upper=False)
            energies[start : start + GPU_ROWS_AT_ONCE] = (half * half).sum(0).cpu().numpy()
        return (1.0 - alpha) * alpha / self.radius * energies

    def _solved(self, alpha: float, right: np.ndarray) -> np.ndarray:
        torch = sys.modules["torch"]
        columns = self._there(right.reshape(len(right), -1))
        solved = torch.cholesky_solve(columns, self._factor(alpha)).cpu().numpy()
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved.reshape(right.shape))

    def _made(self, alpha: float) -> Any:
        system = self._gram() * (-alpha / self.radius)
        system.diagonal().add_(1.0)
        return sys.modules["torch"].linalg.cholesky(system)

    def _there(self, array: np.ndarray) -> Any:
        place = self.device.removeprefix("torch:")
        return sys.modules["torch"].as_tensor(np.ascontiguousarray(array), device=place)

    def _gram(self) -> Any:
        """H on the card; a sparse one is spread out there."""
        gram = self.sums.gram
        if not sparse.issparse(gram):
            return self._there(gram)
        rank = gram.shape[0]
        places = np.repeat(np.arange(rank), np.diff(gram.indptr)) * rank + gram.indices
        values = self._there(gram.data)
        dense = values.new_zeros(rank * rank)
        dense[self._there(places)] = values
        return dense.reshape(rank, rank)
