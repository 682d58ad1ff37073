"""The compiled search for the landmarks nearest to each row.

Landmarks stand in panels of a few vectors, which the first cache holds while rows pass by. Of
equally near landmarks the first is taken, as everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from biglp._lowrank.compiled.blocks import fixed, room_for
from biglp._lowrank.compiled.loops import compile_loop
from biglp._lowrank.compiled.registers import LANES, MOST_VECTORS, ROWS
from biglp._lowrank.compiled.tiles import distances, lowest_bit, take_least

ROWS_AT_ONCE = 16 * ROWS
"""Rows that pass a panel before the next one comes: what the second cache holds."""


class Panels(NamedTuple):
    """Landmarks as they are searched."""

    landmarks: np.ndarray  # (panels, m, width), times −2
    lengths: np.ndarray  # (panels · width,), ‖l‖²; infinite where there is no landmark


def panels(landmarks: np.ndarray) -> Panels:
    """Cut landmarks into panels, in their own type."""
    k, m = landmarks.shape
    width = MOST_VECTORS * LANES * 4 // landmarks.dtype.itemsize
    n_panels = -(-k // width)
    padded = np.zeros((n_panels * width, m), landmarks.dtype)
    padded[:k] = landmarks * landmarks.dtype.type(-2)
    lengths = np.full(n_panels * width, np.inf, landmarks.dtype)
    lengths[:k] = np.einsum("ij,ij->i", landmarks, landmarks)
    cut = padded.reshape(n_panels, width, m).transpose(0, 2, 1)
    return Panels(np.ascontiguousarray(cut), lengths)


def nearest(rows: np.ndarray, searched: Panels, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the ``count`` nearest landmarks of each row, and ‖x − l‖² − ‖x‖².

    Where a row is not finite, neither are its distances.
    """
    dtype, n_rows = searched.landmarks.dtype, len(rows)
    if n_rows < ROWS:
        longer = np.zeros((ROWS, rows.shape[1]), dtype)
        longer[:n_rows] = rows
        columns, values = nearest(longer, searched, count)
        return columns[:n_rows], values[:n_rows]
    columns = np.zeros((n_rows, count), np.int32)
    values = np.full((n_rows, count), np.inf, dtype)
    width = searched.landmarks.shape[2]
    (tile,) = room_for(((ROWS, width),), dtype)
    (bits,) = room_for(((ROWS,),), np.dtype(np.int64))
    _search(fixed(rows, dtype), tuple(searched), (tile, bits), columns, values)
    return columns, values


@compile_loop
def _search(rows: Any, searched: Any, room: Any, columns: Any, values: Any) -> None:
    found, bits = room
    n_rows, m = rows.shape
    n_panels, _, width = searched[0].shape
    count = values.shape[1]
    for at in range(0, n_rows, ROWS_AT_ONCE):
        for panel in range(n_panels):
            for first in range(at, min(at + ROWS_AT_ONCE, n_rows), ROWS):
                begin = min(first, n_rows - ROWS)
                beside = (panel * m * width, panel * width, m)
                places = (begin * m, m, *beside, begin * count + count - 1, count)
                if distances(rows, searched, places, values, room) == 0:
                    continue
                # Rows that were looked at before, because the last group is moved up, are done.
                for r in range(first - begin, ROWS):
                    row, left = begin + r, bits[r]
                    if panel == 0:  # all are nearer than none: take the nearest out
                        for j in range(count):
                            columns[row, j], values[row, j] = take_least(found, r * width)
                        continue
                    while left != 0:
                        c = lowest_bit(left)
                        left &= left - 1
                        distance = found[r, c]
                        j = count - 1
                        if not distance < values[row, j]:
                            continue
                        while j > 0 and values[row, j - 1] > distance:
                            values[row, j] = values[row, j - 1]
                            columns[row, j] = columns[row, j - 1]
                            j -= 1
                        values[row, j] = distance
                        columns[row, j] = panel * width + c
