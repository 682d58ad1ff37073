"""Rows projected on a few leading directions.

Where wide rows lie near a subspace of a few dozen dimensions, distances within it are the better
neighbours. Rows of words, counts or tf-idf weights of the words of a text, are weighted first. A
word that nearly every text has says nothing of it, and distances between rows of words are those
between the longest texts. So counts c become

    log(1 + c) · idf²,      idf = log((1 + n) / (1 + texts with the word)) + 1,

rows are brought to unit length, projected on their leading singular directions, where words that
occur together are one, and brought to unit length again. idf counts twice because it does so in
x·y wherever it is in both rows; with one idf, the leading directions are still those of the most
frequent words. Weights that are fractions have idf in them already, and get it once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, is_torch, largest_size, like, namespace
from biglp._core.size import Size
from biglp._transforms.base import RowTransform
from biglp._transforms.recognise import inverse

PROJECT_ABOVE, PROJECT_TO, PROJECT_SHARE = 200, 40, 0.6
"""Rows of so many features or more are projected on so many principal directions, where these hold
that share of the variance."""
COVARIANCE_FEATURES, COVARIANCE_ROWS = 2000, 1000
"""Features up to which principal directions come from the covariance matrix, of so many rows."""
OVERSAMPLED, SUBSPACE_STEPS = 10, 4
"""Directions beyond those asked for, and steps, in the randomised decomposition."""
RESTARTS = 3
"""Of ARPACK in float32, which seldom needs more than one."""
MOST_WORDS = 30_000
"""Words that are used: those in the most texts of the sample."""
TEXT_DIRECTIONS, TEXT_ROWS = 64, 10_000
"""Directions of text, and rows behind them."""
DIRECTION_POWER = 0.5
"""Directions count by this power of their singular value, beside the length that rows have along
them: the first ones are topics, the last ones single words."""


@dataclass(frozen=True)
class Project(RowTransform):
    """Rows times a few directions (m, d), by default the principal ones where these say most."""

    name: ClassVar[str] = "project"
    learnt: ClassVar[tuple[str, ...]] = ("directions", "unit")
    count: int | None = None  # None: as many as suits the rows, or none at all
    seed: int = 0
    words: bool = False  # weighted words have singular directions, each by its importance
    unit: bool = False  # rows are brought to length 1 again
    directions: np.ndarray | None = None  # None: rows stay as they are

    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        if self.words:
            count = self.count or TEXT_DIRECTIONS
            directions, lengths = leading_directions(sample, self.seed, count)
            scales = (lengths / max(lengths[0], np.finfo(np.float64).tiny)) ** DIRECTION_POWER
            directions = np.asarray(directions * scales.astype(directions.dtype))
            return replace(self, directions=directions)
        count = PROJECT_TO if self.count is None else self.count
        directions, share = principal_directions(sample, self.seed, count)
        useful = self.count is not None or share >= PROJECT_SHARE
        return replace(self, directions=directions if useful else None)

    def apply(self, rows: Rows) -> Rows:
        if self.directions is None:
            return rows
        rows = rows @ like(rows, self.directions)
        rows = rows if is_torch(rows) else np.asarray(rows)
        return unit_length(rows) if self.unit else rows

    def width(self, n_features: int) -> int:
        return n_features if self.directions is None else self.directions.shape[1]

    @property
    def changes_rows(self) -> bool:
        return self.directions is not None

    embeds = changes_rows

    @property
    def keeps_sparse(self) -> bool:
        return self.directions is None

    def describe(self) -> dict[str, Any]:
        return {} if self.directions is None else {"directions": self.directions.shape[1]}


def principal_directions(sample: Rows, seed: int, count: int) -> tuple[np.ndarray, float]:
    """The first principal directions of rows (m × count), and their share of the variance."""
    count = min(count, *sample.shape)
    largest, limits = largest_size(sample), np.finfo(sample.dtype)
    if largest and not float(limits.tiny) ** 0.2 < largest < float(limits.max) ** 0.2:
        # Fourth powers would leave the range of numbers. Times a power of two, directions and
        # shares remain what they are, to the last bit.
        power = -int(np.frexp(largest)[1])
        if sparse.issparse(sample):
            sample = sample.copy()
            sample.data = np.ldexp(sample.data, power)
        else:
            sample = np.ldexp(sample, power)
    if not sparse.issparse(sample) and sample.shape[1] <= COVARIANCE_FEATURES:
        rows = sample[:: max(len(sample) // max(COVARIANCE_ROWS, 2 * count), 1)]
        used = np.flatnonzero((rows != rows[0]).any(axis=0))
        if 2 * count < len(used) < rows.shape[1]:  # a quarter of the pixels of digits is never used
            rows = rows[:, used]
        else:
            used = np.arange(rows.shape[1])
        centred = rows - rows.mean(axis=0)
        covariance = centred.T @ centred
        values, vectors = _largest_eigenpairs(covariance, seed, count)
        directions = np.zeros((sample.shape[1], count))
        directions[used] = vectors[:, ::-1]
        explained = values.sum()
        whole = float(np.trace(covariance, dtype=np.float64))
    else:
        centred = sample if sparse.issparse(sample) else sample - sample.mean(axis=0)
        directions, lengths = leading_directions(centred, seed, count)
        explained = np.square(lengths).sum()
        entries = centred.data if sparse.issparse(centred) else centred
        whole = float(np.square(entries, dtype=np.float64).sum())
    return directions, float(explained / max(whole, np.finfo(np.float64).tiny))


def leading_directions(
    rows: Rows,
    seed: int,
    count: int,
    oversampled: int = OVERSAMPLED,
    steps: int = SUBSPACE_STEPS,
) -> tuple[np.ndarray, np.ndarray]:
    """Right singular vectors of the largest singular values, and these.  (m, count), (count,).

    A random subspace is multiplied by XᵀX a few times and made orthonormal in between: products
    with sparse rows only, which stay sparse.
    """
    n_rows, n_features = rows.shape
    count = min(count, n_rows, n_features)
    width = min(count + oversampled, n_rows, n_features)
    start = np.random.default_rng(seed).standard_normal((n_features, width))
    across = rows.T.tocsr() if sparse.issparse(rows) else rows.T
    basis = _orthonormal(start.astype(rows.dtype))
    for _ in range(steps):
        basis = _orthonormal(across @ (rows @ basis))
    seen = np.asarray(rows @ basis)
    values, turn = np.linalg.eigh(np.asarray(seen.T @ seen, dtype=np.float64))
    largest = slice(None, -count - 1, -1)
    directions = basis @ turn[:, largest].astype(basis.dtype)
    # A direction has two signs, and rounding must not choose between them.
    longest = np.abs(directions).argmax(axis=0)
    directions *= np.sign(directions[longest, np.arange(count)])
    return np.ascontiguousarray(directions), np.sqrt(np.maximum(values[largest], 0.0))


def _orthonormal(basis: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the same subspace; zeros where it has fewer dimensions.

    By the eigenvectors of BᵀB, a product where Householder's steps are many: twenty times faster
    for ten thousand rows, and the loss of half the digits is made up for by the next step.
    """
    values, turn = np.linalg.eigh(np.asarray(basis.T @ basis, dtype=np.float64))
    least = values[-1] * len(values) * np.finfo(basis.dtype).eps
    known = values > max(least, 0.0)  # no dimension at all where all rows are zero
    scales = np.where(known, 1.0 / np.sqrt(np.where(known, values, 1.0)), 0.0)
    return np.asarray(basis @ (turn * scales).astype(basis.dtype))


def _largest_eigenpairs(matrix: np.ndarray, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues, increasing, and their eigenvectors.

    In float32 ARPACK takes half of the time, and rows in float32 are multiplied by directions in
    float32. But it would not end where the last of the eigenvalues are below the rounding of the
    first: after a few restarts float64 takes over.
    """
    from scipy.linalg import eigh  # slow to load, and seldom needed
    from scipy.sparse.linalg import ArpackError, eigsh

    m = len(matrix)
    exact = matrix.astype(np.float64, copy=False)
    if count < m // 2:
        start = np.random.default_rng(seed).normal(size=m)
        # Of a size at which what ARPACK takes for zero in float32 is far below its tolerance.
        size = max(float(np.trace(exact)), np.finfo(np.float64).tiny) / m
        tries = [] if matrix is exact else [(matrix / matrix.dtype.type(size), RESTARTS, size)]
        for attempt, most, scale in (*tries, (exact, None, 1.0)):
            first = start.astype(attempt.dtype)
            try:
                values, vectors = eigsh(attempt, count, v0=first, tol=1e-4, maxiter=most)
            except ArpackError:  # fewer directions than are asked for have any variance
                continue
            return scale * values.astype(np.float64), vectors
    values, vectors = eigh(exact, subset_by_index=(m - count, m - 1))
    return values, vectors


def text_bytes(n_features: int, count: int) -> int:
    """What finding directions takes, beside the sample: the subspace before, in and after a step.

    Of all features only how many texts each is in is counted.
    """
    return 8 * (5 * min(n_features, MOST_WORDS) * (count + OVERSAMPLED) + 3 * n_features)


def word_weights(sample: Rows) -> tuple[np.ndarray, np.ndarray, bool]:
    """Words that are used, increasing (w,), their weights (w,), and whether rows hold counts.

    Counts c become log(1 + c) before they are weighted.
    """
    rows = sample if sparse.issparse(sample) else sparse.csr_matrix(sample)
    n_rows, n_features = rows.shape
    texts = np.bincount(rows.indices[rows.data != 0], minlength=n_features)
    counts = bool((rows.data == np.rint(rows.data)).all())
    # A word of one text only cannot say that two texts are alike.
    words = np.flatnonzero(texts >= 2)
    if len(words) > MOST_WORDS:
        words = np.sort(words[np.argsort(-texts[words], kind="stable")[:MOST_WORDS]])
    if len(words) == 0:
        words = np.arange(min(n_features, MOST_WORDS))
    idf = np.log((1 + n_rows) / (1 + texts[words])) + 1.0
    return words, idf**2 if counts else idf, counts


def unit_length(rows: Rows) -> Rows:
    """Rows of length 1; a row of zeros stays one."""
    if is_torch(rows):
        squares = namespace(rows).einsum("ij,ij->i", rows, rows)
        return rows * squares.rsqrt().where(squares > 0, 0.0)[:, None]
    if sparse.issparse(rows):
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    else:
        squares = np.einsum("ij,ij->i", rows, rows)
    factor = inverse(np.sqrt(squares)).astype(rows.dtype)
    if not sparse.issparse(rows):
        return rows * factor[:, None]
    scaled = rows.copy()
    scaled.data *= np.repeat(factor, np.diff(rows.indptr))
    return scaled
