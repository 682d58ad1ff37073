"""k-means by Lloyd's iteration through the two verbs (Algorithm S.4, corrected).

Each block adds the rows nearest to each centre: sums (k × m) and counts (k). One reduction an
iteration replaces the paper's k messages, and a centre that lost all its rows is put on a random
row of the start sample instead of dividing by zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from biglp._core.arrays import (
    Array,
    Rows,
    check_finite,
    is_torch,
    namespace,
    squared_norms,
    to_dense,
)
from biglp._core.blocks import Block
from biglp._core.threads import one_blas_thread, threads_of_one
from biglp._engines import Engine
from biglp._graph.kernels import (
    DEVICE_CELLS,
    SEARCH_CELLS,
    SPARSE_LANDMARKS,
    Search,
    nearest_landmarks,
    scatter,
)

START_ROWS, START_NUMBERS = (5, 10), 200
"""Rows a centre among which the k-means++ start chooses, at least and at most, and the numbers that
they hold in between. The start takes as long as a search of so many rows. From three rows a centre
labels are half a point worse than from five; from ten they are as good for images, and better for
rows of few features, by a third of a point (docs/benchmarks.md), where ten cost little."""
START_BATCHES = 32
"""Batches in which the start is drawn when there are more centres than this."""
WORTH_THREADS = 1 << 22
"""Distances of the start from which on several threads find them."""


def kmeans_start(sample: Rows, k: int, seed: int, n_threads: int = 1) -> np.ndarray:
    """Choose k rows of a sample, far from each other (k-means++).  (k, m).

    Each row is drawn with a chance proportional to its squared distance from the rows already
    chosen. For large k the draws come in small batches, so that the distances cost matrix products
    and not passes over the sample; Lloyd's steps make up for the little that this loses.
    """
    rng = np.random.default_rng(seed)
    size = min(sample.shape[0], start_rows(sample.shape[1]) * k)
    pool = sample[np.sort(rng.permutation(sample.shape[0])[:size])]
    norms = squared_norms(pool)
    check_finite(norms)
    chosen = [int(rng.integers(size))]
    squared = np.full(size, np.inf)
    fresh = chosen
    is_sparse = sparse.issparse(pool)
    if is_sparse:
        few = pool.nnz <= SPARSE_LANDMARKS * np.prod(pool.shape)
    else:
        # ‖x − l‖² − ‖x‖² as one product, so that the smallest of each column is wanted: NumPy
        # compares whole rows of distances at a time.
        across = np.vstack([pool.T, np.ones((1, size), pool.dtype)])
        doubled = np.hstack([pool * -2.0, norms[:, None]])
    n_threads = n_threads if size * k >= WORTH_THREADS else 1
    workers = threads_of_one(n_threads) if n_threads > 1 else nullcontext()
    with one_blas_thread(), workers as threads:
        over: Callable[..., Iterable[np.ndarray]] = map if threads is None else threads.map
        while True:
            if is_sparse:
                of_fresh = pool[fresh] if few else to_dense(pool[fresh])
                distances = nearest_landmarks(pool, of_fresh, 1)[1][:, 0]
            else:
                step = max(SEARCH_CELLS // len(fresh), 1)
                parts = [across[:, start : start + step] for start in range(0, size, step)]
                distances = np.concatenate(list(over(partial(_smallest, doubled[fresh]), parts)))
            squared = np.minimum(squared, np.maximum(distances + norms, 0.0))
            squared[chosen] = 0.0
            batch = min(k - len(chosen), max(1, k // START_BATCHES), int(np.count_nonzero(squared)))
            if batch <= 0:
                return to_dense(pool[chosen])
            # Distinct rows, each with a chance proportional to its squared distance: as
            # Generator.choice draws, to the last bit, without its checks, which take as long.
            chance = squared / squared.sum(dtype=np.float64)
            chance /= chance.sum()
            fresh = []
            while len(fresh) < batch:
                ends = chance.cumsum()
                ends /= ends[-1]
                indices = ends.searchsorted(rng.random(batch - len(fresh)), side="right").tolist()
                drawn = list(dict.fromkeys(indices))  # each once, in the order of the draws
                chance[drawn] = 0.0
                fresh += drawn
            chosen = chosen + fresh


def _smallest(doubled: np.ndarray, across: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((doubled @ across).min(axis=0))


def start_rows(n_features: int) -> int:
    """Rows a centre among which the start chooses."""
    fewest, most = START_ROWS
    return min(max(START_NUMBERS // n_features, fewest), most)


@dataclass(frozen=True)
class Lloyd:
    """Lloyd's iteration: how it goes on, and when it stops."""

    engine: Engine
    # Rows (p, m) on which empty centres are put; without it they stay where they are, because the
    # blocks are a part of the rows and a centre may have its rows among the others.
    pool: np.ndarray | None = None
    max_iter: int = 10  # each is one sweep
    tol: float = 1e-3  # stops when the sum of squared distances falls by less than this fraction
    seed: int = 0  # of the choice among the pool
    rows_at_once: int | None = None  # whose distances are held; all of a block by default
    compiled: bool = False  # whether the compiled search finds the centres

    def run(self, blocks: Sequence[Block], start: np.ndarray) -> tuple[np.ndarray, int]:
        """Iterate from the centres ``start``; return the last ones and the iterations."""
        centres, previous = start, np.inf
        rng = np.random.default_rng(self.seed)
        for iteration in range(1, self.max_iter + 1):
            function = partial(
                assign_block,
                centres=centres,
                rows_at_once=self.rows_at_once,
                compiled=self.compiled,
            )
            sums, counts, inertia = self.engine.sum_blocks(
                function, blocks, label=f"k-means {iteration}"
            )
            means, empty = to_dense(sums), counts == 0
            means /= np.where(empty, 1.0, counts)[:, None]  # in place: they may be wide
            if self.pool is None:
                replaced = centres[empty]
            else:
                replaced = self.pool[rng.integers(len(self.pool), size=int(empty.sum()))]
            centres = means.astype(start.dtype)
            centres[empty] = replaced
            all_used = self.pool is None or not empty.any()
            if all_used and inertia >= (1.0 - self.tol) * previous:
                return centres, iteration
            previous = float(inertia)
        return centres, self.max_iter


def assign_block(
    block: Block,
    centres: np.ndarray,
    rows_at_once: int | None = None,
    compiled: bool = False,
) -> tuple[Array, ...]:
    """Sum of the block's rows around each centre, their number, and the squared distances."""
    rows = block.rows()
    step = rows_at_once or rows.shape[0]
    search = Search(centres, compiled)
    if is_torch(rows):  # blocks are large there, and a row has a number for each centre
        step = min(step, max(DEVICE_CELLS // len(centres), 1))
    total: tuple[Array, ...] = ()
    for start in range(0, rows.shape[0], step):
        some = rows[start : start + step]
        columns, values = search.nearest(some, 1)
        check_finite(values)
        members = scatter(columns, namespace(values).ones_like(values), len(centres))
        # Of thousands of columns most are zero around a centre: sums of sparse rows remain sparse.
        sums = members.T @ some
        counts = np.asarray(members.sum(0)).ravel() if sparse.issparse(members) else members.sum(0)
        inertia = (values[:, 0] + squared_norms(some)).clip(min=0).sum()
        more = (sums, counts, inertia)
        total = tuple(a + b for a, b in zip(total, more, strict=True)) if total else more
    return total
