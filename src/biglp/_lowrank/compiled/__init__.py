"""Compiled sweeps: a few rows at a time go through all steps while they are in the first cache.

NumPy goes over a block once for each step (norms, product, subtraction, exponential, sums), and a
block is larger than the caches near a core. The loops here (``pip install "biglp[fast]"``) go over
it once a sweep. They round differently from NumPy in the last digits, so that one way is
chosen for a whole fit, by the size of the problem alone, and told to all processes, to the
checkpoint and to the report.

Which way that is, is asked here. The search, the features and their sums go it
(:mod:`biglp._lowrank.kernels`,
:mod:`biglp._lowrank.features`).
"""

from __future__ import annotations

from typing import Any

from biglp._core.errors import MissingExtraError
from biglp._core.jit import vector_lanes

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
    from biglp._lowrank.compiled import blocks

    return blocks


def compiled_search() -> Any:
    """Load the compiled search, as :func:`compiled_blocks` does the loops."""
    if not can_run():
        raise _cannot_run()
    from biglp._lowrank.compiled import search

    return search


def _cannot_run() -> MissingExtraError:
    return MissingExtraError(
        "this fit was begun with compiled sweeps, by another process or before it was resumed, "
        "and here they cannot run: llvmlite is not installed, or the processor has no AVX2. "
        'Install it with: pip install "biglp[fast]", or begin the fit anew without it.'
    )
