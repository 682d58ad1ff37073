"""Choosing k landmarks: random rows (Algorithm S.3), k-means centres (S.4), or the user's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from biglp._compiled import is_search_worthwhile
from biglp._core.arrays import Rows, check_finite, squared_norms, to_dense, to_device, to_numpy
from biglp._core.blocks import Block, cut_rows
from biglp._core.errors import BadRowsError, LandmarkWarning, ParameterError, warn_caller
from biglp._lowrank.base import ROWS_PER_LANDMARK
from biglp._lowrank.kernels import nearest_landmarks
from biglp._lowrank.kmeans import Lloyd, kmeans_start
from biglp._lowrank.rows import TrainingRows
from biglp._rows import PreparedRows, Source, as_source
from biglp._rows.source import sample_rows
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
STRATEGIES = ("kmeans", "kmeans-full", "random")


def choose_landmarks(rows: TrainingRows, strategy: Any, k: int) -> np.ndarray:
    """Choose the landmarks.

    Parameters
    ----------
    rows : TrainingRows
    strategy : {"kmeans", "kmeans-full", "random"} or array of shape (k, m)
        "kmeans" clusters a sample of ``ROWS_PER_LANDMARK`` rows a landmark, "kmeans-full" sweeps
        over all rows as the paper does.
    k : int
        Number of landmarks; fewer are used when there are fewer distinct rows.

    Returns
    -------
    landmarks : ndarray of shape (k, m)
    """
    engine, source, seed = rows.engine, rows.source, rows.seed
    if not isinstance(strategy, str):
        return _given(strategy, source)
    if strategy not in STRATEGIES:
        raise ParameterError(
            f"landmarks={strategy!r} is not known; use one of {', '.join(STRATEGIES)}, "
            "or an array of shape (k, n_features)."
        )
    if k > source.n_rows:
        warn_caller(
            f"n_landmarks={k} is more than the {source.n_rows} rows there are; "
            f"{source.n_rows} landmarks are used. Give a smaller n_landmarks.",
            LandmarkWarning,
        )
        k = source.n_rows
    if strategy == "random":
        chosen = to_dense(sample_rows(source, k, seed))
        check_finite(squared_norms(chosen))
        return _distinct(chosen)
    n_threads = min(engine.n_threads, engine.most_at_once)
    sample = to_numpy(sample_rows(source, ROWS_PER_LANDMARK * k, seed, n_threads))
    start = engine.once(lambda: kmeans_start(sample, k, seed, n_threads))
    pool = to_dense(sample[: min(sample.shape[0], 2 * k)])
    lloyd = Lloyd(engine, pool, most_iterations(sample.shape[0], k), seed=seed)
    if strategy == "kmeans-full":
        return _distinct(_as_rows_are(lloyd.run(rows.blocks, start)[0], source))
    rows_each = max(block.n_rows for block in rows.blocks)
    compiled = not sparse.issparse(sample) and source.device == "cpu"
    compiled = compiled and engine.once(
        lambda: compiles(len(sample), source.n_features, len(start))
    )
    lloyd = replace(lloyd, rows_at_once=rows_each, compiled=compiled)
    if begins_with_few(sample.shape[0], len(start)):
        few = _joined_blocks(_SampleSource(sample[::EVERY], source), rows_each)
        start, _ = replace(lloyd, pool=None, max_iter=FIRST_ITERATIONS).run(few, start)
        lloyd = replace(lloyd, max_iter=LAST_ITERATIONS)
    blocks = _joined_blocks(_SampleSource(sample, source), rows_each)
    return _distinct(_as_rows_are(lloyd.run(blocks, start)[0], source))


def _as_rows_are(centres: np.ndarray, source: PreparedRows) -> np.ndarray:
    """Centres of length 1 where all rows are.

    The mean of rows that point in many directions is short, and so nearer to every row than the
    mean of a tight bundle is.
    """
    return unit_length(centres) if source.chain.unit else centres


def _joined_blocks(sample: Source, rows_each: int) -> list[Block]:
    """Cut a sample that is in memory into few blocks.

    A block's sums are k × m numbers, as many as a thousand rows may have; adding them exactly takes
    as long as finding them. Several blocks in one are added in place.
    """
    joined = min(JOINED * rows_each, -(-sample.n_rows // FEWEST_BLOCKS))
    return cut_rows(sample, max(rows_each, joined))


def most_iterations(n_rows: int, k: int) -> int:
    """Iterations of k-means on so many rows, at most."""
    return KMEANS_ITERATIONS if n_rows >= FINE * k else FINE_ITERATIONS


def compiles(n_rows: int, n_features: int, k: int) -> bool:
    """Whether k-means on so many dense rows is to use the compiled search."""
    sweeps = most_iterations(n_rows, k)
    if begins_with_few(n_rows, k):
        sweeps = FIRST_ITERATIONS // EVERY + LAST_ITERATIONS
    return is_search_worthwhile(sweeps * n_rows, n_features, k)


def begins_with_few(n_rows: int, k: int) -> bool:
    """Whether the first iterations of k-means look at a part of the sample only."""
    return n_rows >= max(EVERY * FEWEST_ROWS_PER_LANDMARK * k, FEWEST_ROWS)


def landmark_spacing(sample: Rows, landmarks: np.ndarray, neighbour: int) -> float:
    """Typical distance of a row to its ``neighbour``-th nearest landmark: the natural bandwidth.

    The median distance between rows, the usual rule, is far too wide: it measures the size of the
    whole data set, not the distance over which labels agree.
    """
    neighbour = min(neighbour, len(landmarks))
    sample = sample[:: max(sample.shape[0] // SPACING_ROWS, 1)]
    norms = to_numpy(squared_norms(sample))
    count, step = min(neighbour + 1, len(landmarks)), max(SPACING_CELLS // len(landmarks), 1)
    values = [
        to_numpy(nearest_landmarks(sample[start : start + step], landmarks, count)[1])
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


class _SampleSource(Source):
    """Prepared rows of a sample, handed out as the parent source would."""

    def __init__(self, sample: Rows, parent: PreparedRows) -> None:
        self._sample = sample
        self.device = parent.device
        self.n_rows, self.n_features = sample.shape
        self.dtype = parent.dtype
        self.name = f"a sample of {parent.name}"

    def read(self, start: int, stop: int) -> Rows:
        return to_device(self._sample[start:stop], self.device)


def _given(landmarks: Any, source: PreparedRows) -> np.ndarray:
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
    return _distinct(source.chain.apply(given))


def _distinct(landmarks: np.ndarray) -> np.ndarray:
    """Drop repeated landmarks, keeping the order: they add nothing but singular matrices."""
    ordered = np.sort(landmarks[:, 0])
    if (ordered[1:] != ordered[:-1]).all():  # no need to compare all of their numbers
        return np.ascontiguousarray(landmarks)
    _, first = np.unique(landmarks, axis=0, return_index=True)
    return np.ascontiguousarray(landmarks[np.sort(first)])
