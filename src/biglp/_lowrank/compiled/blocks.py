"""The compiled loops on the arrays of a block: tables, room to work in, and what comes of it."""

from __future__ import annotations

import math
import threading
from typing import Any, NamedTuple

import numpy as np

from biglp._core.arrays import column_sums
from biglp._lowrank.base import NonFiniteRowsError
from biglp._lowrank.compiled import loops
from biglp._lowrank.compiled.registers import LANES, ROWS
from biglp._propagate.normalise import Normalisation

TILE_BYTES = 256 << 10
FEWEST_AT_ONCE = 64
"""Rows that are added up at once: what the second cache holds beside the rest, and enough to be
worth a float64 addition of the whole matrix."""


_own = threading.local()  # what a thread works in


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
    room = _room(((ROWS, width), (ROWS, mixed), (ROWS,), (2, max(width, mixed))), dtype)
    sums = np.zeros(n_columns)
    if not loops.fill(_fixed(rows, dtype), tuple(made_from), room, out, sums):
        raise NonFiniteRowsError
    return out, sums


def gram(found: np.ndarray, normalisation: Normalisation) -> tuple[np.ndarray, np.ndarray, int]:
    """Normalise features in place; return F̄ᵀF̄, F̄ᵀ1 and how many rows were repaired."""
    dtype, p = found.dtype, found.shape[1]
    width = _padded_width(p, dtype)
    at_once = max(TILE_BYTES // (width * dtype.itemsize), FEWEST_AT_ONCE)
    room = _room(((at_once, width), (width, width), (p,)), dtype)
    sums = np.zeros((p, p)), np.zeros(p)
    weights = np.asarray(normalisation.weights, dtype)[None]
    least, floor = normalisation.least, normalisation.floor
    limits = np.array([least, floor, normalisation.stretch, 1.0], dtype)
    n_repaired = loops.gram(found, (weights, normalisation.metric), limits, room, sums)
    return *sums, int(n_repaired)


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


def _room(shapes: tuple[tuple[int, ...], ...], dtype: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    """Arrays to work in, zeros at first, the same for every call of a thread."""
    rooms: dict[Any, tuple[np.ndarray, ...]] = _own.__dict__
    key = f"{shapes}, {dtype}"
    if key not in rooms:
        rooms[key] = tuple(_zeros(shape, dtype) for shape in shapes)
    return rooms[key]


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros that begin on a cache line: a vector across two of them is read twice."""
    n_bytes = math.prod(shape) * dtype.itemsize
    room = np.zeros(n_bytes + 64, dtype=np.uint8)
    first = -room.ctypes.data % 64
    return room[first : first + n_bytes].view(dtype).reshape(shape)
