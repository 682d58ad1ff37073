"""The few array questions that NumPy and torch answer differently.

Block functions are written once and take their namespace from their arguments: on NumPy arrays
they run on the processor, on torch tensors wherever the tensor lives. Torch takes seconds to load,
so :func:`require_device` loads it when a device needs it, and nothing else here does: a tensor can
only exist when torch has been loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.errors import InputError, MissingExtraError, NonFiniteRowsError, ParameterError

# --------------------------------------------------------------------------------------------------
# A matrix with a few entries a row on a device: what CSR is to rows in NumPy.
#
# torch's own sparse matrices have no quick product of a matrix with itself, and a dense matrix of
# 10 M rows and 1,000 landmarks takes 40 GB where its entries take 240 MB.


ROWS_AT_ONCE, PAIR_BYTES = 1 << 18, 40
"""Rows whose pairs of entries are held at once, and what a pair takes."""
DENSE_WIDTH = 8192
"""Columns up to which sums over all pairs are added up in a dense matrix, of half a gigabyte."""


class RowEntries:
    """A matrix (b × k) of which each row has s entries, in different columns.

    ``columns`` and ``weights`` are tensors (b, s).
    """

    def __init__(self, columns: Any, weights: Any, width: int) -> None:
        self.columns, self.weights = columns, weights
        self.shape = (weights.shape[0], width)

    def __getitem__(self, rows: Any) -> RowEntries:
        """Some of the rows."""
        if isinstance(rows, np.ndarray):
            rows = sys.modules["torch"].as_tensor(rows, device=self.weights.device)
        return RowEntries(self.columns[rows], self.weights[rows], self.shape[1])

    def __matmul__(self, matrix: Any) -> Any:
        """Product with a small tensor, dense.  (b, k)·(k, c) → (b, c)."""
        return sys.modules["torch"].nn.functional.embedding_bag(
            self.columns, matrix.contiguous(), per_sample_weights=self.weights, mode="sum"
        )

    def column_sums(self) -> Any:
        """Sum of every column, in float64.  (k,)."""
        weights = self.weights.double().reshape(-1)
        return self.columns.reshape(-1).bincount(weights, self.shape[1])

    def gram(self) -> Any:
        """ZᵀZ in float64: a dense tensor, or CSR where it would be too large.  (k, k)."""
        width, n_entries = self.shape[1], self.weights.shape[1]
        if width > DENSE_WIDTH:
            host = self.csr().astype(np.float64)
            return host.T @ host
        total: Any = 0.0
        for start in range(0, self.shape[0], ROWS_AT_ONCE):
            columns = self.columns[start : start + ROWS_AT_ONCE].long()
            weights = self.weights[start : start + ROWS_AT_ONCE].double()
            # Each pair of entries once; the other half is the same.
            pairs = [(i, j) for i in range(n_entries) for j in range(i, n_entries)]
            first, second = (list(part) for part in zip(*pairs, strict=True))
            cells = columns[:, first] * width + columns[:, second]
            products = weights[:, first] * weights[:, second]
            total = total + cells.reshape(-1).bincount(products.reshape(-1), width * width)
        half = total.reshape(width, width)
        return half + half.T - half.diagonal().diag()

    def csr(self) -> Any:
        """The same matrix in the computer's memory."""
        b, s = self.weights.shape
        columns = self.columns.cpu().numpy().astype(np.int32).ravel()
        starts = np.arange(0, b * s + 1, s, dtype=np.int32)
        return sparse.csr_matrix((self.weights.cpu().numpy().ravel(), columns, starts), self.shape)


# --------------------------------------------------------------------------------------------------


Array = Any
"""A NumPy array or a torch tensor."""

Rows = Any
"""A block of rows: a NumPy array, a torch tensor or a SciPy CSR matrix."""

DLPACK_CUDA = (2, 13)
"""DLPack's numbers for memory of a CUDA GPU, plain and managed."""
TORCH_TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
"""Types of numbers that NumPy and torch call alike."""
LARGE_BYTES = 1 << 20
"""What is brought from a card through page-locked memory."""


def is_torch(array: Array) -> bool:
    """Tell whether ``array`` is a torch tensor, without importing torch."""
    return type(array).__module__.partition(".")[0] == "torch"


def namespace(array: Array) -> Any:
    """Return the module (numpy or torch) whose functions work on ``array``."""
    return sys.modules["torch"] if is_torch(array) else np


def like(array: Rows, constant: np.ndarray) -> Array:
    """Bring a small NumPy constant to the type, precision and place of ``array``."""
    array = array.weights if isinstance(array, RowEntries) else array
    if is_torch(array):
        dtype = array.dtype if array.dtype.is_floating_point else None
        return sys.modules["torch"].as_tensor(constant, dtype=dtype, device=array.device)
    return np.asarray(constant, dtype=array.dtype)


def beside(array: Rows, constant: np.ndarray) -> Array:
    """Bring a small NumPy array to the place of ``array``; its own type is kept."""
    if is_torch(array):
        return sys.modules["torch"].as_tensor(constant, device=array.device)
    return constant


def widened(rows: Rows) -> Rows:
    """Tensors of half precision in float32, in which all arithmetic is done; others as they are."""
    return rows.float() if is_torch(rows) and rows.element_size() == 2 else rows


def largest_size(rows: Rows) -> float:
    """Size of the largest entry, with either sign."""
    entries = rows.data if sparse.issparse(rows) else rows
    return float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))


def smallest(entries: Array, count: int) -> tuple[Array, Array]:
    """Columns and values of the ``count`` smallest entries of each row, the smallest first.

    ``entries`` is used up. Taking the minimum a few times is several times faster than a partial
    sort for the handful of neighbours that are wanted.
    """
    if is_torch(entries):
        values, columns = entries.topk(count, dim=1, largest=False)
        return columns, values
    rows = np.arange(entries.shape[0])
    columns = np.empty((len(rows), count), dtype=np.int32)
    values = np.empty((len(rows), count), dtype=entries.dtype)
    for rank in range(count):
        best = entries.argmin(axis=1)
        columns[:, rank] = best
        values[:, rank] = entries[rows, best]
        if rank + 1 < count:
            entries[rows, best] = np.inf
    return columns, values


def values_per_row(sample: Rows) -> float:
    """Numbers that are stored for a row: all of a dense one, three for each entry of a sparse."""
    if sparse.issparse(sample):
        return 3.0 * sample.nnz / sample.shape[0]
    return float(sample.shape[1])


def squared_norms(rows: Rows) -> Array:
    """‖x‖² of every row.  (b, m) → (b,)."""
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return namespace(rows).einsum("ij,ij->i", rows, rows)


def to_numpy(array: Any) -> Any:
    """Bring a small result back as a NumPy array or CSR matrix; leave other objects alone."""
    if isinstance(array, RowEntries):
        return array.csr()
    if not is_torch(array):
        return array
    # NumPy has no bfloat16; float32 holds every number that it holds.
    array = array.float() if str(array.dtype) == "torch.bfloat16" else array
    array = array.detach()
    if array.is_cuda and array.nbytes >= LARGE_BYTES:
        # A card copies several times faster to pages that cannot move; they are given back here.
        pinned = sys.modules["torch"].empty(array.shape, dtype=array.dtype, pin_memory=True)
        return pinned.copy_(array).numpy().copy()
    return array.cpu().numpy()


def to_dense(rows: Rows) -> np.ndarray:
    """Bring a small set of rows, dense or sparse, from any device, as a dense NumPy array."""
    rows = to_numpy(rows)
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def device_tensor(array: Any) -> Any | None:
    """The torch tensor of numbers that are on a CUDA GPU, without a copy; None for all others.

    Besides torch's tensors these are arrays of whatever speaks DLPack (CuPy, JAX) or has CUDA's
    array interface (Numba).
    """
    if is_torch(array):
        strided = str(getattr(array, "layout", "")) == "torch.strided"
        return array if strided and array.device.type == "cuda" else None
    spoken = hasattr(type(array), "__dlpack_device__")
    if spoken:
        try:
            device = int(array.__dlpack_device__()[0])
        except (TypeError, ValueError):  # pyarrow's before release 26, where values are missing
            return None
        if device not in DLPACK_CUDA:
            return None
    if not spoken and not hasattr(array, "__cuda_array_interface__"):
        return None
    try:
        require_device("cuda")
    except (MissingExtraError, ParameterError):
        return None  # refused later, with what to call
    torch = sys.modules["torch"]
    return torch.from_dlpack(array) if spoken else torch.as_tensor(array, device="cuda")


def on_host(array: Any, name: str) -> Any:
    """Make a torch tensor on the processor a NumPy array; leave other objects alone."""
    if is_torch(array) and hasattr(array, "detach"):
        if str(array.layout) != "torch.strided":
            raise InputError(
                f"{name} is a torch tensor of layout {str(array.layout).removeprefix('torch.')}; "
                f"give {name}.to_dense(), or a scipy.sparse matrix."
            )
        if array.device.type != "cpu":
            raise _on_gpu(name, f"a torch tensor on {array.device}", f"{name}.cpu()")
        array = array.detach()
        # NumPy has no bfloat16; float32 holds every number that it holds.
        return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
    if hasattr(array, "__cuda_array_interface__"):
        kind = type(array)
        host = next((call for call in ("get", "copy_to_host") if hasattr(kind, call)), None)
        call = f"{name}.{host}()" if host else "a copy of it in the computer's memory"
        raise _on_gpu(name, f"an array on a GPU ({kind.__module__}.{kind.__qualname__})", call)
    return array


def _on_gpu(name: str, what: str, call: str) -> InputError:
    return InputError(
        f"{name} is {what}, and biglp reads it from the computer's memory; give {call}. "
        "X and y may stay on a GPU where torch sees it (pip install 'biglp[gpu]')."
    )


def to_csr(array: Array) -> Any:
    """Bring the entries of a torch matrix that are not zero as a CSR matrix; CSR stays CSR."""
    if sparse.issparse(array):
        return array
    places = array.nonzero()
    values = to_numpy(array[places[:, 0], places[:, 1]])
    row, column = to_numpy(places).T
    return sparse.csr_matrix((values, (row, column)), shape=tuple(array.shape))


def torch_type(dtype: np.dtype[Any]) -> Any:
    """The type of torch that has the name of a NumPy type; None where there is none."""
    known = dtype.name in TORCH_TYPES and dtype.isnative
    return getattr(sys.modules["torch"], dtype.name) if known else None


def to_device(rows: Rows, device: str) -> Rows:
    """Move a block of rows to ``device``: "cpu" is NumPy, anything else a torch device."""
    if device == "cpu":
        return rows
    torch = sys.modules["torch"]
    dense = rows.toarray() if sparse.issparse(rows) else rows
    if not dense.flags.writeable:
        dense = dense.copy()
    return torch.from_numpy(dense).to(device.removeprefix("torch:"))


def require_device(device: str, name: str = "device") -> str:
    """Check that ``device`` can be used and load torch when it needs it.

    "auto" stays what it is until the rows are known.
    """
    if device in ("cpu", "auto"):
        return device
    if not str(device).startswith(("cuda", "torch:")):
        raise ParameterError(
            f"{name}={device!r} is not known; use 'cpu', 'cuda', 'cuda:N' or 'auto' "
            "('torch:cpu' runs the GPU path on the processor)."
        )
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            f"{name}={device!r} needs torch, which is not installed; "
            'install it with: pip install "biglp[gpu]"'
        ) from error
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ParameterError(
            f"{name}={device!r} was asked for, but torch {torch.__version__} sees no CUDA GPU "
            "here; use device='cpu', or check the driver with nvidia-smi."
        )
    return device


def check_finite(values: Array) -> None:
    """Raise when a number computed from each row shows NaN, infinity or overflow in the row."""
    if not bool(namespace(values).isfinite(values).all()):
        raise NonFiniteRowsError


# --------------------------------------------------------------------------------------------------
# Columns of NumPy as Arrow's, as they lie in memory.
#
# pyarrow's own ways, ``pyarrow.array`` and ``to_pandas_dtype``, load pandas wherever it is
# installed, which takes longer than a small fit.


def as_arrow(column: np.ndarray) -> Any:
    """An Arrow array of the same values."""
    pa = sys.modules["pyarrow"]
    if column.dtype.kind == "U":
        return texts_as_arrow(column.tolist())
    if column.dtype.kind not in "iuf" or not column.dtype.isnative:
        return pa.array(column)
    kind, held = pa.from_numpy_dtype(column.dtype), pa.py_buffer(np.ascontiguousarray(column))
    return pa.Array.from_buffers(kind, len(column), [None, held])


def texts_as_arrow(texts: Sequence[str]) -> Any:
    """An Arrow array of texts."""
    pa, encoded = sys.modules["pyarrow"], [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), *buffers)
