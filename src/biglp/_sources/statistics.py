"""What a sample of rows tells of its features: ranges, means, spreads, tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, namespace, to_device, to_numpy

STATISTICS_BYTES = 4 << 20
PART_BYTES = 1 << 20
"""What a few columns, or rows, of a sample take while they are looked at."""
USUAL_SHARE = 0.75
LEAST_USUAL = 0.1
"""A feature's usual distance from its median is that of three quarters of the rows, but no less
than a tenth of its standard deviation."""


class Statistics(NamedTuple):
    """Minimum, maximum, mean and standard deviation of each feature of a sample.  (m,) each."""

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


def feature_statistics(sample: Rows, device: str = "cpu") -> Statistics:
    """Look at every feature of a sample, dense or CSR, on a device where that is one."""
    if sparse.issparse(sample):
        return _sparse_statistics(sample)
    if device != "cpu":
        return _device_statistics(to_device(sample, device).double())
    low, high = (np.asarray(one, dtype=np.float64) for one in (sample.min(0), sample.max(0)))
    # So that squares of huge values do not overflow.
    size = np.maximum(np.abs(low), np.abs(high))
    factor = inverse(size)
    mean = _summed(sample, lambda part: part * factor) / len(sample)
    square = _summed(sample, lambda part: (part * factor - mean) ** 2) / len(sample)
    # Rounding of the mean is no spread.
    spread = np.where(low < high, np.sqrt(square) * size, 0.0)
    return Statistics(low, high, mean * size, spread)


def _summed(sample: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Sums over rows, a few at a time: a float64 copy of all takes several times their memory."""
    step = max(PART_BYTES // (8 * sample.shape[1]), 1)
    total = np.zeros(sample.shape[1])
    for start in range(0, len(sample), step):
        part = of(sample[start : start + step].astype(np.float64))
        total += np.ones(len(part)) @ part
    return total


def columns_at_once(sample: np.ndarray) -> int:
    """Columns of a dense sample whose float64 copy is small."""
    return max(STATISTICS_BYTES // (8 * len(sample)), 1)


def _device_statistics(values: Any) -> Statistics:
    low, high = values.amin(0), values.amax(0)
    size = low.abs().maximum(high.abs())
    scaled = values / size.where(size > 0, 1.0)
    mean = scaled.mean(0)
    spread = (scaled - mean).square().mean(0).sqrt().where(low < high, 0.0)
    found = (to_numpy(one) for one in (low, high, mean * size, spread * size))
    return Statistics(*found)


def _sparse_statistics(sample: Rows) -> Statistics:
    low = sample.min(axis=0).toarray().ravel()
    high = sample.max(axis=0).toarray().ravel()
    size = float(max(np.abs(low).max(), np.abs(high).max())) or 1.0
    scaled = sample.astype(np.float64)
    scaled.data /= size  # SciPy would multiply by 1 / size, which is infinite for denormal sizes
    mean = np.asarray(scaled.mean(axis=0)).ravel()
    square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return Statistics(low.astype(np.float64), high.astype(np.float64), mean * size, spread * size)


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
    found = low < high
    # Most features show a third value among a few rows; only the others are looked at in whole.
    for rows in (sample[:100], sample):
        places = np.flatnonzero(found)
        for start in range(0, len(places), columns_at_once(sample)):
            some = places[start : start + columns_at_once(sample)]
            values = rows[:, some]
            found[some] = ((values == low[some]) | (values == high[some])).all(axis=0)
    return found


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
