"""Products and sums over a block that a GPU does faster in kernels of its own."""

from __future__ import annotations

import sys

import numpy as np
from scipy import sparse

from biglp._core import fused
from biglp._core.arrays import Array, Ties, is_torch

GRAM_ROWS = 1 << 14
"""Rows of a tensor whose products are added in its own precision."""


def column_sums(array: Array) -> Array:
    """Sum of every column.  (b, r) → (r,)."""
    if sparse.issparse(array):
        return np.asarray(array.sum(axis=0)).ravel()
    if isinstance(array, Ties):
        return array.column_sums()
    if is_torch(array):  # blocks are large on a card: float32 would lose digits in the sum
        found = fused.column_sums(array)
        return array.sum(0, dtype=sys.modules["torch"].float64) if found is None else found
    # A product with ones is several times faster than NumPy's sum over the first axis.
    return np.ones_like(array[:, 0]) @ array


def gram_matrix(array: Array) -> Array:
    """Products of all columns with each other.  (b, r) → (r, r)."""
    if isinstance(array, Ties):
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
