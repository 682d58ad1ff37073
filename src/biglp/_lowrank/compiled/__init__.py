"""Compiled sweeps: a few rows at a time go through all steps while they are in the first cache.

NumPy goes over a block once for each step (norms, product, subtraction, exponential, sums), and a
block is larger than the caches near a core. The loops here (``pip install "biglp[fast]"``) go over
it once a sweep. They round differently from NumPy in the last digits, so that one way is
chosen for a whole fit, by the size of the problem alone, and told to all processes, to the
checkpoint and to the report.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from contextlib import suppress
from functools import cache
from typing import Any

from biglp._core.errors import MissingExtraError

WORTHWHILE = 8e9
"""Multiplications of a fit from which on the seconds saved are more than loading numba takes."""
WORTHWHILE_PAIRS = 6e8
"""The same for rows times landmarks of which only the nearest are kept."""
MOST_FEATURES = 2048
"""Features up to which a few landmarks stay in the second cache while rows pass by."""
MOST_LANDMARKS = 256
"""Landmarks up to which rows and sums are small enough for the first caches; for more, BLAS, which
cuts its matrices for all caches, is as quick."""
FEW_COLUMNS = 32
"""Features up to which BLAS is as quick with their Gram matrix, which fits the first cache."""
LOADED_BYTES = 64 << 20
"""What numba and the compiled loops take of memory."""


def is_worthwhile(n_rows: int, n_features: int, k: int) -> bool:
    """Whether a fit of dense rows with k landmarks is to be done by the compiled loops."""
    multiplications = float(n_rows) * k * (n_features + k)
    return k <= MOST_LANDMARKS and multiplications >= WORTHWHILE and vector_lanes() > 0


def is_search_worthwhile(n_rows: int, n_features: int, k: int) -> bool:
    """Whether the compiled search is to find the nearest of k landmarks in a fit of dense rows."""
    pairs = float(n_rows) * k
    return n_features <= MOST_FEATURES and pairs >= WORTHWHILE_PAIRS and vector_lanes() > 0


def load_early() -> None:
    """Load numba in a thread of its own while BLAS works; whoever needs it waits for it."""
    threading.Thread(target=_load, name="biglp-load").start()


def _load() -> None:
    with suppress(Exception):  # raised again where it is needed
        importlib.import_module("biglp._lowrank.compiled.search")


@cache
def vector_lanes() -> int:
    """Numbers of four bytes in a vector of this processor; 0 where the loops cannot be used."""
    if importlib.util.find_spec("numba") is None:
        return 0
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 16
    return 8 if features.get("avx2") and features.get("fma") else 0


def compiled_blocks() -> Any:
    """Load the compiled loops.

    Raises
    ------
    MissingExtraError
        Where the fit began elsewhere with the loops, and this process cannot go on with them.
    """
    if not vector_lanes():
        raise MissingExtraError(
            "this fit was begun with compiled sweeps, by another process or before it was resumed, "
            "and here they cannot run: numba is not installed, or the processor has no AVX2. "
            'Install it with: pip install "biglp[fast]", or begin the fit anew without it.'
        )
    from biglp._lowrank.compiled import blocks

    return blocks


def compiled_search() -> Any:
    """Load the compiled search, as :func:`compiled_blocks` does the loops."""
    compiled_blocks()
    from biglp._lowrank.compiled import search

    return search
