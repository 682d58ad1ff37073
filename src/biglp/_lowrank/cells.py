"""The nearest of thousands of landmarks for k-means, among those near the row's cell only.

A few dozen coarse centres cut the space into cells. A row is compared with them, and then with the
landmarks of its cell and those nearest to the cell's centre: a sixth of all. 98 % of images and
tables of 40 to 120 columns are given to their nearest landmark, and all of tables that are in
clusters; the others go to one that is nearly as near, which is enough for a step of Lloyd's
iteration: the sum of squared distances is at most 0.6 % larger. A landmark far out is in the cell
of the rows near it; without those of the cell itself, such rows went to landmarks far away. The
graph itself ties rows to landmarks that are the nearest of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biglp._lowrank.kernels import nearest_landmarks, relative_distances, scatter

LANDMARKS_EACH = 32
"""Landmarks a cell, about."""
SHARE = 0.25
"""Share of the landmarks that the rows of a cell are compared with."""
FEWEST_LANDMARKS = 1000
"""Landmarks from which on cells save time."""
ROUNDS = 2
"""Steps of Lloyd's iteration that put coarse centres among the landmarks."""
ROWS_AT_ONCE = 512
"""Rows whose distances are held at once."""
COPY_BYTES = 4 << 20
"""Rows that are put in the order of their cells at once."""


@dataclass(frozen=True)
class Cells:
    """Landmarks by the cells of coarse centres.

    Attributes
    ----------
    centres : ndarray of shape (q, m)
        Coarse centres.
    candidates : list of ndarray
        Landmarks that the rows of each cell are compared with, increasing.
    matrix : ndarray of shape (k, m + 1)
        −2·l and ‖l‖² of the landmarks: a row, followed by a 1, times this is its distance from
        them but for ‖x‖².
    """

    centres: np.ndarray
    candidates: list[np.ndarray]
    matrix: np.ndarray

    @classmethod
    def of(cls, landmarks: np.ndarray) -> Cells:
        """Put landmarks into cells."""
        k = len(landmarks)
        places = np.linspace(0, k - 1, max(k // LANDMARKS_EACH, 1)).astype(int)
        centres = landmarks[places]
        for _ in range(ROUNDS):
            nearest = nearest_landmarks(landmarks, centres, 1)[0]
            members = scatter(nearest, np.ones((k, 1), landmarks.dtype), len(centres))
            sizes = np.bincount(nearest[:, 0], minlength=len(centres))[:, None]
            means = np.asarray(members.T @ landmarks) / np.maximum(sizes, 1)
            centres = np.where(sizes > 0, means, centres).astype(landmarks.dtype)
        cell = nearest_landmarks(landmarks, centres, 1)[0][:, 0]
        distances = relative_distances(centres, landmarks)
        distances[cell, np.arange(k)] = -np.inf  # its own come first
        counts = np.maximum(np.bincount(cell, minlength=len(centres)), max(int(SHARE * k), 1))
        candidates = [
            np.sort(np.argpartition(one, count - 1)[:count])
            for one, count in zip(distances, counts.tolist(), strict=True)
        ]
        sizes = np.einsum("ij,ij->i", landmarks, landmarks)
        return cls(centres, candidates, np.hstack([landmarks * -2.0, sizes[:, None]]))

    def rows_at_once(self) -> int:
        """Rows that :meth:`nearest` should be asked about at once: few a cell take longer."""
        return COPY_BYTES // (self.matrix.shape[1] * self.matrix.itemsize) or 1

    def nearest(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A landmark near each row, nearly always the nearest, and ‖x − l‖² − ‖x‖².

        Returns
        -------
        columns, distances : ndarrays of shape (b, 1)
        """
        cell = nearest_landmarks(rows, self.centres, 1)[0][:, 0]
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(len(self.centres) + 1))
        ready = np.empty((len(rows), self.matrix.shape[1]), dtype=rows.dtype)
        np.take(rows, order, axis=0, out=ready[:, :-1])
        ready[:, -1] = 1.0
        columns = np.empty(len(rows), dtype=np.int32)
        values = np.empty(len(rows), dtype=rows.dtype)
        numbers = np.arange(ROWS_AT_ONCE)
        with np.errstate(over="ignore", invalid="ignore"):  # found out by what comes of it
            for number in np.flatnonzero(np.diff(starts)).tolist():
                candidates = self.candidates[number]
                compared = self.matrix[candidates].T
                for start in range(starts[number], starts[number + 1], ROWS_AT_ONCE):
                    stop = min(start + ROWS_AT_ONCE, starts[number + 1])
                    distances = ready[start:stop] @ compared
                    best = distances.argmin(axis=1)
                    columns[start:stop] = candidates[best]
                    values[start:stop] = distances[numbers[: stop - start], best]
        found = np.empty_like(columns), np.empty_like(values)
        found[0][order], found[1][order] = columns, values
        return found[0][:, None], found[1][:, None]
