"""The map: a position for each of up to a million rows, coloured by what is thought of them.

Positions are leading directions of the pool's graph (:mod:`biglp._fit.sample`). Rows of the pool
come first and have colours of their own. The others come after them, in the background; each has
the colour of the pool's rows at its nearest landmark, so that no fit has to look at all of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, to_numpy
from biglp._fit.choose_rows import uncertainty
from biglp._fit.sample import RowMap
from biglp._labelling.learner import Fit, Learner
from biglp._learn.base import sample_indices

logger = logging.getLogger("biglp")

MAP_ROWS = 1_000_000
ROWS_AT_ONCE = 8192
WAIT_SECONDS = 0.05
UNKNOWN = 255
"""Colour of rows of which nothing is thought yet, and of classes beyond the first 255."""


@dataclass(frozen=True)
class Points:
    """Rows on the map: those of the pool first, in its order, then others."""

    rows: np.ndarray  # (m,)
    positions: np.ndarray  # (m, 2), between -1 and 1
    landmarks: np.ndarray  # (m,), the nearest of each
    n_pool: int

    def colours(self, fit: Fit | None, classes: list[str]) -> np.ndarray:
        """Class and uncertainty of each point.  (m, 2) of bytes."""
        colours = np.full((len(self.rows), 2), UNKNOWN, dtype=np.uint8)
        if fit is None:
            return colours
        keys = [classes.index(name) if name in classes else UNKNOWN for name in fit.classes]
        codes = np.minimum(keys, UNKNOWN).astype(np.uint8)

        def coloured(probabilities: np.ndarray) -> np.ndarray:
            doubts = np.clip(np.rint(255.0 * uncertainty(probabilities)), 0, 255)
            return np.column_stack([codes[probabilities.argmax(axis=1)], doubts.astype(np.uint8)])

        n_pool, landmarks = self.n_pool, self.landmarks[: self.n_pool]
        probabilities = fit.probabilities[:n_pool]
        colours[:n_pool] = coloured(probabilities)
        n_landmarks = int(self.landmarks.max(initial=0)) + 1
        members = sparse.csr_array(
            (np.ones(n_pool, dtype=np.float32), (landmarks, np.arange(n_pool))),
            shape=(n_landmarks, n_pool),
        )
        counts = np.bincount(landmarks, minlength=n_landmarks)
        means = coloured((members @ probabilities) / np.maximum(counts, 1)[:, None])
        means[counts == 0] = UNKNOWN
        colours[n_pool:] = means[self.landmarks[n_pool:]]
        return colours

    def numbers_of(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of the points of some rows; -1 for those that are not on the map."""
        order = np.argsort(self.rows, kind="stable")
        indices = np.searchsorted(self.rows, rows, sorter=order)
        numbers = order[np.minimum(indices, len(order) - 1)]
        return np.where(self.rows[numbers] == rows, numbers, -1)


class MapMaker:
    """Places rows in a thread of its own, and calls ``changed`` when there are more ``points``.

    It waits while a fit runs, which ``fitting`` says.
    """

    def __init__(
        self, learner: Learner, changed: Callable[[], None], fitting: Callable[[], bool]
    ) -> None:
        self._learner, self._changed, self._fitting = learner, changed, fitting
        self.points: Points | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="biglp-map", daemon=True)

    def start(self) -> None:
        """Begin; the graph is there."""
        self._graph, self._pool = self._learner.graph, self._learner.pool
        self._thread.start()

    def stop(self) -> None:
        """End at the next few rows."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._place()
        except Exception:
            logger.exception("the map of the labelling page could not be drawn")

    def _place(self) -> None:
        seed, pool, whole = self._learner.seed, self._pool, self._pool.whole
        row_map = RowMap.of(self._graph)
        placed = self._placed(row_map, pool.rows)
        if placed is None:
            return
        positions, landmarks = placed
        low, high = positions.min(axis=0), positions.max(axis=0)
        middle, scale = (low + high) / 2, max(float((high - low).max()) / 2, 1e-12)
        first = ((positions - middle) / scale).astype(np.float32)
        self.points = Points(pool.rows, first, landmarks, len(pool.rows))
        self._changed()
        others = np.setdiff1d(sample_indices(whole.n_rows, MAP_ROWS, seed), pool.rows)
        others = others[sample_indices(len(others), MAP_ROWS - len(pool.rows), seed)]
        placed = self._placed(row_map, others) if len(others) else None
        if placed is None:
            return
        more = np.clip((placed[0] - middle) / scale, -1.0, 1.0).astype(np.float32)
        self.points = Points(
            np.concatenate([pool.rows, others]),
            np.concatenate([first, more]),
            np.concatenate([landmarks, placed[1]]),
            len(pool.rows),
        )
        self._changed()

    def _placed(self, row_map: RowMap, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Places and nearest landmarks of rows; None when the server ends meanwhile."""
        whole, graph = self._pool.whole, self._graph
        positions = np.empty((len(rows), 2), dtype=np.float32)
        landmarks = np.empty(len(rows), dtype=np.int32)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            while self._fitting() and not self._end.wait(WAIT_SECONDS):
                pass
            if self._end.is_set():
                return None
            piece = slice(start, start + ROWS_AT_ONCE)
            features = graph.features.of_rows(graph.source.prepared(whole.take(rows[piece])))
            positions[piece] = row_map.places(features)
            landmarks[piece] = _largest(features)
        whole.check_unchanged()
        return positions, landmarks


def _largest(features: Array) -> np.ndarray:
    """Column of the largest feature of each row.  (b, r) → (b,)."""
    features = to_numpy(features)
    if not sparse.issparse(features):
        return np.asarray(features).argmax(axis=1)
    counts = np.diff(features.indptr)
    width = int(counts.max(initial=0))
    if not width or (counts != width).any():
        return np.asarray(features.argmax(axis=1)).reshape(-1)
    best = features.data.reshape(-1, width).argmax(axis=1)
    return np.asarray(features.indices.reshape(-1, width)[np.arange(len(best)), best])
