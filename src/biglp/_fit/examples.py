"""Rows of each class to look at: typical ones, doubtful ones, and labels that may be wrong.

typical     k-means of the class's rows in the leading directions of the graph; of each cluster
            the row nearest to its centre, that of the largest cluster first
doubtful    rows whose class is the least sure
suspicious  labelled rows that the other labels contradict
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from biglp._core.arrays import to_numpy
from biglp._fit.typical import clustered
from biglp._labels.doubts import LabelDoubts
from biglp._rows import Source

PARTS = ("typical", "doubtful", "suspicious")
"""What a row is an example of."""
MOST_CLASSES, EACH = 20, 6
"""Classes that are shown, the largest, and rows of each part of each."""
CLASS_ROWS = 200
"""Rows of a class that typical ones are chosen from."""
ENTRIES = 16
"""Largest entries that are kept of a sparse row."""
VALUES_BYTES = 16 << 20
"""What the rows that are shown may take; of wider ones the first features are kept."""


@dataclass(frozen=True)
class Sampled:
    """Rows, and what is said of them.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Row numbers, increasing.
    codes, others : ndarrays of shape (m,)
        The likeliest class and the next.
    confidence : ndarray of shape (m,)
        Probability of the likeliest class.
    units : ndarray of shape (m, q)
        Unit vectors in leading directions of the graph; (m, 0) where they are not known.
    """

    rows: np.ndarray
    codes: np.ndarray
    others: np.ndarray
    confidence: np.ndarray
    units: np.ndarray


@dataclass(frozen=True)
class Examples:
    """Rows to look at.

    Attributes
    ----------
    rows : ndarray of shape (s,)
        Row numbers.
    parts : ndarray of shape (s,)
        Places in ``PARTS``.
    codes : ndarray of shape (s,)
        Class under which the row is shown: the likeliest, or the label that was given.
    others : ndarray of shape (s,)
        The next likely class, or the one that the other labels suggest.
    shares : ndarray of shape (s,)
        Confidence, or the probability that the label is wrong.
    values : ndarray of shape (s, w)
        The rows as they were given; of sparse ones the largest entries.
    columns : ndarray of shape (s, w) or (0, 0)
        Which features these entries are, where rows are sparse.
    """

    rows: np.ndarray
    parts: np.ndarray
    codes: np.ndarray
    others: np.ndarray
    shares: np.ndarray
    values: np.ndarray
    columns: np.ndarray

    def with_values(self, source: Source) -> Examples:
        """Read what the rows hold."""
        if not len(self.rows):
            return self
        rows, places = np.unique(self.rows, return_inverse=True)
        taken = to_numpy(source.take(rows))
        if sparse.issparse(taken):
            values, columns = largest_entries(sparse.csr_array(taken))
            return replace(self, values=values[places], columns=columns[places])
        width = max(VALUES_BYTES // (len(self.rows) * 4), 1)
        most = np.finfo(np.float32).max  # what is larger is shown as that
        values = np.clip(taken[places, :width], -most, most).astype(np.float32)
        return replace(self, values=values)


def choose_examples(
    sampled: Sampled, n_classes: int, doubts: LabelDoubts | None, seed: int
) -> Examples:
    """Choose rows of the largest classes; their values are not read yet.

    Parameters
    ----------
    sampled : Sampled
    n_classes : int
    doubts : LabelDoubts or None
        What is thought of the given labels.
    seed : int
    """
    sizes = np.bincount(sampled.codes, minlength=n_classes)
    shown = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CLASSES])
    found: list[tuple[int, int, int, int, float]] = []
    for code in shown.tolist():
        own = np.flatnonzero(sampled.codes == code)
        doubtful = own[np.argsort(sampled.confidence[own], kind="stable")[:EACH]]
        for part, places in enumerate((_typical(sampled, own, seed), doubtful)):
            found += [
                (sampled.rows[at], part, code, sampled.others[at], sampled.confidence[at])
                for at in places
            ]
        found += _suspicious(doubts, code)
    columns = zip(*found, strict=True) if found else ((),) * 5
    rows, parts, codes, others, shares = (np.array(list(column)) for column in columns)
    return Examples(
        rows=rows.astype(np.int64),
        parts=parts.astype(np.int64),
        codes=codes.astype(np.int64),
        others=others.astype(np.int64),
        shares=shares.astype(np.float32),
        values=np.empty((0, 0), dtype=np.float32),
        columns=np.empty((0, 0), dtype=np.int64),
    )


def largest_entries(rows: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Values and columns of the largest entries of each row; 0 and −1 where there are fewer."""
    values = np.zeros((rows.shape[0], ENTRIES), dtype=np.float32)
    columns = np.full(values.shape, -1, dtype=np.int64)
    most = np.finfo(np.float32).max  # what is larger is shown as that
    for place in range(rows.shape[0]):
        part = slice(rows.indptr[place], rows.indptr[place + 1])
        best = np.argsort(-np.abs(rows.data[part]), kind="stable")[:ENTRIES]
        values[place, : len(best)] = np.clip(rows.data[part][best], -most, most)
        columns[place, : len(best)] = rows.indices[part][best]
    return values, columns


def _typical(sampled: Sampled, own: np.ndarray, seed: int) -> np.ndarray:
    """Places in the sample of typical rows of a class."""
    if not sampled.units.shape[1] or len(own) <= EACH:
        return own[np.argsort(-sampled.confidence[own], kind="stable")[:EACH]]
    if len(own) > CLASS_ROWS:
        own = np.sort(np.random.default_rng(seed).choice(own, CLASS_ROWS, replace=False))
    vectors = sampled.units[own].astype(np.float64)
    clusters, squared = clustered(vectors, EACH, seed, starts=1)
    sizes = np.bincount(clusters)
    order = [cluster for cluster in np.argsort(-sizes, kind="stable") if sizes[cluster]]
    members = (np.flatnonzero(clusters == cluster) for cluster in order)
    return own[[each[squared[each].argmin()] for each in members]]


def _suspicious(doubts: LabelDoubts | None, code: int) -> list[tuple[int, int, int, int, float]]:
    """Labels of a class that the others contradict, the most doubtful first."""
    if doubts is None:
        return []
    contradicted = doubts.suggested_probability > doubts.probability
    own = np.flatnonzero(contradicted & (doubts.codes == code))
    own = own[np.lexsort((doubts.rows[own], -doubts.wrong[own]))][:EACH]
    part = PARTS.index("suspicious")
    return [
        (int(doubts.rows[at]), part, code, int(doubts.suggested[at]), float(doubts.wrong[at]))
        for at in own
    ]
