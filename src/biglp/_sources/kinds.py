"""Kinds of features in a table, told from a sample of rows, and the scale that suits each.

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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._sources.statistics import (
    Statistics,
    feature_statistics,
    inverse,
    signed_log,
    two_valued,
    usual_range,
)

LONG_TAIL = 5.0
"""A feature has a long tail when it reaches this many times its usual distance from its median."""
EMBEDDING_FEATURES = 32
EMBEDDING_SHARE = 0.9
EMBEDDING_SIGNS = 0.05
EMBEDDING_SPREADS = 30.0
"""An embedding has so many features or more. That share of them is of both signs in that share of
the rows or more, and the spreads of those in the middle differ by no more than that factor."""
LIKE_LENGTHS = 1.5
"""Rows of m independent numbers differ in length by 1/√(2m) of the mean. Where the difference is no
larger than that by this factor, lengths say nothing, and unit length would change little."""
STANDARDISED = 0.02
"""Spreads that differ by less than this were made equal by someone: that is a table."""
LONE_FACTOR = np.sqrt(2.0)
"""A lone column of two values is a one-hot group of two columns, of which one was left out."""
LEAST_TAKEN = 0.5
"""Share of the rows that have one of a group's columns; rare marks that never meet are no group."""
COUNTED = ("numbers", "long_tails", "two_valued", "groups", "constant")
"""What is counted, for the report."""


@dataclass(frozen=True)
class Columns:
    """The scale of each feature of a table.

    Attributes
    ----------
    offset : ndarray of shape (m,) or None
        What is taken off; None where rows are sparse, which centring would fill in.
    factor : ndarray of shape (m,)
    logged : ndarray of shape (m,) or None
        Features that are put on a logarithmic scale after that.
    final : ndarray of shape (m,) or None
        Factor after the logarithm.
    counts : ndarray of shape (5,)
        Numbers, long tails, features of two values, groups of these, constants.
    """

    offset: np.ndarray | None
    factor: np.ndarray
    logged: np.ndarray | None
    final: np.ndarray | None
    counts: np.ndarray


def table_columns(sample: Rows, statistics: Statistics) -> Columns:
    """Find the kind of each feature, and its scale."""
    low, high, mean, spread = statistics
    dense = not sparse.issparse(sample)
    two = two_valued(sample, statistics)
    varies = spread > 0
    tails = has_long_tail(sample, statistics) & varies & ~two
    offset = np.where(two, low, mean)
    factor = inverse(np.where(two, high - low, spread))
    final = None
    if tails.any():
        middle, squeeze, stretch = log_scales(sample[:, tails], spread[tails])
        offset[tails], factor[tails] = middle, squeeze
        final = np.ones(len(low))
        final[tails] = stretch
    groups = one_hot_groups(sample, two, offset)
    factor[two & (groups < 0)] *= LONE_FACTOR
    numbers = varies & ~two & ~tails
    counts = (numbers.sum(), tails.sum(), two.sum(), groups.max() + 1, (~varies).sum())
    return Columns(
        offset=offset if dense else None,
        factor=factor,
        logged=tails if tails.any() else None,
        final=final,
        counts=np.array(counts),
    )


def is_table(sample: Rows, statistics: Statistics) -> bool:
    """Whether features are to be taken each by its kind: scales differ, or numbers meet categories.

    Numbers from 0 to 1 beside one-hot columns share their range, but not their distances: a number
    moves by a tenth where a category moves by one.
    """
    if not share_one_scale(statistics):
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


def lengths_differ(sample: np.ndarray) -> bool:
    """Whether rows differ in length by more than they would by chance."""
    lengths = np.sqrt(np.square(sample, dtype=np.float64).sum(axis=1))
    by_chance = lengths.mean() / np.sqrt(2.0 * sample.shape[1])
    return bool(lengths.std() > LIKE_LENGTHS * by_chance)


def share_one_scale(statistics: Statistics) -> bool:
    """Features have one scale when most of those that vary span nearly the same range."""
    low, high = statistics.low, statistics.high
    width = (high - low)[high > low]
    if width.size == 0:
        return True
    return bool(
        np.median(width) >= 0.5 * width.max() and np.quantile(width, 0.1) > 0.1 * width.max()
    )


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

    for place, ones in _ones(sample, np.flatnonzero(two), offset):
        if run and (place != run[-1] + 1 or (taken & ones).any()):
            close()
        run.append(place)
        taken |= ones
    close()
    return groups


def _ones(sample: Rows, places: np.ndarray, offset: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Columns of two values, one after the other, and the rows that have the second one."""
    if not sparse.issparse(sample):
        for place in places.tolist():
            yield place, sample[:, place] != offset[place]
        return
    columns = sample[:, places].tocsc()
    for place, start, stop in zip(
        places.tolist(), columns.indptr[:-1], columns.indptr[1:], strict=True
    ):
        ones = np.zeros(sample.shape[0], dtype=bool)
        ones[columns.indices[start:stop]] = columns.data[start:stop] != 0
        yield place, ones
