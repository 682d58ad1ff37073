"""Kinds of features in a table, told from a sample of rows, and the scale that suits each.

================ ==================================================================================
two values       0 and 1: left as they are where they are that already. Scaled to a spread of 1, a
                 column that is 1 in one row of a thousand would outweigh all others where it is 1
one-hot groups   neighbouring columns of 0 and 1 of which a row has at most one: two rows of
                 different categories are √2 apart, as two rows are in a number of spread 1
long tails       sign(u)·log(1 + |u|) of the distance u from the median in units of the usual
                 distance, then a spread of 1
other numbers    mean 0 and a spread of 1; integer codes among them
constants        0
================ ==================================================================================
"""

from __future__ import annotations

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

LONG_TAIL = 10.0
"""A feature has a long tail when it reaches this many times its usual distance from its median."""
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
    counts = (
        (varies & ~two & ~tails).sum(),
        tails.sum(),
        two.sum(),
        count_groups(sample, two, offset) if two.any() else 0,
        (~varies).sum(),
    )
    return Columns(
        offset=offset if dense else None,
        factor=factor,
        logged=tails if tails.any() else None,
        final=final,
        counts=np.array(counts),
    )


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


def count_groups(sample: Rows, two: np.ndarray, offset: np.ndarray) -> int:
    """Number of one-hot groups: runs of neighbours of which no row has two.

    A column that has a row in common with its run begins the next one, so a lone column of two
    values is a group as well.
    """
    places = np.flatnonzero(two)
    columns = sample[:, places]
    if sparse.issparse(columns):
        columns = columns.tocsc()
    taken = np.zeros(sample.shape[0], dtype=bool)
    groups, last = 0, -2
    for column, place in enumerate(places):
        if sparse.issparse(columns):
            ones = np.zeros(len(taken), dtype=bool)
            entries = slice(columns.indptr[column], columns.indptr[column + 1])
            ones[columns.indices[entries]] = columns.data[entries] != 0
        else:
            ones = columns[:, column] != offset[place]
        if place != last + 1 or (taken & ones).any():
            groups += 1
            taken[:] = False
        taken |= ones
        last = place
    return groups
