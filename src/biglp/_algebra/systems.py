"""Label propagation in closed form (Eq. 2.4, 2.5) for every α, once the Gram matrix is known.

Notation: H = F̄ᵀF̄ = U·diag(λ)·Uᵀ (r × r), B = F̄ᵀY (r × c), t = F̄ᵀ1 (r), S = F̄F̄ᵀ.

    F = (1−α)(I − αS)⁻¹Y = (1−α)Y + F̄·C,   C = α(1−α)(I − αH)⁻¹B = U·g(λ)·UᵀB,
    g(λ) = α(1−α) / (1 − αλ).

The second form is the matrix inversion lemma: only r × r numbers are solved for. Forming H costs
O(nr²), which the paper's O(k³ + nk) leaves out. Four classes answer the same four questions:

- :class:`Spectrum` decomposes a dense H once, O(r³), and every α is then cheap;
- :class:`DenseSystem` factorises I − αH for each of a few α, which is quicker;
- :class:`GpuSystem` does that on a GPU;
- :class:`SparseSystem` solves with a sparse H by conjugate gradients for each α, where labels are
  few: with thousands of landmarks that takes a second where the decomposition takes minutes.

The questions: ``coefficients`` is C; ``solved`` is C with exact zeros where no label reaches;
``towards_all`` (r) is what features are multiplied by to give what a row gives to all rows;
``returns``, (l, r) → (l), is what comes back to each row of its own label, α(1−α)·f(I − αH)⁻¹fᵀ.

The paper needs αρ(S) < 1, and ρ(S) ≤ 1 holds only when W ≥ 0, which Nyström does not give. The
largest eigenvalue, or a bound, is known here for free: its maximum with 1 is the ``radius`` by
which S is divided.
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
from biglp._algebra.sums import GramSums

MOST_LABELLED, MOST_SOLVED = 5000, 1000
"""Labelled rows that leave-one-out looks at; and where each of them has to be solved for. More
change nothing and cost time."""
KEPT_FACTORS = 2
"""Factors that are kept: those of the α that a committee asks for, side by side."""
DENSE_ROWS_AT_ONCE, GPU_ROWS_AT_ONCE = 256, 1024
"""Labelled rows that are solved for at once; on a GPU together they take less than a factor."""
COLUMNS_EACH, COLUMNS_AT_ONCE = 32, 64
"""Labelled rows that a thread solves for at once, which its cache can hold, and all threads."""
DENSE_RANK = 2000
"""Rank up to which the decomposition is quick whatever else is asked."""
DENSE_WORK = 10_000
"""And up to √(this · ℓ): solving for each of many labelled rows would take longer."""
ROUNDING = 1e-4
"""Rows of an anchor graph add up to 1 but for float32's rounding, and so does the bound on ρ(S)."""
FACTOR_RANK = 200
"""Rank from which on factors for a few α are quicker than all eigenvectors."""
MOST_FACTORED = 5000
"""Rank up to which a sparse H may be factorised: a factor takes 200 MB there."""
STEP_PASSES, PRODUCTS_A_STEP = 144, 260
"""What all steps of a solve take for an entry of H beside r³ of a factor, as measured on MNIST,
KDD Cup 99 and simulated rows with 2,500 to 4,000 landmarks (docs/benchmarks.md)."""
MOST_ON_GPU = 8192
"""Rank up to which H is dense on a GPU, where that takes three times half a gigabyte."""


def take_apart(
    sums: GramSums,
    n_labelled: int | None = None,
    device: str = "cpu",
    n_threads: int = 1,
    *,
    few_alphas: bool = False,
) -> System:
    """Prepare the Gram matrix for any α.

    ``n_labelled`` rows will be left out in turn; without it all eigenvectors are taken, or a sparse
    matrix is left sparse. A large matrix is factorised on ``device``. ``n_threads`` may solve for
    labelled rows side by side; the numbers are the same. ``few_alphas`` says that no more than a
    few α will be asked for: factors are quicker then however many labels there are.
    """
    rank, is_sparse = sums.gram.shape[0], sparse.issparse(sums.gram)
    on_gpu = device != "cpu" and rank <= MOST_ON_GPU
    labels = n_labelled or 0
    if is_sparse:
        factored = on_gpu or is_factored(rank, labels, sums.targets.shape[1], sums.gram.nnz)
    else:
        factored = few_alphas or labels <= rank
    factored = factored and n_labelled is not None and rank >= FACTOR_RANK
    if not (factored or is_sparse):
        return Spectrum.from_sums(sums)
    # For any v > 0 the largest eigenvalue of an H ≥ 0 is at most max_i (Hv)_i / v_i (Collatz), and
    # of an anchor graph t = Φ̄ᵀ1 is the eigenvector, so that the bound is the value.
    entries, bound = sums.gram.data if is_sparse else sums.gram, float("inf")
    if not (entries.min(initial=0.0) < 0 or (sums.totals < 0).any()):
        used = sums.totals > 0
        grown = (sums.gram @ sums.totals)[used] / sums.totals[used]
        bound = float(grown.max(initial=1.0))
    radius = max(1.0, bound)
    if factored and bound <= 1.0 + ROUNDING:
        return GpuSystem(radius, sums, device) if on_gpu else DenseSystem(radius, sums)
    return SparseSystem(radius, sums, n_threads) if is_sparse else Spectrum.from_sums(sums)


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


@dataclass(frozen=True)
class Spectrum:
    """H taken apart, once for all α."""

    values: np.ndarray  # λ, increasing, divided by the radius and therefore within [0, 1]: (r,)
    vectors: np.ndarray  # U, (r, r)
    radius: float
    sums: GramSums
    most_labelled: ClassVar[int] = MOST_LABELLED

    @classmethod
    def from_sums(cls, sums: GramSums) -> Spectrum:
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
        return self.vectors @ (self.gain(alpha)[:, None] * self.rotated_targets)

    def solved(self, alpha: float) -> np.ndarray:
        """C by Cholesky's factor, not from the spectrum.

        Where H ≥ 0 (anchors, linear, GLNP) that factor has the signs of an M-matrix, so that
        nothing cancels, C ≥ 0 to the last bit, and parts of the graph without labels get exact
        zeros. Eigenvectors would mix such parts and leave rounding errors that look like labels.
        """
        share = alpha / self.radius
        system = np.eye(len(self.sums.gram)) - share * self.sums.gram
        return (1.0 - alpha) * share * linalg.solve(system, self.sums.targets, assume_a="pos")

    def towards_all(self, alpha: float) -> np.ndarray:
        return self.vectors @ (self.gain(alpha) * self.rotated_totals)

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        rotated = features @ self.vectors
        return (rotated * rotated) @ self.gain(alpha)


@dataclass(frozen=True)
class DenseSystem:
    """Cholesky's factor L·Lᵀ = I − αH for each α that is asked for; H of an anchor graph.

    It costs a thirtieth of all eigenvectors, and a committee asks for few α. A sparse H becomes
    dense in its factor only. f(I − αH)⁻¹fᵀ = ‖L⁻¹fᵀ‖².
    """

    radius: float
    sums: GramSums
    _factors: dict[float, Any] = field(
        default_factory=dict, repr=False, compare=False, kw_only=True
    )
    _solutions: dict[float, np.ndarray] = field(
        default_factory=dict, repr=False, compare=False, kw_only=True
    )

    @property
    def most_labelled(self) -> int:
        """Labelled rows that leave-one-out looks at."""
        return MOST_SOLVED if sparse.issparse(self.sums.gram) else MOST_LABELLED

    def coefficients(self, alpha: float) -> np.ndarray:
        solution = self._solutions.get(alpha)
        if solution is None:  # the answer asks for it, and leave-one-out again
            solution = self._solve(alpha, self.sums.targets)
            keep_latest(self._solutions, alpha, solution)
        return solution

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        return self._solve(alpha, self.sums.totals)

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        factor, (n_rows, rank) = self._factor(alpha), features.shape
        is_sparse = sparse.issparse(features)
        # L⁻¹ takes as long as solves for two thirds of r rows; each row then takes hardly any.
        inverse = factor.inverse() if is_sparse and 3 * n_rows > 2 * rank else None
        lengths = np.empty(n_rows)
        for start in range(0, n_rows, DENSE_ROWS_AT_ONCE):
            rows = features[start : start + DENSE_ROWS_AT_ONCE]
            if inverse is None:
                half = factor.half(rows.toarray().T if is_sparse else rows.T)
                lengths[start : start + DENSE_ROWS_AT_ONCE] = np.einsum("ij,ij->j", half, half)
            else:
                half = rows @ inverse
                lengths[start : start + DENSE_ROWS_AT_ONCE] = np.einsum("ij,ij->i", half, half)
        return (1.0 - alpha) * alpha / self.radius * lengths

    def _solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        """α(1−α)(I − αH)⁻¹·R."""
        solved = self._factor(alpha).solve(right)
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved)

    def _factor(self, alpha: float) -> Any:
        factor = self._factors.get(alpha)
        if factor is None:
            keep_latest(self._factors, alpha, None)  # room first: r × r numbers each
            gram, share = self.sums.gram, alpha / self.radius
            if sparse.issparse(gram):
                system = gram.toarray()
                system *= -share
            else:
                system = gram * -share
            system.flat[:: len(system) + 1] += 1.0
            factor = self._factors[alpha] = Cholesky.factorise(system)
        return factor


def keep_latest(latest: dict[float, Any], alpha: float, value: Any) -> None:
    """Keep a value for an α, and of the others only the latest; threads may do so at once.

    Each α is asked for by one thread.
    """
    for other in list(latest)[: max(len(latest) + 1 - KEPT_FACTORS, 0)]:
        latest.pop(other, None)
    latest[alpha] = value


@dataclass(frozen=True)
class GpuSystem(DenseSystem):
    """A dense system whose matrix and factors are on a GPU.

    It factorises thousands of landmarks in milliseconds in float64, where conjugate gradients on a
    processor take a second.
    """

    device: str = "cuda"

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        torch, factor = sys.modules["torch"], self._factor(alpha)
        lengths = np.empty(features.shape[0])
        for start in range(0, len(lengths), GPU_ROWS_AT_ONCE):
            rows = features[start : start + GPU_ROWS_AT_ONCE]
            columns = self._to_gpu((rows.toarray() if sparse.issparse(rows) else rows).T)
            half = torch.linalg.solve_triangular(factor, columns, upper=False)
            lengths[start : start + GPU_ROWS_AT_ONCE] = (half * half).sum(0).cpu().numpy()
        return (1.0 - alpha) * alpha / self.radius * lengths

    def _solve(self, alpha: float, right: np.ndarray) -> np.ndarray:
        torch = sys.modules["torch"]
        columns = self._to_gpu(right.reshape(len(right), -1))
        solved = torch.cholesky_solve(columns, self._factor(alpha)).cpu().numpy()
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved.reshape(right.shape))

    def _factor(self, alpha: float) -> Any:
        gram, factor = self.sums.gram, self._factors.get(alpha)
        if factor is not None:
            return factor
        keep_latest(self._factors, alpha, None)
        if sparse.issparse(gram):  # spread out there: the zeros need not travel
            rank = gram.shape[0]
            indices = np.repeat(np.arange(rank), np.diff(gram.indptr)) * rank + gram.indices
            values = self._to_gpu(gram.data)
            dense = values.new_zeros(rank * rank)
            dense[self._to_gpu(indices)] = values
            system = dense.reshape(rank, rank) * (-alpha / self.radius)
        else:
            system = self._to_gpu(gram) * (-alpha / self.radius)
        system.diagonal().add_(1.0)
        factor = self._factors[alpha] = sys.modules["torch"].linalg.cholesky(system)
        return factor

    def _to_gpu(self, array: np.ndarray) -> Any:
        device = self.device.removeprefix("torch:")
        return sys.modules["torch"].as_tensor(np.ascontiguousarray(array), device=device)


@dataclass(frozen=True)
class SparseSystem:
    """A sparse, non-negative H of an anchor graph, solved with for each α."""

    radius: float
    sums: GramSums
    n_threads: int = 1  # that may solve for labelled rows side by side
    most_labelled: ClassVar[int] = MOST_SOLVED
    _solutions: dict[float, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def coefficients(self, alpha: float) -> np.ndarray:
        if alpha not in self._solutions:
            share = alpha / self.radius
            solved = solve_in_layers(self.sums.gram, share, self.sums.targets)
            solution = (1.0 - alpha) * share * solved
            keep_latest(self._solutions, alpha, solution)
            return solution
        return self._solutions[alpha]

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        share = alpha / self.radius
        solved = solve_in_layers(self.sums.gram, share, self.sums.totals[:, None])
        return (1.0 - alpha) * share * solved[:, 0]

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        share = alpha / self.radius

        def of_rows(start: int) -> np.ndarray:
            rows = features[start : start + COLUMNS_EACH]
            rows = rows.toarray() if sparse.issparse(rows) else rows
            return energies(self.sums.gram, share, np.ascontiguousarray(rows.T))

        starts = range(0, features.shape[0], COLUMNS_EACH)
        with ThreadPoolExecutor(min(self.n_threads, COLUMNS_AT_ONCE // COLUMNS_EACH)) as pool:
            energy = np.concatenate([np.empty(0), *pool.map(of_rows, starts)])
        return (1.0 - alpha) * share * energy


System = Spectrum | SparseSystem | DenseSystem


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
    """The factor L of a positive definite matrix."""

    lower: np.ndarray  # L; above its diagonal is what was there before: (r, r)
    inverses: list[np.ndarray]  # L_kk⁻¹ of each group of columns: (b, b) each

    @classmethod
    def factorise(cls, matrix: np.ndarray) -> Cholesky:
        """Factorise a matrix, in place; only its lower half is looked at."""
        inverses = []
        for start in range(0, len(matrix), COLUMNS):
            stop = start + COLUMNS
            own, below = matrix[start:stop, start:stop], matrix[stop:, start:stop]
            if start:
                before = matrix[start:stop, :start].T
                matrix[start:, start:stop] -= matrix[start:, :start] @ before
            own[:] = np.linalg.cholesky(own)
            inverse, _ = linalg.lapack.dtrtri(own, lower=1)
            inverses.append(inverse)
            below[:] = below @ inverse.T
        return cls(matrix, inverses)

    def half(self, right: np.ndarray) -> np.ndarray:
        """L⁻¹·R, so that RᵀA⁻¹R is the product of this with itself.  (r, q)."""
        solved = np.array(right, order="C")
        for number, inverse in enumerate(self.inverses):
            start = number * COLUMNS
            group = solved[start : start + COLUMNS]
            group -= self.lower[start : start + COLUMNS, :start] @ solved[:start]
            group[:] = inverse @ group
        return solved

    def solve(self, right: np.ndarray) -> np.ndarray:
        """A⁻¹·R.  (r, q)."""
        solved = self.half(right)
        for number in reversed(range(len(self.inverses))):
            start, stop = number * COLUMNS, (number + 1) * COLUMNS
            group = solved[start:stop]
            group -= self.lower[stop:, start:stop].T @ solved[stop:]
            group[:] = self.inverses[number].T @ group
        return solved

    def inverse(self) -> np.ndarray:
        """L⁻ᵀ, an upper triangle: rows with features f times this are (L⁻¹f)ᵀ.  (r, r)."""
        result = np.zeros_like(self.lower)
        for number, inverse in enumerate(self.inverses):
            start, stop = number * COLUMNS, (number + 1) * COLUMNS
            for left in range(0, start, GROUP):  # what is below the diagonal adds nothing
                right = min(left + GROUP, start)
                before = result[left:right, left:start] @ self.lower[start:stop, left:start].T
                result[left:right, start:stop] = -(before @ inverse.T)
            result[start:stop, start:stop] = inverse.T
        return result
