"""Labels in one-dimensional arrays, of one file or of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from biglp._core.errors import LabelError
from biglp._sources.labels.codes import PIECE_ROWS, LabelCodes


class LabelArray(NamedTuple):
    """One label a row.

    Attributes
    ----------
    name : str
        What messages call it.
    shape : tuple of int
    dtype : numpy.dtype
    read : callable
        Returns the labels from row to row.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[int, int], np.ndarray]


def append_arrays(codes: LabelCodes, arrays: Sequence[LabelArray]) -> None:
    """Append the labels of arrays, one after the other, a piece at a time."""
    for array in arrays:
        if len(array.shape) != 1:
            raise LabelError(
                f"{array.name} has shape {array.shape}; labels need one dimension, one a row."
            )
        if array.dtype.kind not in "iufbUSOT":
            raise LabelError(f"{array.name} holds {array.dtype}; labels must be integers or text.")
    codes.expect(sum(array.shape[0] for array in arrays))
    for array in arrays:
        for start in range(0, array.shape[0], PIECE_ROWS):
            piece = array.read(start, min(start + PIECE_ROWS, array.shape[0]))
            codes.append(_texts(piece) if array.dtype.kind in "OT" else piece)


def _texts(piece: np.ndarray) -> list[str]:
    """Texts of any length, as HDF5 and Zarr store them."""
    return [
        value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
        for value in piece.tolist()
    ]
