"""The compiled loops of the sweeps: features, Gram matrix, and products of normalised features.

Letters are those of :mod:`biglp._lowrank.nystrom`. Matrices that a product reads by vectors are
padded with zeros to a whole number of them; a last group of rows that is too short is moved up, so
that a few rows are made twice, with the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from biglp._lowrank.fused.registers import LANES, MOST_VECTORS, ROWS, gaussians, product_of

SUMMED = 32
"""Groups of rows whose features are added in the type of the rows before float64 takes over."""


def _compile(function: Any = None, **options: Any) -> Any:
    if function is None:
        return lambda function: _compile(function, **options)
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep what was compiled: once a process, then
        return njit(**options)(function)


_one, _two, _three, _four = (product_of(n) for n in (1, 2, min(3, MOST_VECTORS), MOST_VECTORS))


@_compile
def _multiply(a: Any, b: Any, places: Any, out: Any, n_vectors: Any, lanes: Any) -> None:
    """A product of ``ROWS`` rows and any number of vectors, as many at a time as registers hold."""
    a_first, a_row, a_step, b_first, b_step, depth, out_first, out_row = places
    while n_vectors > 0:
        here = (a_first, a_row, a_step, b_first, b_step, depth, out_first, out_row)
        if n_vectors >= MOST_VECTORS:
            _four(a, b, here, out)
        elif n_vectors == 1:
            _one(a, b, here, out)
        elif n_vectors == 2:
            _two(a, b, here, out)
        else:
            _three(a, b, here, out)
        n_vectors -= MOST_VECTORS
        b_first += MOST_VECTORS * lanes
        out_first += MOST_VECTORS * lanes


@_compile(fastmath={"reassoc", "contract"})
def _dot(rows: Any, i: Any, others: Any, j: Any) -> Any:
    """Product of row i and row j of another matrix. A view of a row would be counted and freed."""
    total = rows[i, 0] * others[j, 0]
    for c in range(1, rows.shape[1]):
        total += rows[i, c] * others[j, c]
    return total


@_compile
def fill(rows: Any, tables: Any, room: Any, out: Any, sums: Any) -> Any:
    """Features of a block and their column sums; returns whether all rows are finite.

    Parameters
    ----------
    rows : ndarray of shape (b, m), b ≥ ROWS
    tables : tuple of ndarrays
        2γ·Lᵀ (m × padded k), γ‖l‖², T (k × padded r, or 0 × 0 without mixing), and γ.
    room : tuple of ndarrays
        Of shape (ROWS, padded k), (ROWS, padded r), (ROWS,) and (p,).
    out : ndarray of shape (b, p)
    sums : ndarray of shape (p,), float64
        Added to.
    """
    landmarks, lengths, root, gamma = tables
    kernel, mixed, norms, partial = room
    n_rows, m = rows.shape
    width, rank, p = landmarks.shape[1], root.shape[1], out.shape[1]
    lanes = LANES * 4 // rows.itemsize
    finite = True
    made = kernel if rank == 0 else mixed
    partial[:] = 0
    groups = 0
    for first in range(0, n_rows, ROWS):
        begin = min(first, n_rows - ROWS)
        # Reading a group in order first is what brings it into the cache.
        for r in range(ROWS):
            norms[r] = _dot(rows, begin + r, rows, begin + r) * gamma[0]
            finite &= norms[r] < np.inf
        places = (begin * m, m, 1, 0, width, m, 0, width)
        _multiply(rows, landmarks, places, kernel, width // lanes, lanes)
        for r in range(ROWS):
            gaussians(kernel, lengths, norms[r], (r * width, width // lanes))
        if rank > 0:
            places = (0, width, 1, 0, rank, root.shape[0], 0, rank)
            _multiply(kernel, root, places, mixed, rank // lanes, lanes)
        for r in range(ROWS):
            for c in range(p):
                out[begin + r, c] = made[r, c]
        for r in range(first - begin, ROWS):
            for c in range(p):
                partial[c] += made[r, c]
        groups += 1
        if groups == SUMMED or first + ROWS >= n_rows:
            for c in range(p):
                sums[c] += partial[c]
            partial[:] = 0
            groups = 0
    return finite


@_compile
def gram(features: Any, weights: Any, limits: Any, room: Any, sums: Any) -> Any:
    """F̄ᵀF̄ and F̄ᵀ1; returns False, early, where a degree is suspect.

    Parameters
    ----------
    features : ndarray of shape (b, p)
    weights : ndarray of shape (1, p)
        d_i = f_i · weights.
    limits : ndarray of shape (2,)
        The degree from which on a row is not looked at more closely; 1.
    room : tuple of ndarrays
        Zeros of shape (rows at once, padded p), (padded p, padded p) and (padded p,).
    sums : tuple of float64 ndarrays
        Zeros of shape (p, p) and (p,).
    """
    tile, square, partial = room
    matrix, totals = sums
    n_rows, p = features.shape
    at_once, width = tile.shape
    lanes = LANES * 4 // features.itemsize
    for first in range(0, n_rows, at_once):
        count = min(at_once, n_rows - first)
        partial[:] = 0
        for r in range(count):
            degree = _dot(features, first + r, weights, 0)
            if not degree > limits[0]:
                return False
            factor = limits[1] / np.sqrt(degree)
            for c in range(p):
                tile[r, c] = features[first + r, c] * factor
                partial[c] += tile[r, c]
        for i in range(0, width, ROWS):
            begin = min(i, width - ROWS)
            left = begin // lanes * lanes
            places = (begin, 1, width, left, width, count, begin * width + left, width)
            _multiply(tile, tile, places, square, (width - left) // lanes, lanes)
        for i in range(p):
            totals[i] += partial[i]
            for j in range(i, p):
                matrix[i, j] += square[i, j]
    for i in range(p):
        for j in range(i):
            matrix[i, j] = matrix[j, i]
    return True


@_compile
def scores(features: Any, table: Any, limits: Any, room: Any, out: Any) -> Any:
    """F̄·C; returns False, early, where a degree is suspect.

    Parameters
    ----------
    features : ndarray of shape (b, p), b ≥ ROWS
    table : ndarray of shape (p, padded c + 1)
        C, and the weights of :func:`gram` in the next column.
    limits : ndarray of shape (2,)
    room : ndarray of shape (ROWS, padded c + 1)
    out : ndarray of shape (b, c)
    """
    n_rows, p = features.shape
    n_columns, width = out.shape[1], table.shape[1]
    lanes = LANES * 4 // features.itemsize
    for first in range(0, n_rows, ROWS):
        begin = min(first, n_rows - ROWS)
        places = (begin * p, p, 1, 0, width, p, 0, width)
        _multiply(features, table, places, room, width // lanes, lanes)
        for r in range(ROWS):
            degree = room[r, n_columns]
            if not degree > limits[0]:
                return False
            factor = limits[1] / np.sqrt(degree)
            for c in range(n_columns):
                out[begin + r, c] = room[r, c] * factor
    return True
