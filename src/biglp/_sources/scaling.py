"""Scales of features, chosen from a sample of rows.

============== ====================================================================================
``"none"``     as they are (only centred where arithmetic would lose digits)
``"standard"`` mean 0 and standard deviation 1
``"minmax"``   from 0 to 1
``"log"``      a logarithm of the distance from the median, then standard deviation 1: for features
               with a few huge values
``"auto"``     "none", "standard" or "log", by how the features differ
============== ====================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.errors import ParameterError

STATISTICS_BYTES = 4 << 20
SCALINGS = ("auto", "none", "standard", "minmax", "log")
SCALING_ARRAYS = ("offset", "factor", "final", "projection")
PROJECT_ABOVE = 200
PROJECT_TO = 40
PROJECT_SHARE = 0.6
"""Rows of so many features or more are projected on so many principal directions, where these hold
that share of the variance."""
COVARIANCE_FEATURES = 2000
"""Features up to which principal directions come from the covariance matrix."""
COVARIANCE_ROWS = 1000
"""Rows behind the covariance matrix, about."""
LONG_TAIL = 10.0
"""A feature has a long tail when it reaches this many times its usual distance from its median."""
CENTRING_RATIO = 3.0
"""A feature whose mean is more than this many spreads from zero would lose its digits in
‖x‖² − 2x·l + ‖l‖² and is centred even when no scaling is asked for: float32 keeps 7 of them, and
the answer wants 5."""
SMALLEST_DIFFERENCE = 1e4
"""Rows whose difference is this many times smaller than themselves can still be told apart."""


@dataclass(frozen=True)
class Scaling:
    """Features become ``(x − offset) · factor``; ``None`` leaves a step out.

    With ``final`` they become ``sign(u) · log(1 + |u|) · final`` of that u: for small values a
    line, for large ones a logarithm, so that a few huge values do not decide all distances. With
    ``projection`` (m × d) they are multiplied by it at the end.
    """

    kind: str = "none"
    offset: np.ndarray | None = None
    factor: np.ndarray | None = None
    final: np.ndarray | None = None
    projection: np.ndarray | None = None

    def apply(self, rows: Rows) -> Rows:
        """Scale a block of rows (dense or CSR); the identity returns the rows untouched."""
        if self.offset is not None:
            rows = rows - self.offset.astype(rows.dtype)
        if self.factor is not None:
            factor = self.factor.astype(rows.dtype)
            rows = rows.multiply(factor).tocsr() if sparse.issparse(rows) else rows * factor
        if self.final is not None:
            rows = _signed_log(rows)
            final = self.final.astype(rows.dtype)
            rows = rows.multiply(final).tocsr() if sparse.issparse(rows) else rows * final
        if self.projection is not None:
            rows = np.asarray(rows @ self.projection.astype(rows.dtype))
        return rows

    def projected(self, sample: Rows, seed: int) -> Scaling:
        """Add a projection on the principal directions of scaled rows, where few say most.

        Images and the like lie near a subspace of a few dozen dimensions. Distances within it are
        the better neighbours, and cheaper by as much as it is smaller.
        """
        n_rows, n_features = sample.shape
        if n_features < PROJECT_ABOVE or n_rows <= 2 * PROJECT_TO:
            return self
        directions, share = _principal_directions(sample, seed)
        if share < PROJECT_SHARE:
            return self
        return replace(self, projection=directions)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays it is made of, for a file."""
        arrays = (self.offset, self.factor, self.final, self.projection)
        named = zip(SCALING_ARRAYS, arrays, strict=True)
        return {name: array for name, array in named if array is not None}

    @classmethod
    def from_arrays(cls, kind: str, arrays: dict[str, np.ndarray]) -> Scaling:
        """Rebuild from :meth:`arrays`, among which there may be others."""
        return cls(kind, **{name: arrays[name] for name in SCALING_ARRAYS if name in arrays})

    @classmethod
    def from_sample(cls, sample: Rows, kind: str) -> Scaling:
        """Choose offset and factor from a sample of rows.

        ``"auto"`` leaves features alone when they already share one scale (pixels, indicators,
        word counts) and standardises them otherwise, on a logarithmic scale ("log") where some
        feature has values far outside its usual range. Sparse rows are never centred, because that
        would fill them in.
        """
        dense = not sparse.issparse(sample)
        low, high, mean, spread = _feature_statistics(sample)
        if kind == "auto":
            kind = "none" if _share_one_scale(low, high) else "standard"
            if kind == "standard" and _has_long_tails(sample, low, high, spread):
                kind = "log"
        if kind == "none":
            far = np.abs(mean) > CENTRING_RATIO * spread
            # Centring is a translation: distances do not change, only their rounding does.
            offset = np.where(far, mean, 0.0) if dense and far.any() else None
            # Outside these sizes squared distances would overflow, or vanish; one common factor
            # keeps their ratios.
            size = float(max(np.abs(low).max(), np.abs(high).max()))
            limits = np.finfo(sample.dtype)
            largest = np.sqrt(limits.max) / (4.0 * len(low))
            smallest = SMALLEST_DIFFERENCE * np.sqrt(limits.tiny)
            in_range = size == 0 or smallest <= size <= largest
            factor = None if in_range else np.full(len(low), 1.0 / max(size, float(limits.tiny)))
            return cls(kind, offset, factor)
        if kind == "log":
            return _log_scaling(sample, spread)
        if kind == "minmax":
            width = high - low
            return cls(kind, low if dense else None, _inverse(width))
        if kind == "standard":
            return cls(kind, mean if dense else None, _inverse(spread))
        raise ParameterError(f"scaling={kind!r} is not known; use one of {', '.join(SCALINGS)}.")


def _principal_directions(sample: Rows, seed: int) -> tuple[np.ndarray, float]:
    """The first principal directions of rows (m × PROJECT_TO), and their share of the variance."""
    if not sparse.issparse(sample) and sample.shape[1] <= COVARIANCE_FEATURES:
        part = sample[:: max(len(sample) // COVARIANCE_ROWS, 1)]
        centred = part - part.mean(axis=0)
        covariance = np.asarray(centred.T @ centred, dtype=np.float64)
        values, vectors = _largest_eigenpairs(covariance, seed)
        share = values.sum() / max(float(np.trace(covariance)), np.finfo(np.float64).tiny)
        return np.ascontiguousarray(vectors[:, ::-1]), float(share)
    from sklearn.decomposition import TruncatedSVD  # slow to load as well

    svd = TruncatedSVD(PROJECT_TO, random_state=seed % 2**32)
    svd.fit(sample if sparse.issparse(sample) else sample - sample.mean(axis=0))
    share = float(svd.explained_variance_ratio_.sum())
    return np.ascontiguousarray(svd.components_.T, dtype=np.float64), share


def _largest_eigenpairs(matrix: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The PROJECT_TO largest eigenvalues, increasing, and their eigenvectors."""
    from scipy.linalg import eigh  # slow to load, and seldom needed
    from scipy.sparse.linalg import ArpackError, eigsh

    start = np.random.default_rng(seed).normal(size=len(matrix))
    try:
        found: tuple[np.ndarray, np.ndarray] = eigsh(matrix, PROJECT_TO, v0=start, tol=1e-4)
    except ArpackError:  # fewer directions than are asked for have any variance
        m = len(matrix)
        return eigh(matrix, subset_by_index=(m - PROJECT_TO, m - 1))
    return found


def _feature_statistics(sample: Rows) -> tuple[np.ndarray, ...]:
    """Minimum, maximum, mean and standard deviation of each feature of a sample."""
    if sparse.issparse(sample):
        return _sparse_statistics(sample)
    low, high, mean, spread = np.empty((4, sample.shape[1]))
    # A few columns at a time: float64 copies of a whole sample take several times its memory.
    step = max(STATISTICS_BYTES // (8 * len(sample)), 1)
    for start in range(0, sample.shape[1], step):
        columns = slice(start, start + step)
        values = sample[:, columns]
        low[columns], high[columns] = values.min(axis=0), values.max(axis=0)
        # So that squares of huge values do not overflow.
        size = float(max(np.abs(low[columns]).max(), np.abs(high[columns]).max())) or 1.0
        scaled = np.divide(values, size, dtype=np.float64)
        means = scaled.mean(axis=0)
        scaled -= means
        mean[columns] = means * size
        spread[columns] = np.sqrt(np.einsum("ij,ij->j", scaled, scaled) / len(scaled)) * size
    return low, high, mean, spread


def _sparse_statistics(sample: Rows) -> tuple[np.ndarray, ...]:
    low = sample.min(axis=0).toarray().ravel()
    high = sample.max(axis=0).toarray().ravel()
    size = float(max(np.abs(low).max(), np.abs(high).max())) or 1.0
    scaled = sample.astype(np.float64) / size
    mean = np.asarray(scaled.mean(axis=0)).ravel()
    square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return low.astype(np.float64), high.astype(np.float64), mean * size, spread * size


def _share_one_scale(low: np.ndarray, high: np.ndarray) -> bool:
    """Features have one scale when most of those that vary span nearly the same range."""
    width = (high - low)[high > low]
    if width.size == 0:
        return True
    return bool(
        np.median(width) >= 0.5 * width.max() and np.quantile(width, 0.1) > 0.1 * width.max()
    )


def _has_long_tails(sample: Rows, low: np.ndarray, high: np.ndarray, spread: np.ndarray) -> bool:
    """Whether some feature reaches many times further than its usual distance from its middle."""
    middle, usual = _usual_range(sample, spread)
    reach = np.maximum(high - middle, middle - low)
    return bool((reach[spread > 0] > LONG_TAIL * usual[spread > 0]).any())


def _usual_range(sample: Rows, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median of each feature, and the distance from it within which three quarters of rows lie.

    A feature that is nearly always the same has a distance of zero; a tenth of its standard
    deviation takes its place.
    """
    if sparse.issparse(sample):
        middle = np.zeros(sample.shape[1])
        usual = np.zeros(sample.shape[1])
        columns = sample.tocsc()
        for j in np.flatnonzero(np.diff(columns.indptr) > sample.shape[0] // 4):
            usual[j] = np.quantile(np.abs(columns[:, [j]].toarray()), 0.75)
    else:
        values = np.asarray(sample, dtype=np.float64)
        middle = np.median(values, axis=0)
        usual = np.quantile(np.abs(values - middle), 0.75, axis=0)
    return middle, np.maximum(usual, 0.1 * spread)


def _log_scaling(sample: Rows, spread: np.ndarray) -> Scaling:
    middle, usual = _usual_range(sample, spread)
    offset = None if sparse.issparse(sample) else middle
    halfway = Scaling("log", offset, _inverse(usual), np.ones(len(usual)))
    _, _, _, squashed = _feature_statistics(halfway.apply(sample))
    return Scaling("log", offset, _inverse(usual), _inverse(squashed))


def _signed_log(rows: Rows) -> Rows:
    """sign(u)·log(1 + |u|), entry by entry; zeros stay zeros."""
    if sparse.issparse(rows):
        squashed = rows.copy()
        squashed.data = _signed_log(rows.data)
        return squashed
    # log(1 + u) rather than log1p: several times faster, and exact enough beside a scale of 1.
    squashed = np.abs(rows)
    squashed += 1
    np.log(squashed, out=squashed)
    return np.copysign(squashed, rows, out=squashed)


def _inverse(width: np.ndarray) -> np.ndarray:
    """One over each width; a constant feature has factor 0, so that it says nothing."""
    safe = np.where(width > 0, width, 1.0)
    return np.where(width > 0, 1.0 / safe, 0.0)
