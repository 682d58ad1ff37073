"""The map: a place for each of up to a million rows, coloured by what is thought of them.

Places are leading directions of the pool's graph (:mod:`biglp._fit.map`). Rows of the pool come
first and have colours of their own. The others are placed after them, in the background; each has
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
from biglp._fit.map import RowMap
from biglp._graph.graph import Graph
from biglp._labelling.learner import Fit, Learner
from biglp._rows.source import sample_indices

logger = logging.getLogger("biglp")

MAP_ROWS = 1_000_000
ROWS_AT_ONCE = 8192
WAIT_SECONDS = 0.05
UNKNOWN = 255
"""Colour of rows of which nothing is thought yet, and of classes beyond the first 255."""


@dataclass(frozen=True)
class Points:
    """Rows on the map.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Row numbers; those of the pool come first, in its order.
    places : ndarray of shape (m, 2)
        Between -1 and 1.
    landmarks : ndarray of shape (m,)
        The landmark that each is nearest to.
    n_pool : int
    """

    rows: np.ndarray
    places: np.ndarray
    landmarks: np.ndarray
    n_pool: int

    def colours(self, fit: Fit | None, classes: list[str]) -> np.ndarray:
        """Class and doubt of each point.  (m, 2) of bytes."""
        found = np.full((len(self.rows), 2), UNKNOWN, dtype=np.uint8)
        if fit is None:
            return found
        keys = np.array([_key(classes, name) for name in fit.classes], dtype=np.uint8)
        shares = fit.probabilities[: self.n_pool]
        found[: self.n_pool] = _coloured(shares, keys)
        n_landmarks = int(self.landmarks.max(initial=0)) + 1
        members = sparse.csr_array(
            (
                np.ones(self.n_pool, dtype=np.float32),
                (self.landmarks[: self.n_pool], np.arange(self.n_pool)),
            ),
            shape=(n_landmarks, self.n_pool),
        )
        sums = members @ shares
        counts = np.bincount(self.landmarks[: self.n_pool], minlength=n_landmarks)
        means = _coloured(sums / np.maximum(counts, 1)[:, None], keys)
        means[counts == 0] = UNKNOWN
        found[self.n_pool :] = means[self.landmarks[self.n_pool :]]
        return found

    def numbers_of(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of the points of some rows; -1 for those that are not on the map."""
        order = np.argsort(self.rows, kind="stable")
        places = np.searchsorted(self.rows, rows, sorter=order)
        numbers = order[np.minimum(places, len(order) - 1)]
        return np.where(self.rows[numbers] == rows, numbers, -1)


class MapMaker:
    """Places rows in a thread of its own.

    Parameters
    ----------
    learner : Learner
    changed : callable
        Called when there are more points.
    fitting : callable
        Whether a fit runs, which the map waits for.

    Attributes
    ----------
    points : Points or None
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
        found = self._placed(row_map, pool.rows)
        if found is None:
            return
        places, landmarks = found
        low, high = places.min(axis=0), places.max(axis=0)
        middle, scale = (low + high) / 2, max(float((high - low).max()) / 2, 1e-12)
        first = ((places - middle) / scale).astype(np.float32)
        self.points = Points(pool.rows, first, landmarks, len(pool.rows))
        self._changed()
        others = np.setdiff1d(sample_indices(whole.n_rows, MAP_ROWS, seed), pool.rows)
        others = others[sample_indices(len(others), MAP_ROWS - len(pool.rows), seed)]
        if not len(others):
            return
        found = self._placed(row_map, others)
        if found is None:
            return
        more = np.clip((found[0] - middle) / scale, -1.0, 1.0).astype(np.float32)
        self.points = Points(
            np.concatenate([pool.rows, others]),
            np.concatenate([first, more]),
            np.concatenate([landmarks, found[1]]),
            len(pool.rows),
        )
        self._changed()

    def _placed(self, row_map: RowMap, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Places and nearest landmarks of rows; None when the server ends meanwhile."""
        whole, graph = self._pool.whole, self._graph
        places = np.empty((len(rows), 2), dtype=np.float32)
        landmarks = np.empty(len(rows), dtype=np.int32)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            while self._fitting() and not self._end.wait(WAIT_SECONDS):
                pass
            if self._end.is_set():
                return None
            part = slice(start, start + ROWS_AT_ONCE)
            features = features_of(graph, whole.take(rows[part]))
            places[part] = row_map.places(features)
            landmarks[part] = largest(features)
        whole.check_unchanged()
        return places, landmarks


def features_of(graph: Graph, rows: Array) -> Array:
    """Features of rows as they are stored."""
    return graph.features.of_rows(graph.source.prepared(rows))


def largest(features: Array) -> np.ndarray:
    """Column of the largest feature of each row."""
    features = to_numpy(features)
    if not sparse.issparse(features):
        return np.asarray(features).argmax(axis=1)
    counts = np.diff(features.indptr)
    width = int(counts.max(initial=0))
    if not width or (counts != width).any():
        return np.asarray(features.argmax(axis=1)).reshape(-1)
    best = features.data.reshape(-1, width).argmax(axis=1)
    return np.asarray(features.indices.reshape(-1, width)[np.arange(len(best)), best])


def _coloured(shares: np.ndarray, keys: np.ndarray) -> np.ndarray:
    doubts = np.clip(np.rint(255.0 * uncertainty(shares)), 0, 255)
    return np.column_stack([keys[shares.argmax(axis=1)], doubts.astype(np.uint8)])


def _key(classes: list[str], name: str) -> int:
    place = classes.index(name) if name in classes else UNKNOWN
    return min(place, UNKNOWN)
