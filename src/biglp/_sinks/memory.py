"""Answers in memory, for the estimators: the computer's, or a device's where the rows are there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from biglp._compiled import largest_column
from biglp._core.arrays import Array, is_torch, to_numpy
from biglp._core.device import download
from biglp._sinks.base import Sink


class ArraySink(Sink):
    """Answers kept in memory: the label and the probabilities of every row.

    Parameters
    ----------
    classes : ndarray of shape (c,)
        Labels that are numbers are kept where the probabilities are, others in an array.
    n_rows : int
    dtype : numpy.dtype
        Type of the probabilities.
    device : str
        Where the rows are, and so the answers: "cpu" makes NumPy arrays, anything else tensors.
    """

    takes_tensors = True

    def __init__(
        self, classes: np.ndarray, n_rows: int, dtype: np.dtype[Any], device: str = "cpu"
    ) -> None:
        self._classes = classes
        self.labels: Array = _room((n_rows,), classes.dtype, device)
        self.probabilities: Array = _room((n_rows, len(classes)), dtype, device)
        on_host = [self.labels, self.probabilities] if device == "cpu" else []
        self.n_bytes = sum(array.nbytes for array in on_host)

    def write(self, start: int, answers: Array) -> None:
        """Keep the answers of the rows from ``start`` on."""
        stop, codes = start + len(answers), largest_column(answers)
        _put(answers, self.probabilities, start, stop)
        classes: Any = self._classes
        if is_torch(codes) and _torch_type(classes.dtype) is not None:
            classes = sys.modules["torch"].as_tensor(classes, device=codes.device)
        _put(classes[codes if is_torch(classes) else to_numpy(codes)], self.labels, start, stop)


class ValuesSink(Sink):
    """Values of regression kept in memory; ``device`` as of :class:`ArraySink`."""

    takes_tensors = True

    def __init__(self, n_rows: int, n_targets: int, device: str = "cpu") -> None:
        self.values: Array = _room((n_rows, n_targets), np.dtype(np.float64), device)
        self.n_bytes = self.values.nbytes if device == "cpu" else 0

    def write(self, start: int, answers: Array) -> None:
        """Keep the values of the rows from ``start`` on."""
        _put(answers, self.values, start, start + len(answers))


def _room(shape: tuple[int, ...], dtype: np.dtype[Any], device: str) -> Array:
    """An array, or a tensor on a device where it has such numbers."""
    if device == "cpu" or _torch_type(dtype) is None:
        return np.empty(shape, dtype=dtype)
    place = device.removeprefix("torch:")
    return sys.modules["torch"].empty(shape, dtype=_torch_type(dtype), device=place)


def _torch_type(dtype: np.dtype[Any]) -> Any:
    """The type of torch for numbers; None for text and objects, and where torch is not loaded."""
    return getattr(sys.modules.get("torch"), dtype.name, None) if dtype.kind in "bif" else None


def _put(values: Array, room: Array, start: int, stop: int) -> None:
    """Write values to rows of a room, from wherever they are."""
    if is_torch(values) and not is_torch(room):
        download(values, room[start:stop])
    elif is_torch(room) and not is_torch(values):
        room[start:stop] = sys.modules["torch"].as_tensor(values)
    else:
        room[start:stop] = values
