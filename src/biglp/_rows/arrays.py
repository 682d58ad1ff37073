"""Rows that are already in memory, or on a GPU: arrays, CSR matrices, tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import TORCH_TYPES, Rows, beside
from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows.options import ReadOptions
from biglp._rows.prepared import PreparedRows
from biglp._rows.source import Encoding, Source, check_shape
from biglp._transforms.base import Chain, Fill


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


class TensorSource(Source):
    """A dense torch tensor (n, m), which may be CuPy's, JAX's or Numba's; its rows stay there."""

    def __init__(self, tensor: Any, name: str = "tensor") -> None:
        self._tensor = tensor.detach()
        kind = str(tensor.dtype).removeprefix("torch.")
        kind = "float16" if kind == "bfloat16" else kind  # the other half precision
        if kind not in TORCH_TYPES:
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


def fill_missing(source: Source, options: ReadOptions) -> Source:
    """Fill missing values as the options or an earlier encoding say; else return the source."""
    known = options.encoding
    if known is not None:
        if known.n_features != source.n_features or not known.takes_arrays:
            raise BadRowsError(
                f"{source.name} has {source.n_features} features without names, but the model was "
                f"fitted on {known.n_inputs} columns ({known.n_features} features); give a table "
                "with the same columns."
            )
        # What sparse rows leave out is 0, not missing.
        plain = source.dtype.kind == "f" and not source.is_sparse and source.device == "cpu"
        if known.fillings is None or not plain or options.strict:
            return source
        fill = Fill(np.array(known.fillings, dtype=np.float64))
    elif options.missing != "mean" or source.dtype.kind != "f":
        return source
    elif source.device != "cpu":
        raise ParameterError(
            f"missing='mean' cannot be used with {source.name} on {source.device}: missing values "
            "are filled in the computer's memory; give X.cpu(), or fill them on the GPU first."
        )
    elif source.is_sparse:
        raise ParameterError(
            f"missing='mean' cannot be used with {source.name}: what a sparse matrix leaves out "
            "is 0, not missing."
        )
    else:
        at_once = max((8 << 20) // (source.n_features * source.dtype.itemsize), 1)
        starts = range(0, source.n_rows, at_once)
        pieces = (source.read(start, min(start + at_once, source.n_rows)) for start in starts)
        fill = Fill.from_pieces(pieces, source.n_features, source.name)
    filled = PreparedRows(source, source.dtype, Chain([fill]))
    # The means go with the encoding to the model.
    means = tuple(fill.means.tolist())
    filled.encoding = Encoding(None, source.n_features, source.dtype.str, means=means)
    return filled
