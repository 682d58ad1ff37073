"""Random rows and random numbers that depend on the seed only.

No choice here looks at the number of workers or the cut into blocks, so any engine draws the same.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.threads import threads_of_one
from biglp._sources.base import Source

NOISE_CHUNK = 1024
FETCH_BYTES, MOST_FETCHING = 2 << 20, 4
"""Rows that are fetched at once, and threads that fetch some, at most."""


def sample_indices(n_rows: int, size: int, seed: int) -> np.ndarray:
    """Sorted indices of ``size`` distinct rows, without building a list of all of them."""
    if size >= n_rows:
        return np.arange(n_rows)
    chosen = np.random.default_rng(seed).choice(n_rows, size=size, replace=False, shuffle=False)
    return np.sort(chosen)


def among(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Whether each row is one of those known, which increase; ``np.isin`` would copy them."""
    if not len(known):
        return np.zeros(len(rows), dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, rows), len(known) - 1)] == rows)


def sample_rows(source: Source, size: int, seed: int, n_threads: int = 1) -> Rows:
    """Up to ``size`` distinct random rows, in the source's order.

    They are fetched a few at a time, because preparing rows takes several times their memory; by
    several threads where these are given.
    """
    indices = sample_indices(source.n_rows, size, seed)
    width = max(source.n_features, source.n_input_features)
    at_once = max(FETCH_BYTES // (width * source.dtype.itemsize), 1)
    if source.is_sparse or len(indices) <= at_once:
        return source.take(indices)

    def fetch(start: int, stop: int) -> Rows:
        if len(indices) == source.n_rows:
            return source.read(start, stop)  # without the copy that taking rows makes
        return source.take(indices[start:stop])

    first = fetch(0, at_once)
    if not isinstance(first, np.ndarray):  # on a GPU, whose memory is its own matter
        return source.take(indices)
    rows = np.empty((len(indices), source.n_features), dtype=first.dtype)
    rows[:at_once] = first

    def fill(start: int) -> None:
        stop = min(start + at_once, len(indices))
        rows[start:stop] = fetch(start, stop)

    starts = range(at_once, len(indices), at_once)
    if n_threads == 1:
        for start in starts:
            fill(start)
        return rows
    with threads_of_one(min(n_threads, MOST_FETCHING)) as threads:
        deque(threads.map(fill, starts), maxlen=0)  # raises what a thread has raised
    return rows


def row_noise(seed: int, start: int, stop: int, width: int) -> np.ndarray:
    """Uniform [0, 1) numbers that belong to rows ``start`` to ``stop``, however they are cut.

    Rows are numbered in chunks, each with a generator of its own; a block draws the chunks that it
    touches and keeps its part.
    """
    first, last = start // NOISE_CHUNK, (stop - 1) // NOISE_CHUNK
    chunks = [
        np.random.default_rng((seed, chunk)).random((NOISE_CHUNK, width))
        for chunk in range(first, last + 1)
    ]
    offset = first * NOISE_CHUNK
    return np.concatenate(chunks)[start - offset : stop - offset]
