"""Nearest neighbours: a vote of the labelled rows, and how far rows lie apart."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from biglp._core.arrays import Rows
from biglp._core.parameters import positive_integer
from biglp._labels.labels import Labels
from biglp.baselines.base import Baseline

NEIGHBOUR = 7
"""The neighbour whose distance says how close together rows lie."""
DISTANCE_ROWS = 500
"""Rows that the typical distance is taken from."""


class NearestNeighbours(Baseline):
    """Vote of the nearest labelled rows, through scikit-learn; unlabelled rows are not used.

    Parameters
    ----------
    n_neighbors : int
        Labelled rows that vote; all of them when there are fewer.
    n_jobs : int, optional
        Processes of scikit-learn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        Label of every training row; a labelled row keeps its own.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Share of the votes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from biglp.baselines import NearestNeighbours
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = truth.copy()
    >>> y[1::2] = -1
    >>> model = NearestNeighbours(3).fit(X, y)
    >>> model.predict(X[:2]), model.predict_proba(X[:2]).shape
    (array([0, 0]), (2, 3))
    """

    def __init__(self, n_neighbors: int = 5, n_jobs: int | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def _fit(self, rows: Rows, labels: Labels) -> np.ndarray:
        count = min(positive_integer("n_neighbors", self.n_neighbors), len(labels.rows))
        self._voters = KNeighborsClassifier(count, n_jobs=self.n_jobs)
        self._voters.fit(rows[labels.rows], labels.codes)
        shares = self._score(rows)
        shares[labels.rows] = labels.one_hot(labels.codes)
        return shares

    def _score(self, rows: Rows) -> np.ndarray:
        return self._voters.predict_proba(rows)


def neighbour_distance(rows: Rows) -> float | None:
    """Typical distance of a row to its seventh neighbour; None where all rows are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from biglp.baselines import neighbour_distance
    >>> 3 < neighbour_distance(np.arange(100.0)[:, None]) < 5
    True
    """
    neighbours = NearestNeighbors(n_neighbors=min(NEIGHBOUR + 1, rows.shape[0])).fit(rows)
    step = max(1, rows.shape[0] // DISTANCE_ROWS)
    distances = neighbours.kneighbors(rows[::step])[0][:, -1]  # the first is the row itself
    apart = distances[distances > 0]
    return float(np.sqrt(np.mean(apart**2))) if apart.size else None
