"""Rows that are on a device already: torch tensors, and arrays of CuPy, JAX or Numba."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from biglp._core.arrays import Rows, beside, to_numpy
from biglp._core.errors import BadRowsError
from biglp._sources.base import Source
from biglp._sources.formats.arrays import check_shape

KNOWN = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


class TensorSource(Source):
    """A dense two-dimensional torch tensor; its rows stay where they are.

    Parameters
    ----------
    tensor : torch tensor of shape (n, m)
    name : str
        What messages call it.
    """

    def __init__(self, tensor: Any, name: str = "tensor") -> None:
        self._tensor = tensor.detach()
        self.dtype = _numpy_type(tensor, name)
        check_shape(np.broadcast_to(np.zeros((), self.dtype), tuple(tensor.shape)), name)
        self.n_rows, self.n_features = tensor.shape
        self.name = name
        place = str(tensor.device)
        self.device = place if place.startswith("cuda") else f"torch:{place}"

    def read(self, start: int, stop: int) -> Rows:
        """Return a view of the rows."""
        return self._tensor[start:stop]

    def take(self, indices: np.ndarray) -> Rows:
        """Return a copy of the rows, on the device."""
        return self._tensor[beside(self._tensor, indices)]

    def fingerprint(self) -> dict[str, Any]:
        """As of the same rows in the computer's memory."""
        return _OnHost(self).fingerprint()


class _OnHost(Source):
    """Rows of a tensor, brought to the computer's memory when they are asked for."""

    def __init__(self, source: TensorSource) -> None:
        self._source = source
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.dtype = source.dtype

    def read(self, start: int, stop: int) -> Rows:
        return to_numpy(self._source.read(start, stop))

    def take(self, indices: np.ndarray) -> Rows:
        return to_numpy(self._source.take(indices))


def _numpy_type(tensor: Any, name: str) -> np.dtype[Any]:
    """NumPy's name for the type of a tensor; bfloat16 counts as the other half precision."""
    kind = str(tensor.dtype).removeprefix("torch.")
    kind = "float16" if kind == "bfloat16" else kind
    if kind not in KNOWN:
        raise BadRowsError(
            f"{name} holds {kind}, which cannot be used; give real numbers such as float32."
        )
    return np.dtype(kind)


def torch_type(dtype: np.dtype[Any]) -> Any:
    """The type of torch that has the name of a NumPy type; None where there is none."""
    known = dtype.name in KNOWN and dtype.isnative
    return getattr(sys.modules["torch"], dtype.name) if known else None
