"""Rows made ready for arithmetic: one floating type, scaled features, on the chosen device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._arrays import Rows, to_device
from biglp._errors import ParameterError
from biglp._sources.base import Source

SCALINGS = ("auto", "none", "standard", "minmax")
CENTRING_RATIO = 3.0
"""A feature whose mean is more than this many spreads from zero would lose its digits in
‖x‖² − 2x·l + ‖l‖² and is centred even when no scaling is asked for: float32 keeps 7 of them, and
the answer wants 5."""
SMALLEST_DIFFERENCE = 1e4
"""Rows whose difference is this many times smaller than themselves can still be told apart."""


@dataclass(frozen=True)
class Scaling:
    """Features become ``(x − offset) · factor``; ``None`` leaves a step out."""

    kind: str = "none"
    offset: np.ndarray | None = None
    factor: np.ndarray | None = None

    def apply(self, rows: Rows) -> Rows:
        """Scale a block of rows (dense or CSR); the identity returns the rows untouched."""
        if self.offset is not None:
            rows = rows - self.offset.astype(rows.dtype)
        if self.factor is not None:
            factor = self.factor.astype(rows.dtype)
            rows = rows.multiply(factor).tocsr() if sparse.issparse(rows) else rows * factor
        return rows

    @classmethod
    def from_sample(cls, sample: Rows, kind: str) -> Scaling:
        """Choose offset and factor from a sample of rows.

        ``"auto"`` leaves features alone when they already share one scale (pixels, indicators,
        word counts) and standardises them otherwise. Sparse rows are never centred, because that
        would fill them in.
        """
        if kind not in SCALINGS:
            raise ParameterError(f"scaling={kind!r} is not known; use one of {', '.join(SCALINGS)}.")
        dense = not sparse.issparse(sample)
        low, high, mean, spread = _feature_statistics(sample)
        if kind == "auto":
            kind = "none" if _share_one_scale(low, high) else "standard"
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
        if kind == "minmax":
            width = high - low
            return cls(kind, low if dense else None, _inverse(width))
        return cls(kind, mean if dense else None, _inverse(spread))


class PreparedSource(Source):
    """Another source's rows in one floating type, scaled, on one device."""

    def __init__(
        self,
        inner: Source,
        dtype: np.dtype[Any],
        scaling: Scaling | None = None,
        device: str = "cpu",
    ) -> None:
        self.inner = inner
        self.n_rows, self.n_features = inner.n_rows, inner.n_features
        self.dtype = dtype
        self.scaling = scaling or Scaling()
        self.device = device

    def read(self, start: int, stop: int) -> Rows:
        """Return prepared rows."""
        return self._prepare(self.inner.read(start, stop))

    def take(self, indices: np.ndarray) -> Rows:
        """Return prepared rows."""
        return self._prepare(self.inner.take(indices))

    @property
    def is_sparse(self) -> bool:
        """As the inner source."""
        return self.inner.is_sparse

    @property
    def name(self) -> str:
        """As the inner source."""
        return self.inner.name

    def _prepare(self, rows: Rows) -> Rows:
        return to_device(self.scaling.apply(rows.astype(self.dtype, copy=False)), self.device)


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Float type for the arithmetic: float32 where it holds the input exactly, else float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


def _feature_statistics(sample: Rows) -> tuple[np.ndarray, ...]:
    """Minimum, maximum, mean and standard deviation of each feature of a sample."""
    if sparse.issparse(sample):
        low = sample.min(axis=0).toarray().ravel()
        high = sample.max(axis=0).toarray().ravel()
        size = float(max(np.abs(low).max(), np.abs(high).max())) or 1.0
        scaled = sample.astype(np.float64) / size
        mean = np.asarray(scaled.mean(axis=0)).ravel()
        square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return low.astype(np.float64), high.astype(np.float64), mean * size, spread * size
    values = np.asarray(sample, dtype=np.float64)
    low, high = values.min(axis=0), values.max(axis=0)
    size = float(max(np.abs(low).max(), np.abs(high).max())) or 1.0
    values = values / size  # so that squares of huge values do not overflow
    return low, high, values.mean(axis=0) * size, values.std(axis=0) * size


def _share_one_scale(low: np.ndarray, high: np.ndarray) -> bool:
    """Features have one scale when most of those that vary span nearly the same range."""
    width = (high - low)[high > low]
    if width.size == 0:
        return True
    return bool(np.median(width) >= 0.5 * width.max() and np.quantile(width, 0.1) > 0.1 * width.max())


def _inverse(width: np.ndarray) -> np.ndarray:
    """One over each width; a constant feature has factor 0, so that it says nothing."""
    safe = np.where(width > 0, width, 1.0)
    return np.where(width > 0, 1.0 / safe, 0.0)
