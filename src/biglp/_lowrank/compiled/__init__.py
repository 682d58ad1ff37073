"""Compiled sweeps: a few rows at a time go through all steps while they are in the first cache.

NumPy goes over a block once for each step (norms, product, subtraction, exponential, sums), and a
block is larger than the caches near a core. The loops here (``pip install "biglp[fast]"``) go over
it once a sweep. They round differently from NumPy in the last digits, so that one way is
chosen for a whole fit, by the size of the problem alone, and told to all processes, to the
checkpoint and to the report.

What is here goes that way: who searches, makes features or sums them calls it, and asks no more.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core import jit
from biglp._core.arrays import Array, Rows, like
from biglp._core.errors import MissingExtraError
from biglp._lowrank.kernels import gaussian, nearest_landmarks, searchable
from biglp._propagate.normalise import Normalisation

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
    return jit.vector_lanes() >= FEWEST_LANES


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


class Search:
    """The search for the landmarks (k, m) nearest to rows."""

    def __init__(self, landmarks: np.ndarray, compiled: bool) -> None:
        self._landmarks = landmarks
        self._loops: Any = compiled_search() if compiled else None

    @cached_property
    def _panels(self) -> Any:
        return self._loops.panels(self._landmarks)

    @cached_property
    def _searchable(self) -> Rows:
        return searchable(self._landmarks)

    def nearest(self, rows: Rows, count: int) -> tuple[Array, Array]:
        """Numbers of the ``count`` nearest, and ‖x − l‖² − ‖x‖².  (b, m) → (b, s), (b, s)."""
        if self._loops is not None and isinstance(rows, np.ndarray):
            columns, values = self._loops.nearest(rows, self._panels, count)
            return columns, values
        compared = self._searchable if sparse.issparse(rows) else self._landmarks
        return nearest_landmarks(rows, compared, count)


class Gaussians:
    """Gaussian similarities of rows to landmarks (k, m), times a root (k, r) if there is one."""

    def __init__(
        self, landmarks: np.ndarray, bandwidth: float, root: np.ndarray | None, compiled: bool
    ) -> None:
        self._landmarks, self._bandwidth, self._root = landmarks, bandwidth, root
        self._loops: Any = compiled_blocks() if compiled else None

    @cached_property
    def _tables(self) -> Any:
        return self._loops.tables(self._landmarks, self._bandwidth, self._root)

    @property
    def sums_columns(self) -> bool:
        """Whether features are summed while they are made."""
        return self._loops is not None

    def features(self, rows: Rows) -> Array:
        """(b, m) → (b, k) or (b, r)."""
        if self._loops is not None and isinstance(rows, np.ndarray):
            return self.summed(rows)[0]
        kernel = gaussian(rows, self._landmarks, self._bandwidth)
        return kernel if self._root is None else kernel @ like(kernel, self._root)

    def summed(
        self, rows: np.ndarray, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features, in ``out`` if it is given, and the sums of their columns."""
        features, sums = self._loops.features(rows, self._tables, out)
        return features, sums


def gram(
    features: Array, normalisation: Normalisation, compiled: bool
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Gram matrix, column sums and repaired rows of features, which are normalised on the way.

    None where that is left to NumPy.
    """
    if not (compiled and isinstance(features, np.ndarray)):
        return None
    matrix, totals, repaired = compiled_blocks().gram(features, normalisation)
    return matrix, totals, repaired


def quick_to_multiply(features: Array, compiled: bool) -> Array:
    """Features whose products with a few columns go the way of the fit."""
    if compiled and isinstance(features, np.ndarray):
        return features.view(compiled_blocks().Multiplied)
    return features
