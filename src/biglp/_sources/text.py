"""Rows of words: counts, or tf-idf weights, of the words of a text.

A word that nearly every text has says nothing of it, and distances between rows of words are those
between the longest texts. So counts c become

    log(1 + c) · idf²,      idf = log((1 + n) / (1 + texts with the word)) + 1,

rows are brought to unit length, projected on their leading singular directions, where words that
occur together are one, and brought to unit length again. idf counts twice because it does so in
x·y wherever it is in both rows; with one idf, the leading directions are still those of the most
frequent words. Weights that are fractions have idf in them already, and get it once more.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._sources.directions import OVERSAMPLED, leading_directions

LEAST_WORDS = 200
"""Features below which rows are a table, not text."""
MOST_FILLED = 0.1
"""Share of the entries of text that are not zero, at most."""
LEAST_VARIATION = 0.15
"""Texts differ in length; rows of a table with one-hot columns all have about as many entries.
Spread of the number of entries in a row, in units of its mean, from which on rows are text."""
MOST_WORDS = 30_000
"""Words that are used: those in the most texts of the sample."""
TEXT_DIRECTIONS = 64
TEXT_ROWS = 10_000
"""Directions of text, and rows behind them."""
DIRECTION_POWER = 0.5
"""Directions count by this power of their singular value, beside the length that rows have along
them: the first ones are topics, the last ones single words."""


def text_directions(rows: Rows, seed: int, count: int | None) -> np.ndarray:
    """Leading singular directions of weighted rows, each by its importance.  (w, count)."""
    directions, lengths = leading_directions(rows, seed, count or TEXT_DIRECTIONS)
    scales = (lengths / max(lengths[0], np.finfo(np.float64).tiny)) ** DIRECTION_POWER
    return np.asarray(directions * scales.astype(directions.dtype))


def text_bytes(n_features: int, count: int) -> int:
    """What finding directions takes, beside the sample: the subspace before, in and after a step.

    Of all features only how many texts each is in is counted.
    """
    return 8 * (5 * min(n_features, MOST_WORDS) * (count + OVERSAMPLED) + 3 * n_features)


def is_text(sample: Rows) -> bool:
    """Whether sparse rows look like words of texts."""
    n_rows, n_features = sample.shape
    if not sparse.issparse(sample) or n_features < LEAST_WORDS or sample.nnz == 0:
        return False
    entries = np.diff(sample.indptr)
    varied = entries.std() > LEAST_VARIATION * entries.mean()
    return bool(varied and sample.nnz <= MOST_FILLED * n_rows * n_features)


def word_weights(sample: Rows) -> tuple[np.ndarray, np.ndarray, bool]:
    """Words that are used, the weight of each, and whether the rows hold counts.

    Returns
    -------
    words : ndarray of shape (w,)
        Their columns, increasing.
    weights : ndarray of shape (w,)
    counts : bool
        Whether entries are counts, which become log(1 + c) first.
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
