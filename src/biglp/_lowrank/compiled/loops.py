"""The compiled loops of the sweeps: features with their sums, and the Gram matrix.

Letters are those of :mod:`biglp._lowrank.nystrom`. Matrices that a product reads by vectors are
padded with zeros to a whole number of them; a last group of rows that is too short is moved up, so
that a few rows are made twice, with the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from biglp._lowrank.compiled.registers import (
    LANES,
    MOST_VECTORS,
    ROWS,
    fetch,
    gaussians,
    product_of,
)

SUMMED = 32
"""Groups of rows whose features are added in the type of the rows before float64 takes over."""


def _compile(function: Any, **options: Any) -> Any:
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep what was compiled: once a process, then
        return njit(**options)(function)


def _compile_in_any_order(function: Any) -> Any:
    """Compile a sum that may be added by vectors."""
    return _compile(function, fastmath={"reassoc", "contract"})


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


@_compile_in_any_order
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
        Of shape (ROWS, padded k), (ROWS, padded r), (ROWS,) and (2, padded p or k).
    out : ndarray of shape (b, p)
    sums : ndarray of shape (p,), float64
        Added to.
    """
    landmarks, lengths, root, gamma = tables
    kernel, mixed, norms, partial = room
    n_rows, m = rows.shape
    width, rank, p = landmarks.shape[1], root.shape[1], out.shape[1]
    lanes, line = LANES * 4 // rows.itemsize, 64 // rows.itemsize
    finite = True
    partial[:] = 0
    groups = 0
    for first in range(0, n_rows, ROWS):
        begin = min(first, n_rows - ROWS)
        for i in range(ROWS * m, min(2 * ROWS, n_rows - begin) * m, line):
            fetch(rows, begin * m + i)  # the next group comes while this one is worked on
        for r in range(ROWS):
            norms[r] = _dot(rows, begin + r, rows, begin + r) * gamma[0]
            finite &= norms[r] < np.inf
        places = (begin * m, m, 1, 0, width, m, 0, width)
        _multiply(rows, landmarks, places, kernel, width // lanes, lanes)
        for r in range(ROWS):
            # Rows that were made before are not added again.
            wide = 0 if begin + r >= first else partial.shape[1]
            shifts = (norms[r], lengths)
            if rank == 0:
                to = (r * width, width // lanes, (begin + r) * p, p, wide)
                gaussians(kernel, shifts, to, out, partial)
            else:
                to = (r * width, width // lanes, r * width, width, partial.shape[1])
                gaussians(kernel, shifts, to, kernel, partial)
        if rank > 0:
            places = (0, width, 1, 0, rank, root.shape[0], 0, rank)
            _multiply(kernel, root, places, mixed, rank // lanes, lanes)
            for r in range(ROWS):
                for c in range(p):
                    out[begin + r, c] = mixed[r, c]
            for r in range(first - begin, ROWS):
                for c in range(p):
                    partial[0, c] += mixed[r, c]
        groups += 1
        if groups == SUMMED or first + ROWS >= n_rows:
            for c in range(p):
                sums[c] += partial[0, c]
            partial[:] = 0
            groups = 0
    return finite


@_compile
def _norm(features: Any, i: Any, metric: Any) -> Any:
    """Norm of the features of row i after mixing; few rows need it."""
    squared = 0.0
    for a in range(features.shape[1]):
        part = 0.0
        for b in range(features.shape[1]):
            part += metric[a, b] * features[i, b]
        squared += features[i, a] * part
    return features.dtype.type(np.sqrt(max(squared, 0.0)))


@_compile
def gram(features: Any, degrees: Any, limits: Any, room: Any, sums: Any) -> Any:
    """Normalise the features of a block in place, and find F̄ᵀF̄ and F̄ᵀ1.

    Parameters
    ----------
    features : ndarray of shape (b, p)
    degrees : tuple of ndarrays
        Of shape (1, p), with d_i = f_i · degrees; and of shape (p, p), with ‖f_i‖² = f_i · M · f_i
        for features after mixing.
    limits : ndarray of shape (4,)
        The degree up to which a row is looked at more closely; what its degree is at least, for
        each unit of the norm of its features; what mixing may make of their norm, at most; 1.
    room : tuple of ndarrays
        Of shape (rows at once, padded p), where columns from p on are zero, (padded p, padded p)
        and (p,).
    sums : tuple of float64 ndarrays
        Zeros of shape (p, p) and (p,).

    Returns
    -------
    n_repaired : int
    """
    weights, metric = degrees
    tile, square, partial = room
    matrix, totals = sums
    n_rows, p = features.shape
    at_once, width = tile.shape
    lanes = LANES * 4 // features.itemsize
    n_repaired = 0
    for first in range(0, n_rows, at_once):
        count = min(at_once, n_rows - first)
        partial[:] = 0
        for r in range(count):
            degree = _dot(features, first + r, weights, 0)
            if not degree > limits[0]:
                most = limits[2] * np.sqrt(_dot(features, first + r, features, first + r))
                if most == 0:
                    degree = limits[3]
                elif degree < limits[1] * most:
                    least = limits[1] * _norm(features, first + r, metric)
                    if degree < least:
                        degree = least
                        n_repaired += 1
            factor = limits[3] / np.sqrt(degree)
            for c in range(p):
                x = features[first + r, c] * factor
                features[first + r, c] = x
                tile[r, c] = x
                partial[c] += x
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
    return n_repaired
