"""Rows that are already in memory, or on a GPU: arrays, CSR matrices, tensors."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, beside
from biglp._core.errors import BadRowsError
from biglp._rows.source import Source


class ArraySource(Source):
    """A dense two-dimensional array."""

    def __init__(
        self,
        array: np.ndarray,
        name: str = "array",
        feature_names: tuple[str, ...] | None = None,
    ) -> None:
        self._array = check_shape(array, name)
        self.n_rows, self.n_features = array.shape
        self.dtype = array.dtype
        self.name = name
        self.feature_names = feature_names

    def read(self, start: int, stop: int) -> Rows:
        return self._array[start:stop]

    def take(self, indices: np.ndarray) -> Rows:
        return np.asarray(self._array[indices])


class CsrSource(Source):
    """A sparse matrix in compressed row form; blocks stay sparse."""

    is_sparse = True

    def __init__(self, matrix: Any, name: str = "sparse matrix") -> None:
        self._matrix = check_shape(matrix, name).tocsr()
        self.n_rows, self.n_features = matrix.shape
        self.dtype = matrix.dtype
        self.name = name

    def read(self, start: int, stop: int) -> Rows:
        return self._matrix[start:stop]

    def take(self, indices: np.ndarray) -> Rows:
        return self._matrix[indices]


def check_shape(array: Any, name: str, may_be_empty: bool = False) -> Any:
    """Return an array that can be a table of numbers; refuse others."""
    if array.ndim > 2:
        n_rows, *sizes = array.shape
        raise BadRowsError(
            f"X must be two-dimensional, rows × features; {name} has shape {tuple(array.shape)}. "
            f"Reshape your data with X.reshape(len(X), -1) if it has {n_rows:,} rows, such as "
            f"images, which then have {math.prod(sizes):,} features each."
        )
    if array.ndim != 2:
        raise BadRowsError(
            f"X must be two-dimensional, rows × features; {name} has shape {tuple(array.shape)}. "
            "Reshape your data with X.reshape(-1, 1) if it has one feature, "
            "or X.reshape(1, -1) if it is one row."
        )
    if array.shape[0] == 0 and not may_be_empty:
        raise BadRowsError(
            f"Found array with 0 sample(s) (shape={tuple(array.shape)}) while a minimum of 1 is "
            f"required: {name} holds no rows. Check how it was filtered or read."
        )
    if array.shape[1] == 0:
        raise BadRowsError(
            f"Found array with 0 feature(s) (shape={tuple(array.shape)}) while a minimum of 1 is "
            f"required: {name} holds no columns. Check which columns were chosen."
        )
    if array.dtype.kind not in "fiub":
        raise BadRowsError(
            f"X must hold real numbers; {name} holds {array.dtype}"
            + (". Complex data not supported." if array.dtype.kind == "c" else ".")
        )
    if sparse.issparse(array) and array.format not in ("csr", "csc", "coo", "bsr", "lil", "dok"):
        raise BadRowsError(
            f"{name}: sparse format {array.format!r} cannot be turned into CSR rows."
        )
    return array


KNOWN = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


class TensorSource(Source):
    """A dense torch tensor (n, m), which may be CuPy's, JAX's or Numba's; its rows stay there."""

    def __init__(self, tensor: Any, name: str = "tensor") -> None:
        self._tensor = tensor.detach()
        kind = str(tensor.dtype).removeprefix("torch.")
        kind = "float16" if kind == "bfloat16" else kind  # the other half precision
        if kind not in KNOWN:
            raise BadRowsError(
                f"{name} holds {kind}, which cannot be used; give real numbers such as float32."
            )
        self.dtype = np.dtype(kind)
        check_shape(np.broadcast_to(np.zeros((), self.dtype), tuple(tensor.shape)), name)
        self.n_rows, self.n_features = tensor.shape
        self.name = name
        device = str(tensor.device)
        self.device = device if device.startswith("cuda") else f"torch:{device}"

    def read(self, start: int, stop: int) -> Rows:
        return self._tensor[start:stop]

    def take(self, indices: np.ndarray) -> Rows:
        return self._tensor[beside(self._tensor, indices)]


def torch_type(dtype: np.dtype[Any]) -> Any:
    """The type of torch that has the name of a NumPy type; None where there is none."""
    known = dtype.name in KNOWN and dtype.isnative
    return getattr(sys.modules["torch"], dtype.name) if known else None
