"""Compiled sweeps: a few rows at a time go through all steps while they are in the first cache.

NumPy goes over a block once for each step (norms, product, subtraction, exponential, sums), and a
block is larger than the caches near a core. The loops here (``pip install "biglp[fast]"``) go over
it once a sweep. They round differently from NumPy in the last digits, so that one way is
chosen for a whole fit, by the size of the problem alone, and told to all processes, to the
checkpoint and to the report.

Which way that is, is asked here. The search, the features and their sums go it
(:mod:`biglp._graph.kernels`,
:mod:`biglp._graph.graph`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from scipy import sparse

from biglp._compiled import gpu as fused
from biglp._core.arrays import Array, RowEntries, is_torch
from biglp._core.errors import MissingExtraError

# --------------------------------------------------------------------------------------------------
# Functions that the compiler LLVM makes for this processor when they are needed.
#
# It comes with ``pip install "biglp[fast]"`` (llvmlite), is loaded in a twentieth of a second and
# compiles a function in as much or twice that, once a process.


P = ParamSpec("P")
T = TypeVar("T")
LOOPS = "compiled loops"
"""What whoever loads them calls them in its cost."""
COMPILER_BYTES = 16 << 20
"""What the compiler and what it has compiled take of memory."""


def has_compiler() -> bool:
    """Whether the compiler is installed; nothing is loaded."""
    return importlib.util.find_spec("llvmlite") is not None


@cache
def vector_lanes() -> int:
    """Numbers of four bytes in a vector of this processor; 0 where there is no compiler."""
    if not has_compiler():
        return 0
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 16
    return 8 if features.get("avx2") and features.get("fma") else 4


def compiled_once(make: Callable[P, T]) -> Callable[P, T]:
    """Remember what a function that compiles has made; threads that come meanwhile wait for it."""
    remembered, lock = cache(make), threading.Lock()

    @wraps(make)
    def once(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return remembered(*args, **kwargs)  # type: ignore[arg-type]

    return once


class Compiled:
    """A function of a module, compiled.

    Parameters
    ----------
    function : llvmlite.ir.Function
        It takes pointers, and returns nothing.
    """

    def __init__(self, function: Any) -> None:
        from llvmlite import binding

        with suppress(RuntimeError):  # needed before release 0.45 of llvmlite, and refused later
            binding.initialize()
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=3,
        )
        module = binding.parse_assembly(str(function.module))
        self._engine = binding.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(function.args))
        self._call = kind(self._engine.get_function_address(function.name))

    def __call__(self, *arrays: np.ndarray) -> None:
        """Call it with where arrays begin; other threads of Python go on meanwhile."""
        # A tenth of the time of ``ctypes.data``, which makes an object first.
        self._call(*(array.__array_interface__["data"][0] for array in arrays))


# --------------------------------------------------------------------------------------------------


WORTHWHILE = 8e9
"""Multiplications of a fit from which on the seconds saved are more than compiling takes."""
WORTHWHILE_PAIRS = 2.5e8
"""Pairs of rows and landmarks from which on the search for the nearest is worth compiling."""
TAKING_OUT = 200
"""Landmarks whose distances cost NumPy as much as taking the nearest few of a row out."""
MOST_FEATURES = 2048
"""Features up to which the rows that pass a panel of landmarks stay in the second cache."""
FEWEST_LANES = 8
"""Numbers in the vectors of processors that the loops are written for."""
MOST_LANDMARKS = 256
"""Landmarks up to which rows and sums are small enough for the first caches; for more, BLAS, which
cuts its matrices for all caches, is as quick."""
LOOPS_BYTES = 32 << 20
"""What the compiler and the loops of the sweeps take of memory."""
TARGET_BLOCK_BYTES = 32 << 20
"""Working set of a block of the compiled sweeps. They go over it once, a few rows at a time: it
need not fit a cache, and larger blocks are fewer steps of Python between them."""


def is_worthwhile(n_rows: int, n_features: int, k: int) -> bool:
    """Whether a fit of dense rows with k landmarks is to be done by the compiled loops."""
    multiplications = float(n_rows) * k * (n_features + k)
    return k <= MOST_LANDMARKS and multiplications >= WORTHWHILE and can_run()


def is_search_worthwhile(n_rows: int, n_features: int, k: int) -> bool:
    """Whether the compiled search is to find the nearest of k landmarks in a fit of dense rows."""
    many = float(n_rows) * (k + TAKING_OUT) >= WORTHWHILE_PAIRS
    return many and n_features <= MOST_FEATURES and can_run()


def can_run() -> bool:
    """Whether the compiler is here, and vectors are long enough."""
    return vector_lanes() >= FEWEST_LANES


def compiled_blocks() -> Any:
    """Load the compiled loops.

    Raises
    ------
    MissingExtraError
        Where the fit began elsewhere with the loops, and this process cannot go on with them.
    """
    if not can_run():
        raise _cannot_run()
    from biglp._compiled import cpu as blocks

    return blocks


def compiled_search() -> Any:
    """Load the compiled search, as :func:`compiled_blocks` does the loops."""
    if not can_run():
        raise _cannot_run()
    from biglp._compiled import cpu as search

    return search


def _cannot_run() -> MissingExtraError:
    return MissingExtraError(
        "this fit was begun with compiled sweeps, by another process or before it was resumed, "
        "and here they cannot run: llvmlite is not installed, or the processor has no AVX2. "
        'Install it with: pip install "biglp[fast]", or begin the fit anew without it.'
    )


# --------------------------------------------------------------------------------------------------
# Products and sums over a block that a GPU does faster in kernels of its own.


GRAM_ROWS = 1 << 14
"""Rows of a tensor whose products are added in its own precision."""


def column_sums(array: Array) -> Array:
    """Sum of every column.  (b, r) → (r,)."""
    if sparse.issparse(array):
        return np.asarray(array.sum(axis=0)).ravel()
    if isinstance(array, RowEntries):
        return array.column_sums()
    if is_torch(array):  # blocks are large on a card: float32 would lose digits in the sum
        found = fused.column_sums(array)
        return array.sum(0, dtype=sys.modules["torch"].float64) if found is None else found
    # A product with ones is several times faster than NumPy's sum over the first axis.
    return np.ones_like(array[:, 0]) @ array


def gram_matrix(array: Array) -> Array:
    """Products of all columns with each other.  (b, r) → (r, r)."""
    if isinstance(array, RowEntries):
        return array.gram()
    if not is_torch(array):
        return array.T @ array  # the same array twice: BLAS does half the work
    # A few thousand rows in float32, then float64: one launch, and 100 M rows lose no digits.
    whole = array.shape[0] - array.shape[0] % GRAM_ROWS
    parts, rest = array[:whole].reshape(-1, GRAM_ROWS, array.shape[1]), array[whole:]
    total = (rest.T @ rest).double()
    return total + (parts.mT @ parts).double().sum(0) if whole else total


def largest_column(array: Array) -> Array:
    """Column of the largest entry of each row, the first of equals.  (b, c) → (b,)."""
    if is_torch(array):
        found = fused.largest(array)
        return array.argmax(1).int() if found is None else found
    if array.shape[1] == 2:  # NumPy's argmax is slow along a short axis
        return (array[:, 1] > array[:, 0]).astype(np.int32)
    return array.argmax(axis=1).astype(np.int32)
