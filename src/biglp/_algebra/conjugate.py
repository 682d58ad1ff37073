"""Conjugate gradients for (I − sH)·X = B with a sparse, non-negative H, all columns at once.

Anchor graphs tie each row to a few landmarks, so H has some dozens of entries a row, whatever k is.
A Cholesky factor of it fills up (a tenth of all cells at k = 5,000), while a step of conjugate
gradients costs one product with H, and their number is bound by √(1/(1−s)), whatever k is.

Three things are added to the textbook:

- **Digits of small numbers.** X is non-negative and spans many powers of ten between landmarks near
  and far from any label, but conjugate gradients are exact only beside the largest number of a
  column. :func:`solve_in_layers` keeps what is large, moves it to the right-hand side and solves
  for the rest, whose largest number then sets the scale, until nothing is left. Parts of the graph
  without labels get exact zeros, because every vector of the iteration is zero there.
- **Long graphs.** Many layers mean that labels are far away, in a graph of few ties that is long
  and thin or falls apart. There a factor does not fill up, so elimination takes over: 0.1 s where
  13 layers took 4 (KDD Cup 99, k = 4,000, 35 classes). It keeps the digits of small numbers by
  itself, because all it does with entries off the diagonal is to add numbers of one sign.
- **Energies.** bᵀ(I − sH)⁻¹b = Σ γ_j‖r_j‖² (Hestenes and Stiefel, 1952): a sum of positive terms
  that converges twice as fast as the solution itself. For the same reason they are found in single
  precision first: with a solution x that is nearly right, 2·bᵀx − xᵀ(I − sH)x lacks only
  ρᵀ(I − sH)⁻¹ρ ≤ ‖ρ‖² / (1 − s), where ρ = b − (I − sH)x is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

TOLERANCE = 1e-14
"""Residual, as a fraction of the right-hand side."""
ENERGY_TOLERANCE, SINGLE_TOLERANCE = 1e-12, 1e-6
ENERGY_MISSING = 1e-10
"""Share of an energy that single precision may leave out; else it is found in double."""
LAYER = 1e-4
"""Numbers down to this fraction of the largest are settled in one layer."""
MAX_LAYERS = 80
"""Enough for everything that float64 can hold."""
LAYERS_BY_STEPS = 3
"""Layers after which a graph counts as long."""
FEW_TIES, MOST_ELIMINATED = 24, 10_000
"""Entries of H in a row on the mean, and rows, up to which elimination is tried."""


def solve_in_layers(
    gram: Any, share: float, targets: np.ndarray, layer: float = LAYER
) -> np.ndarray:
    """Solve (I − share·H)·X = B for non-negative H, small numbers as exactly as large ones.

    H (k, k) sparse, symmetric, with s·ρ(H) < 1; B (k, c); X is non-negative where B is. Numbers
    down to ``layer`` of the largest are settled at once.
    """
    if (targets < 0).any():  # layers are for numbers of one sign; centred values have both
        above = solve_in_layers(gram, share, np.maximum(targets, 0.0), layer)
        return above - solve_in_layers(gram, share, np.maximum(-targets, 0.0), layer)
    solution = np.zeros_like(targets)
    free = np.ones(targets.shape, dtype=bool)
    right = targets
    few_ties = gram.nnz <= FEW_TIES * len(targets) and len(targets) <= MOST_ELIMINATED
    for layers in range(MAX_LAYERS):
        columns = np.flatnonzero(right.any(axis=0))
        if not len(columns):
            break
        if few_ties and layers == LAYERS_BY_STEPS:
            return _by_elimination(gram, share, targets)
        solved, _ = conjugate_gradients(gram, share, right[:, columns], free[:, columns])
        settled = solved >= layer * solved.max(axis=0)
        settled &= (solved > 0) & free[:, columns]
        solution[:, columns] = np.where(settled, solved, solution[:, columns])
        free[:, columns] &= ~settled
        right = np.where(free, targets + share * (gram @ solution), 0.0)
    return solution


def _by_elimination(gram: Any, share: float, targets: np.ndarray) -> np.ndarray:
    """Solve by a sparse factor, without pivots: the diagonal is what is large in I − share·H."""
    from scipy.sparse.linalg import splu

    system = (sparse.eye_array(len(targets)) - share * gram).tocsc()
    symmetric = {"SymmetricMode": True}
    factor = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
    size = targets.max(axis=0, initial=0.0)
    # Columns are scaled to size 1: numbers far below it would underflow.
    return np.asarray(factor.solve(targets / np.where(size > 0, size, 1.0)) * size)


def energies(gram: Any, share: float, vectors: np.ndarray) -> np.ndarray:
    """bᵀ(I − share·H)⁻¹b for every column b.  (k, l) → (l,)."""
    size = np.abs(vectors).max(axis=0, initial=0.0)
    scaled = vectors / np.where(size > 0, size, 1.0)
    single = type(gram)(gram, dtype=np.float32)
    solved = conjugate_gradients(single, share, scaled.astype(np.float32))[0].astype(np.float64)
    residual = scaled - solved
    residual += share * (gram @ solved)
    energy = _column_products(solved, scaled) + _column_products(solved, residual)
    missing = _column_products(residual, residual)
    again = ~(missing <= ENERGY_MISSING * (1.0 - share) * energy)
    energy *= size**2
    if again.any():
        energy[again] = conjugate_gradients(gram, share, vectors[:, again], energy_only=True)[1]
    return energy


def conjugate_gradients(
    gram: Any,
    share: float,
    right: np.ndarray,
    free: np.ndarray | None = None,
    *,
    energy_only: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve column by column, each for the entries that are ``free``; the others are zero.

    Gives X (k, c), of no use when ``energy_only``, and BᵀX column by column (c,).
    """
    residual = right.copy() if free is None else np.where(free, right, 0.0)
    # Columns are scaled to size 1: numbers far below it would underflow when they are squared.
    size = np.abs(residual).max(axis=0, initial=0.0)
    residual /= np.where(size > 0, size, 1.0)
    direction = residual.copy()
    solution = np.zeros((1, 1) if energy_only else right.shape, dtype=residual.dtype)
    squared = _column_products(residual, residual)
    energy, first = np.zeros_like(squared), squared
    tolerance = TOLERANCE if residual.dtype == np.float64 else SINGLE_TOLERANCE
    share = residual.dtype.type(share)  # a double would make all numbers double
    for _ in range(10 * len(right) + 100):  # rounding may take it past the k steps of theory
        image = gram @ direction
        image *= -share
        image += direction
        if free is not None:
            image *= free
        # A column that has converged goes on with the others, until there is nothing left of it.
        step = _ratio(squared, _column_products(direction, image))
        energy += step * squared
        if not energy_only:
            solution += step * direction
        image *= step
        residual -= image
        before, squared = squared, _column_products(residual, residual)
        if energy_only:  # what is still missing is at most ‖r‖² / (1 − s)
            converged = squared <= ENERGY_TOLERANCE * (1.0 - share) * energy
        else:
            converged = squared <= tolerance**2 * first
        if converged.all():
            break
        direction *= _ratio(squared, before)
        direction += residual
    return solution * size, energy * size**2


def _column_products(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Inner product of each pair of columns.  (k, c), (k, c) → (c,)."""
    return np.einsum("ij,ij->j", one, other)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Ratio of two sums of squares, 0 where the lower one has vanished."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
