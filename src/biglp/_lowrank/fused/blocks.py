"""The compiled loops on the arrays of a block: tables, room to work in, and what comes of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from biglp._core.arrays import column_sums
from biglp._lowrank.base import NonFiniteRowsError
from biglp._lowrank.fused import loops
from biglp._lowrank.fused.registers import LANES, ROWS

TILE_BYTES = 128 << 10
FEWEST_AT_ONCE = 64
"""Rows that are added up at once: what the second cache holds beside the rest, and enough to be
worth a float64 addition of the whole matrix."""


class Tables(NamedTuple):
    """What features are made from; the fields are those of :func:`.loops.fill`."""

    landmarks: np.ndarray
    lengths: np.ndarray
    root: np.ndarray
    gamma: np.ndarray


def tables(landmarks: np.ndarray, bandwidth: float, root: np.ndarray | None) -> Tables:
    """Tables of a Nyström factor, in the type of its landmarks."""
    dtype, gamma = landmarks.dtype, 0.5 / bandwidth**2
    lengths = gamma * np.einsum("ij,ij->i", landmarks, landmarks)
    return Tables(
        _padded((landmarks * (2.0 * gamma)).T, dtype),
        _padded(lengths[None], dtype)[0],
        np.zeros((0, 0), dtype) if root is None else _padded(root, dtype),
        np.array([gamma], dtype),
    )


def features(
    rows: np.ndarray, made_from: Tables, n_columns: int, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Features of a block, and their column sums in float64.

    Raises
    ------
    NonFiniteRowsError
        When a row holds NaN, infinity or values too large to square.
    """
    dtype, n_rows = made_from.landmarks.dtype, len(rows)
    if n_rows < ROWS:
        longer = np.zeros((ROWS, rows.shape[1]), dtype)
        longer[:n_rows] = rows
        found, _ = features(longer, made_from, n_columns)
        return found[:n_rows], column_sums(found[:n_rows].astype(np.float64))
    if out is None:
        out = np.empty((n_rows, n_columns), dtype)
    width, mixed = made_from.landmarks.shape[1], made_from.root.shape[1]
    room = (
        _zeros((ROWS, width), dtype),
        _zeros((ROWS, mixed), dtype),
        np.zeros(ROWS, dtype),
        _zeros((n_columns,), dtype),
    )
    sums = np.zeros(n_columns)
    if not loops.fill(_fixed(rows, dtype), tuple(made_from), room, out, sums):
        raise NonFiniteRowsError
    return out, sums


def gram(
    found: np.ndarray, weights: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """F̄ᵀF̄ and F̄ᵀ1 of a block; None where a degree is at most ``least`` and has to be looked at."""
    dtype, p = found.dtype, found.shape[1]
    width = _padded_width(p, dtype)
    at_once = max(TILE_BYTES // (width * dtype.itemsize), FEWEST_AT_ONCE)
    room = (
        _zeros((at_once, width), dtype),
        _zeros((width, width), dtype),
        _zeros((width,), dtype),
    )
    sums = np.zeros((p, p)), np.zeros(p)
    limits = np.array([least, 1.0], dtype)
    found = _fixed(found, dtype)
    return sums if loops.gram(found, weights.astype(dtype)[None], limits, room, sums) else None


def scores(
    found: np.ndarray, weights: np.ndarray, least: float, coefficients: np.ndarray
) -> np.ndarray | None:
    """F̄·C of a block; None as in :func:`gram`, or where there are too few rows."""
    if len(found) < ROWS:
        return None
    dtype = found.dtype
    table = _padded(np.column_stack([coefficients, weights]), dtype)
    out = np.empty((len(found), coefficients.shape[1]), dtype)
    room = _zeros((ROWS, table.shape[1]), dtype)
    limits = np.array([least, 1.0], dtype)
    return out if loops.scores(_fixed(found, dtype), table, limits, room, out) else None


def _fixed(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The array, in rows one after the other and read only, so that loops are compiled once."""
    view = np.require(array, dtype, ["C", "A"]).view()
    view.flags.writeable = False
    return view


def _padded_width(n_columns: int, dtype: np.dtype[Any]) -> int:
    lanes = LANES * 4 // dtype.itemsize
    return -(-max(n_columns, ROWS) // lanes) * lanes


def _padded(matrix: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    padded = _zeros((len(matrix), _padded_width(matrix.shape[1], dtype)), dtype)
    padded[:, : matrix.shape[1]] = matrix
    return padded


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros that begin on a cache line: a vector across two of them is read twice."""
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    room = np.zeros(n_bytes + 64, dtype=np.uint8)
    first = -room.ctypes.data % 64
    return room[first : first + n_bytes].view(dtype).reshape(shape)
