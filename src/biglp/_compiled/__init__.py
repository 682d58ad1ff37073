"""Compiled sweeps: a few rows at a time go through all steps while they are in the first cache.

NumPy goes over a block once for each step (norms, product, subtraction, exponential, sums), and a
block is larger than the caches near a core. The loops in C (:mod:`.native`) go over it once a
sweep. They round differently from NumPy in the last digits, so that one way is chosen for a whole
fit, by its columns and landmarks alone, and told to all processes, to the checkpoint and to the
report.

Which way that is, is asked here. The search, the features and their sums go it
(:mod:`biglp._graph.kernels`, :mod:`biglp._graph.graph`).
"""

from __future__ import annotations

import sys

import numpy as np
from scipy import sparse

from biglp._compiled import gpu as fused
from biglp._compiled.native import can_run
from biglp._core.arrays import Array, RowEntries, is_torch

MOST_FEATURES = 2048
"""Features up to which the rows that pass a panel of landmarks stay in the second cache."""
MOST_LANDMARKS = 256
"""Landmarks up to which rows and sums are small enough for the first caches; for more, BLAS, which
cuts its matrices for all caches, is as quick."""
TARGET_BLOCK_BYTES = 32 << 20
"""Working set of a block of the compiled sweeps. They go over it once, a few rows at a time: it
need not fit a cache, and larger blocks are fewer steps of Python between them."""


def makes_features(n_features: int, k: int) -> bool:
    """Whether the compiled loops make and sum the features of a fit of dense rows."""
    return k <= MOST_LANDMARKS and can_run()


def searches(n_features: int, k: int) -> bool:
    """Whether the compiled search finds the nearest of k landmarks in a fit of dense rows."""
    return n_features <= MOST_FEATURES and can_run()


# --------------------------------------------------------------------------------------------------
# Products and sums over a block that a GPU does faster in kernels of its own.


GRAM_ROWS = 1 << 14
"""Rows of a tensor whose products are added in its own precision."""


def column_sums(array: Array) -> Array:
    """Sum of every column.  (b, r) → (r,)."""
    if sparse.issparse(array):
        return np.asarray(array.sum(axis=0)).ravel()
    if isinstance(array, RowEntries):
        return array.column_sums()
    if is_torch(array):  # blocks are large on a card: float32 would lose digits in the sum
        found = fused.column_sums(array)
        return array.sum(0, dtype=sys.modules["torch"].float64) if found is None else found
    # A product with ones is several times faster than NumPy's sum over the first axis.
    return np.ones_like(array[:, 0]) @ array


def gram_matrix(array: Array) -> Array:
    """Products of all columns with each other.  (b, r) → (r, r)."""
    if isinstance(array, RowEntries):
        return array.gram()
    if not is_torch(array):
        return array.T @ array  # the same array twice: BLAS does half the work
    # A few thousand rows in float32, then float64: one launch, and 100 M rows lose no digits.
    whole = array.shape[0] - array.shape[0] % GRAM_ROWS
    parts, rest = array[:whole].reshape(-1, GRAM_ROWS, array.shape[1]), array[whole:]
    total = (rest.T @ rest).double()
    return total + (parts.mT @ parts).double().sum(0) if whole else total


def largest_column(array: Array) -> Array:
    """Column of the largest entry of each row, the first of equals.  (b, c) → (b,)."""
    if is_torch(array):
        found = fused.largest(array)
        return array.argmax(1).int() if found is None else found
    if array.shape[1] == 2:  # NumPy's argmax is slow along a short axis
        return (array[:, 1] > array[:, 0]).astype(np.int32)
    return array.argmax(axis=1).astype(np.int32)
