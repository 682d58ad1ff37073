"""Kinds of features, told from a sample of rows, and the scale that suits each in a table.

================ ==================================================================================
one-hot groups   neighbouring columns of 0 and 1 of which a row has at most one: left as they are.
                 Two rows of different categories are √2 apart, as two rows usually are in a number
                 of spread 1. Scaled to a spread of 1 each, a column that is 1 in one row of a
                 thousand would outweigh all others where it is 1
other two values 0 and √2, so that two rows are as far apart
long tails       sign(u)·log(1 + |u|) of the distance u from the median in units of the usual
                 distance, then a spread of 1
other numbers    mean 0 and a spread of 1; integer codes among them
constants        0
================ ==================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, namespace, to_device, to_numpy

LOOKED_AT, USUAL_COUNT = 100, 2.0
"""Dense rows that are looked at first; and how often a word that is in a text is in it, usually, at
most. Pixels that are mostly empty are whole numbers too, and larger."""
LEAST_WORDS = 200
"""Features below which rows are a table, not text."""
MOST_FILLED = 0.1
"""Share of the entries of text that are not zero, at most."""
LEAST_VARIATION = 0.15
"""Texts differ in length; rows of a table with one-hot columns all have about as many entries.
Spread of the number of entries in a row, in units of its mean, from which on rows are text."""
LONG_TAIL = 5.0
"""A feature has a long tail when it reaches this many times its usual distance from its median."""
EMBEDDING_FEATURES, EMBEDDING_SHARE = 32, 0.9
EMBEDDING_SIGNS, EMBEDDING_SPREADS = 0.05, 30.0
"""An embedding has so many features or more. That share of them is of both signs in that share of
the rows or more, and the spreads of those in the middle differ by no more than that factor."""
LIKE_LENGTHS, EQUAL_LENGTHS = 1.5, 0.2
"""Rows of m independent numbers differ in length by 1/√(2m) of the mean. Where they differ more
than that by the first factor, angles are what embeddings are about. Where they differ less than
that by the second, somebody has given them length 1 for that reason. In between lengths say
nothing, and unit length would change little."""
STANDARDISED = 0.02
"""Spreads that differ by less than this were made equal by someone: that is a table."""
LONE_FACTOR = np.sqrt(2.0)
"""A lone column of two values is a one-hot group of two columns, of which one was left out."""
LEAST_TAKEN = 0.5
"""Share of the rows that have one of a group's columns; rare marks that never meet are no group."""
COUNTED = ("numbers", "long_tails", "two_valued", "groups", "constant")
"""What is counted, for the report."""
STATISTICS_BYTES, PART_BYTES = 4 << 20, 1 << 20
"""What a few columns, or rows, of a sample take while they are looked at."""
USUAL_SHARE, LEAST_USUAL = 0.75, 0.1
"""A feature's usual distance from its median is that of three quarters of the rows, but no less
than a tenth of its standard deviation."""


def is_text(sample: Rows) -> bool:
    """Whether rows look like words of texts, however they are stored.

    Of dense rows only counts do: tf-idf weights are fractions as any other numbers are.
    """
    n_rows, n_features = sample.shape
    if n_features < LEAST_WORDS:
        return False
    if not sparse.issparse(sample):
        for rows in (sample[:LOOKED_AT], sample):  # most others show it among a few rows
            entries = rows[rows != 0]
            if not 0 < entries.size <= MOST_FILLED * rows.size or np.median(entries) > USUAL_COUNT:
                return False
            if entries.min() < 0 or (entries % 1 != 0).any():
                return False
        sample = sparse.csr_matrix(sample)
    if sample.nnz == 0:
        return False
    entries = np.diff(sample.indptr)
    varied = entries.std() > LEAST_VARIATION * entries.mean()
    return bool(varied and sample.nnz <= MOST_FILLED * n_rows * n_features)


def is_table(sample: Rows, statistics: Statistics) -> bool:
    """Whether features are to be taken each by its kind: scales differ, or numbers meet categories.

    Numbers from 0 to 1 beside one-hot columns share their range, but not their distances: a number
    moves by a tenth where a category moves by one.
    """
    width = statistics.high - statistics.low
    width = width[width > 0]
    # One scale: most of the features that vary span nearly the same range.
    if width.size and not (
        np.median(width) >= 0.5 * width.max() and np.quantile(width, 0.1) > 0.1 * width.max()
    ):
        return True
    two = two_valued(sample, statistics)
    numbers = (statistics.spread > 0) & ~two
    if not (two.any() and numbers.any()):
        return False
    return bool((one_hot_groups(sample, two, statistics.low) >= 0).any())


def is_embedding(sample: Rows, statistics: Statistics) -> bool:
    """Whether rows look like embeddings or principal components.

    These are many numbers of both signs and of like spreads, in which no single one means anything.
    """
    n_features, spread = len(statistics.spread), statistics.spread
    if sparse.issparse(sample) or n_features < EMBEDDING_FEATURES or (sample[0] % 1 == 0).all():
        return False
    ends = (1.0 - EMBEDDING_SHARE) / 2
    narrow, wide = np.quantile(spread, [ends, 1.0 - ends])
    if not (1.0 + STANDARDISED) * narrow < wide <= EMBEDDING_SPREADS * narrow:
        return False
    positive = (sample > 0).mean(axis=0)
    both = (positive >= EMBEDDING_SIGNS) & (positive <= 1.0 - EMBEDDING_SIGNS)
    return bool(both.mean() >= EMBEDDING_SHARE and not two_valued(sample, statistics).any())


def angles_count(sample: np.ndarray) -> bool:
    """Whether rows differ in length by more than they would by chance, or hardly at all."""
    lengths = np.sqrt(np.square(sample, dtype=np.float64).sum(axis=1))
    by_chance = lengths.mean() / np.sqrt(2.0 * sample.shape[1])
    spread = float(lengths.std())
    return not EQUAL_LENGTHS * by_chance <= spread <= LIKE_LENGTHS * by_chance


def has_long_tail(sample: Rows, statistics: Statistics) -> np.ndarray:
    """Whether a feature reaches many times further than its usual distance from its middle."""
    low, high, _, spread = statistics
    middle, usual = usual_range(sample, spread)
    with np.errstate(over="ignore"):  # an infinite bound is not reached
        reach = np.maximum(high - middle, middle - low)
        return np.asarray(reach > LONG_TAIL * usual)


def log_scales(sample: Rows, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Median, factor before and factor after the logarithm, of each feature."""
    middle, usual = usual_range(sample, spread)
    factor = inverse(usual)
    if sparse.issparse(sample):
        units = sample.multiply(factor).tocsr()
    else:
        units = (sample - middle) * factor
    return middle, factor, inverse(feature_statistics(signed_log(units)).spread)


def one_hot_groups(sample: Rows, two: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Number of the one-hot group that each feature belongs to, or −1.  (m,).

    A group is a run of neighbours of two values of which no row has two and most rows have one. A
    column that has a row in common with its run begins the next run.
    """
    groups = np.full(len(two), -1)
    run: list[int] = []
    taken = np.zeros(sample.shape[0], dtype=bool)

    def close() -> None:
        if len(run) > 1 and taken.mean() >= LEAST_TAKEN:
            groups[run] = groups.max() + 1
        run.clear()
        taken[:] = False

    indices = np.flatnonzero(two)
    columns = sample[:, indices].tocsc() if sparse.issparse(sample) else None
    for number, index in enumerate(indices.tolist()):
        if columns is None:
            ones = sample[:, index] != offset[index]
        else:
            column = slice(*columns.indptr[number : number + 2])
            ones = np.zeros(sample.shape[0], dtype=bool)
            ones[columns.indices[column]] = columns.data[column] != 0
        if run and (index != run[-1] + 1 or (taken & ones).any()):
            close()
        run.append(index)
        taken |= ones
    close()
    return groups


class Statistics(NamedTuple):
    """Minimum, maximum, mean and standard deviation of each feature of a sample.  (m,) each."""

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


def feature_statistics(sample: Rows, device: str = "cpu") -> Statistics:
    """Look at every feature of a sample, dense or CSR, on a device where that is one."""
    if sparse.issparse(sample):
        low = sample.min(axis=0).toarray().ravel()
        high = sample.max(axis=0).toarray().ravel()
        largest = float(max(np.abs(low).max(), np.abs(high).max())) or 1.0
        scaled = sample.astype(np.float64)
        # SciPy would multiply by 1 / largest, which is infinite for denormal numbers.
        scaled.data /= largest
        mean = np.asarray(scaled.mean(axis=0)).ravel()
        square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0)) * largest
        return Statistics(low.astype(np.float64), high.astype(np.float64), mean * largest, spread)
    if device != "cpu":
        values = to_device(sample, device).double()
        low, high = values.amin(0), values.amax(0)
        size = low.abs().maximum(high.abs())
        scaled = values / size.where(size > 0, 1.0)
        mean = scaled.mean(0)
        spread = (scaled - mean).square().mean(0).sqrt().where(low < high, 0.0)
        return Statistics(*map(to_numpy, (low, high, mean * size, spread * size)))
    low, high = (np.asarray(limit, dtype=np.float64) for limit in (sample.min(0), sample.max(0)))
    # So that squares of huge values do not overflow.
    size = np.maximum(np.abs(low), np.abs(high))
    factor = inverse(size)
    mean, square = np.zeros(sample.shape[1]), np.zeros(sample.shape[1])
    # A few rows at a time: a float64 copy of all takes several times their memory.
    step = max(PART_BYTES // (8 * sample.shape[1]), 1)
    for start in range(0, len(sample), step):
        rows = sample[start : start + step].astype(np.float64) * factor
        mean += np.ones(len(rows)) @ rows
    mean /= len(sample)
    for start in range(0, len(sample), step):
        rows = (sample[start : start + step].astype(np.float64) * factor - mean) ** 2
        square += np.ones(len(rows)) @ rows
    square /= len(sample)
    # Rounding of the mean is no spread.
    spread = np.where(low < high, np.sqrt(square) * size, 0.0)
    return Statistics(low, high, mean * size, spread)


def usual_range(sample: Rows, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median of each feature, and the distance from it within which three quarters of rows lie.

    A feature that is nearly always the same has a distance of zero; a tenth of its standard
    deviation takes its place.
    """
    if sparse.issparse(sample):
        middle = np.zeros(sample.shape[1])
        usual = np.zeros(sample.shape[1])
        columns = sample.tocsc()
        for j in np.flatnonzero(np.diff(columns.indptr) > sample.shape[0] // 4):
            usual[j] = np.quantile(np.abs(columns[:, [j]].toarray()), USUAL_SHARE)
    else:
        values = np.asarray(sample, dtype=np.float64)
        middle = np.median(values, axis=0)
        usual = np.quantile(np.abs(values - middle), USUAL_SHARE, axis=0)
    return middle, np.maximum(usual, LEAST_USUAL * spread)


def two_valued(sample: Rows, statistics: Statistics) -> np.ndarray:
    """Whether a feature has two values in the sample, of which 0 is one where rows are sparse."""
    low, high = statistics.low, statistics.high
    if sparse.issparse(sample):
        # An entry has the column's one value that is not zero; absent ones are zeros.
        value = np.where(high > 0, high, low)
        other = (sample.data != value[sample.indices]) & (sample.data != 0)
        mixed = np.bincount(sample.indices[other], minlength=sample.shape[1]) > 0
        return (low < high) & ~mixed & ((low == 0) | (high == 0))
    two = low < high
    at_once = max(STATISTICS_BYTES // (8 * len(sample)), 1)
    # Most features show a third value among a few rows; only the others are looked at in whole.
    for rows in (sample[:100], sample):
        waiting = np.flatnonzero(two)
        for start in range(0, len(waiting), at_once):
            some = waiting[start : start + at_once]
            values = rows[:, some]
            two[some] = ((values == low[some]) | (values == high[some])).all(axis=0)
    return two


def inverse(width: np.ndarray) -> np.ndarray:
    """One over each width; a constant feature has factor 0, so that it says nothing.

    One over a width below the smallest normal number would be infinite.
    """
    # NumPy 1 would compare single precision with that number in single precision, where it is 0.
    wide = width.astype(np.float64, copy=False) >= np.finfo(np.float64).tiny
    return np.where(wide, 1.0 / np.where(wide, width, 1.0), 0.0)


def signed_log(rows: Rows) -> Rows:
    """sign(u)·log(1 + |u|), entry by entry; zeros stay zeros."""
    if sparse.issparse(rows):
        squashed = rows.copy()
        squashed.data = signed_log(rows.data)
        return squashed
    # log(1 + u) rather than log1p: several times faster, and exact enough beside a scale of 1.
    xp = namespace(rows)
    squashed = xp.abs(rows)
    squashed += 1
    xp.log(squashed, out=squashed)
    return xp.copysign(squashed, rows, out=squashed)
