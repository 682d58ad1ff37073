"""Factors on k landmarks: how landmarks (by k-means) and bandwidth are chosen, and what that costs.

Landmarks are random rows (Algorithm S.3), k-means centres (S.4), or the user's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from biglp._compiled import searches
from biglp._compiled.native import can_run
from biglp._core.arrays import (
    Array,
    Rows,
    check_finite,
    is_torch,
    namespace,
    squared_norms,
    to_dense,
    to_device,
    to_numpy,
)
from biglp._core.blocks import Block, cut_rows
from biglp._core.errors import BadRowsError, LandmarkWarning, ParameterError, warn_caller
from biglp._core.parameters import positive
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._core.threads import one_blas_thread, threads_of_one
from biglp._engines.base import Engine
from biglp._graph.factor import ROWS_PER_LANDMARK, Factor
from biglp._graph.graph import TrainingRows
from biglp._graph.kernels import (
    DEVICE_CELLS,
    SEARCH_CELLS,
    SPARSE_LANDMARKS,
    Search,
    check_bandwidth,
    nearest_landmarks,
    pair_seconds,
    scatter,
)
from biglp._rows.opening import as_source
from biglp._rows.prepared import PreparedRows
from biglp._rows.source import Source
from biglp._transforms.project import unit_length

KMEANS_ITERATIONS, FINE_ITERATIONS, FINE = 10, 2, 20
"""Iterations of k-means; and with fewer than so many rows a landmark, where a landmark stands for a
handful of rows and moving it on changes little: labels of 20,000 images with 2,000 landmarks are
0.2 points better after ten."""
EVERY, FIRST_ITERATIONS, LAST_ITERATIONS = 4, 4, 2
FEWEST_ROWS_PER_LANDMARK, FEWEST_ROWS = 5, 5000
"""The first iterations look at every fourth row of a large sample only, where these are still five
rows a landmark: a third of the work, for labels that are as good."""
JOINED, FEWEST_BLOCKS = 8, 4
"""Blocks of the sample are joined, up to so many, while so many remain to be shared out."""
SPACING_ROWS, SPACING_CELLS = 2000, 1 << 20
"""Rows behind the bandwidth, about, and distances that are held at once when it is chosen."""
LLOYD_SHARE = 0.85
"""Share of the k-means iterations that is usually needed."""
STRATEGIES = ("kmeans", "kmeans-full", "random")


class LandmarkFactor(Factor):
    """A factor that compares rows with k landmarks."""

    params = {"bandwidth_factor": positive}  # noqa: RUF012  declared in the base
    # The automatic bandwidth, as a multiple of the usual distance to the nearest landmarks.
    spacing_share: ClassVar[float]
    # What it is made with beside landmarks and bandwidth, by `factor_params`.
    usual: ClassVar[dict[str, int]] = {}
    landmarks: np.ndarray  # (k, m), in the precision of the rows
    bandwidth: float  # σ

    @abstractmethod
    def __init__(self, landmarks: np.ndarray, bandwidth: float, **options: int) -> None: ...

    @staticmethod
    @abstractmethod
    def compiles(n_features: int, k: int) -> bool:
        """Whether the compiled loops do the work in a fit of dense rows."""

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> Self:
        """Choose landmarks, then the bandwidth, and whether compiled loops do the work."""
        source = rows.source
        k = settings.n_landmarks or cls.rank_for(settings, source.n_rows, source.n_features)
        landmarks = choose_landmarks(rows, settings.landmarks, k)
        given = settings.factor_params
        options = {name: int(given.get(name, usual)) for name, usual in cls.usual.items()}
        sample = rows.sample.prepared(rows.sample.ends[0])
        # One process decides for all: the loops round differently from NumPy.
        size, dense = (source.n_features, len(landmarks)), not source.is_sparse
        compiled = (
            dense and source.device == "cpu" and rows.engine.once(lambda: cls.compiles(*size))
        )
        if settings.bandwidth is not None:
            sigma = check_bandwidth(settings.bandwidth, sample)
        else:
            share = given.get("bandwidth_factor")
            # The nearest landmark tells it, or the farthest of those that a row is tied to.
            sigma = landmark_spacing(sample, landmarks, options.get("n_nearest", 1), compiled)
            sigma = (cls.spacing_share if share is None else share) * sigma
            if share is not None:
                check_bandwidth(sigma, sample, share)
        factor = cls(landmarks, sigma, **options)
        factor.compiled = compiled
        return factor

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """Also k-means, and on a device distances of some rows to all landmarks."""
        cost = super().cost(settings, size)
        rank, width = size.rank, size.width
        cells = min(DEVICE_CELLS, rank * size.n_rows)
        sampled = min(ROWS_PER_LANDMARK * rank, size.n_rows)
        seconds = dict(cost.seconds)
        if isinstance(settings.landmarks, str) and settings.landmarks != "random":
            on_sample = settings.landmarks == "kmeans"
            swept = sampled if on_sample else size.n_rows
            first, last = kmeans_iterations(swept, rank, on_sample=on_sample)
            # Without a part it is started with all, and may settle before the last one.
            sweeps = first / EVERY + last if first else LLOYD_SHARE * last
            searched = sweeps * swept + min(start_rows(width) * rank, sampled)
            seconds["k-means"] = searched * rank * pair_seconds(width)
        return cost._replace(
            gpu=cost.gpu + 4 * size.dtype.itemsize * cells,
            seconds=seconds,
        )

    def for_new_rows(self) -> Self:
        """The fit's loops, where they can run: a training row gets the features it had."""
        if not self.compiled or can_run():
            return self
        state = self.state()
        del state["compiled"]
        return self.from_state(state)

    def state(self) -> dict[str, np.ndarray]:
        """Landmarks and bandwidth, and who makes the features."""
        state = {"landmarks": self.landmarks, "bandwidth": np.array(self.bandwidth)}
        state |= {"compiled": np.array(True)} if self.compiled else {}
        return state | {name: np.array(getattr(self, name)) for name in self.usual}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        options = {name: int(state[name]) for name in cls.usual}
        factor = cls(state["landmarks"], float(state["bandwidth"]), **options)
        factor.compiled = "compiled" in state
        return factor

    def describe(self) -> dict[str, Any]:
        """Landmarks, effective rank and bandwidth, and whether compiled loops did the work."""
        facts: dict[str, Any] = {"factor": self.kind, "landmarks": len(self.landmarks)}
        if not self.unit_degrees:  # else the rank is that of the landmarks
            facts["rank"] = self.rank
        facts["bandwidth"] = self.bandwidth
        facts |= {"sweeps": "compiled"} if self.compiled else {}
        return facts | {name.removeprefix("n_"): getattr(self, name) for name in self.usual}


def choose_landmarks(rows: TrainingRows, strategy: Any, k: int) -> np.ndarray:
    """Choose k landmarks, or fewer where there are fewer distinct rows.  (k, m).

    "kmeans" clusters a sample of ``ROWS_PER_LANDMARK`` rows a landmark, "kmeans-full" sweeps over
    all rows as the paper does, "random" takes rows; else ``strategy`` is an array of landmarks.
    """
    engine, source, seed = rows.engine, rows.source, rows.sample.seed
    is_word = isinstance(strategy, str)
    if is_word and strategy not in STRATEGIES:
        raise ParameterError(
            f"landmarks={strategy!r} is not known; use one of {', '.join(STRATEGIES)}, "
            "or an array of shape (k, n_features)."
        )
    if is_word and k > source.n_rows:
        warn_caller(
            f"n_landmarks={k} is more than the {source.n_rows} rows there are; "
            f"{source.n_rows} landmarks are used. Give a smaller n_landmarks.",
            LandmarkWarning,
        )
        k = source.n_rows
    if not is_word:
        chosen = _given(strategy, source)
    elif strategy == "random":
        chosen = to_dense(rows.sample.prepared(k))
        check_finite(squared_norms(chosen))
    else:
        stages: list[tuple[Rows, int, np.ndarray | None]]  # rows, iterations, replacing centres by
        on_sample, n_threads = strategy == "kmeans", min(engine.n_threads, engine.most_at_once)
        sample = rows.sample.prepared(ROWS_PER_LANDMARK * k, n_threads)
        chosen = engine.once(lambda: kmeans_start(sample, k, seed, n_threads))
        n_rows, n_centres = sample.shape[0], len(chosen)
        pool = to_dense(sample[: min(n_rows, 2 * k)])
        if on_sample:
            few, last = kmeans_iterations(n_rows, n_centres)
            compiled = not sparse.issparse(sample) and source.device == "cpu"
            compiled = compiled and engine.once(lambda: searches(source.n_features, n_centres))
            rows_each = max(block.stop - block.start for block in rows.blocks)
            stages = [(sample[::EVERY], few, None)] if few else []
            stages.append((sample, last, pool))
        else:
            _, most = kmeans_iterations(n_rows, k, on_sample=False)
            lloyd = Lloyd(engine, pool, most, seed=seed)
            chosen, _ = lloyd.run(rows.blocks, chosen)
            stages = []
        for part, iterations, replacing in stages:
            # A block's sums are k × m numbers, as many as a thousand rows may have; adding them
            # exactly takes as long as finding them. Several blocks in one are added in place.
            joined = min(JOINED * rows_each, -(-part.shape[0] // FEWEST_BLOCKS))
            sampled = _SampleSource(
                rows=part,
                n_rows=part.shape[0],
                n_features=part.shape[1],
                dtype=source.dtype,
                device=source.device,
                name=f"a sample of {source.name}",
            )
            blocks = cut_rows(sampled, max(rows_each, joined))
            lloyd = Lloyd(engine, replacing, iterations, 1e-3, seed, rows_each, compiled)
            chosen, _ = lloyd.run(blocks, chosen)
        # Where all rows have length 1, centres have: the mean of rows that point in many directions
        # is short, and so nearer to every row than the mean of a tight bundle is.
        chosen = unit_length(chosen) if source.chain.unit else chosen
    # Without repeated ones, in their order: these only make matrices singular.
    ordered = np.sort(chosen[:, 0])
    if (ordered[1:] == ordered[:-1]).any():  # else no need to compare all of their numbers
        _, first = np.unique(chosen, axis=0, return_index=True)
        chosen = chosen[np.sort(first)]
    return np.ascontiguousarray(chosen)


def kmeans_iterations(n_rows: int, k: int, *, on_sample: bool = True) -> tuple[int, int]:
    """Iterations of k-means, at most: on a part of a sample of so many rows, and on all of it."""
    if on_sample and n_rows >= max(EVERY * FEWEST_ROWS_PER_LANDMARK * k, FEWEST_ROWS):
        return FIRST_ITERATIONS, LAST_ITERATIONS
    return 0, KMEANS_ITERATIONS if n_rows >= FINE * k else FINE_ITERATIONS


def landmark_spacing(
    sample: Rows, landmarks: np.ndarray, neighbour: int, compiled: bool = False
) -> float:
    """Typical distance of a row to its ``neighbour``-th nearest landmark: the natural bandwidth.

    The median distance between rows, the usual rule, is far too wide: it measures the size of the
    whole data set, not the distance over which labels agree.
    """
    neighbour = min(neighbour, len(landmarks))
    sample = sample[:: max(sample.shape[0] // SPACING_ROWS, 1)]
    norms = to_numpy(squared_norms(sample))
    count, step = min(neighbour + 1, len(landmarks)), max(SPACING_CELLS // len(landmarks), 1)
    search = Search(landmarks, compiled)
    values = [
        to_numpy(search.nearest(sample[start : start + step], count)[1])
        for start in range(0, sample.shape[0], step)
    ]
    squared = np.concatenate(values) + norms[:, None]
    # Rounding leaves a row that sits on a landmark at a distance that is not quite zero.
    noise = 16 * np.finfo(squared.dtype).eps * (norms + squared_norms(landmarks).max())
    # Where all rows sit on landmarks, the next one tells how far apart rows are.
    for distances in squared[:, neighbour - 1 :].T:
        apart = distances[distances > noise]
        if apart.size:
            return float(np.sqrt(np.mean(apart, dtype=np.float64)))
    return 1.0  # one landmark, and all rows on it: any bandwidth gives the same graph


@dataclass(eq=False, kw_only=True)
class _SampleSource(Source):
    """Prepared rows of a sample, handed out as the parent source would."""

    rows: Rows
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    device: str = "cpu"
    name: str = "a sample"

    def read(self, start: int, stop: int) -> Rows:
        return to_device(self.rows[start:stop], self.device)


def _given(landmarks: Any, source: PreparedRows) -> np.ndarray:
    """The user's landmarks, checked and prepared as the rows are."""
    try:
        table = as_source(landmarks)
    except BadRowsError as error:
        raise ParameterError(
            f"landmarks={landmarks!r:.60} cannot be used: give {', '.join(STRATEGIES)} or an array "
            f"of shape (k, n_features). As rows: {error}"
        ) from error
    given = to_dense(table.read(0, table.n_rows))
    n_features = source.inner.n_features
    if given.shape[1] != n_features:
        raise ParameterError(
            f"landmarks has {given.shape[1]} features, but X has {n_features}; "
            "give an array of shape (k, n_features)."
        )
    with np.errstate(over="ignore"):
        given = given.astype(source.dtype)
    if not np.isfinite(given).all():
        raise BadRowsError(
            f"landmarks holds NaN or infinity in {source.dtype}; give finite numbers only."
        )
    return np.asarray(source.chain.apply(given))


# --------------------------------------------------------------------------------------------------
# k-means by Lloyd's iteration through the two verbs (Algorithm S.4, corrected).
#
# Each block adds the rows nearest to each centre: sums (k × m) and counts (k). One reduction an
# iteration replaces the paper's k messages, and a centre that lost all its rows is put on a random
# row of the start sample instead of dividing by zero.


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
    # Threads of their own ignore what overflows as well.
    ignored = np.errstate(over="ignore", invalid="ignore")
    with one_blas_thread(), ignored, workers as threads:
        over: Callable[..., Iterable[np.ndarray]] = map if threads is None else threads.map
        while True:
            if is_sparse:
                of_fresh = pool[fresh] if few else to_dense(pool[fresh])
                distances = nearest_landmarks(pool, of_fresh, 1)[1][:, 0]
            else:
                step = max(SEARCH_CELLS // len(fresh), 1)
                parts = [across[:, start : start + step] for start in range(0, size, step)]
                to_fresh = doubled[fresh].__matmul__
                found = over(lambda part, of=to_fresh: of(part).min(axis=0), parts)
                distances = np.concatenate(list(found))
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
