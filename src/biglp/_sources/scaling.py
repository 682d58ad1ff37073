"""Scales of features, chosen from a sample of rows.

============== ====================================================================================
``"none"``     as they are (only centred where arithmetic would lose digits)
``"standard"`` mean 0 and standard deviation 1
``"minmax"``   from 0 to 1
``"log"``      a logarithm of the distance from the median, then standard deviation 1: for features
               with a few huge values
``"unit"``     rows of length 1: for embeddings, whose angles mean something and lengths little
``"text"``     rows of words: see :mod:`.text`
``"table"``    each feature by its kind: see :mod:`.kinds`
``"auto"``     "text" for sparse rows of words, "unit" for embeddings, "none" where features share
               one scale, "table" elsewhere
============== ====================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, is_torch, largest_size, like, namespace
from biglp._core.errors import ParameterError
from biglp._sources.directions import (
    PROJECT_ABOVE,
    PROJECT_SHARE,
    PROJECT_TO,
    principal_directions,
)
from biglp._sources.kinds import (
    COUNTED,
    is_embedding,
    is_table,
    lengths_differ,
    log_scales,
    table_columns,
)
from biglp._sources.statistics import Statistics, feature_statistics, inverse, signed_log
from biglp._sources.text import TEXT_ROWS, is_text, text_directions, word_weights

SCALINGS = ("auto", "none", "standard", "minmax", "log", "unit", "text", "table")
SCALING_ARRAYS = ("used", "offset", "factor", "logged", "final", "projection", "counts")
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
    line, for large ones a logarithm, so that a few huge values do not decide all distances. Where
    there is ``logged``, only these features do. With ``projection`` (m × d) rows are multiplied by
    it. With ``unit`` they have length 1, before the projection and after it.

    Attributes
    ----------
    kind : str
        Its name in the report.
    used : ndarray of shape (m,), optional
        Features that are used at all; the other arrays are about these.
    offset, factor, final : ndarrays of shape (m,), optional
    logged : ndarray of shape (m,), optional
        True where the logarithm is taken; everywhere by default.
    projection : ndarray of shape (m, d), optional
    unit : bool
    counts : ndarray of shape (5,), optional
        How many features of each kind there are (:data:`.kinds.COUNTED`).
    """

    kind: str = "none"
    offset: np.ndarray | None = None
    factor: np.ndarray | None = None
    final: np.ndarray | None = None
    projection: np.ndarray | None = None
    logged: np.ndarray | None = None
    used: np.ndarray | None = None
    unit: bool = False
    counts: np.ndarray | None = None

    def apply(self, rows: Rows) -> Rows:
        """Scale a block of rows (dense or CSR); the identity returns the rows untouched."""
        if self.used is not None:
            rows = self._of_used(rows)
        if self.offset is not None:
            if sparse.issparse(rows):  # learnt from dense rows: zeros become something else
                rows = rows.toarray()
            rows = rows - like(rows, self.offset)
        if self.factor is not None:
            rows = _times(rows, self.factor)
        if self.final is not None:
            rows = self._on_log_scale(rows, self.final)
        if self.unit:
            rows = unit_length(rows)
        if self.projection is not None:
            rows = rows @ like(rows, self.projection)
            rows = rows if is_torch(rows) else np.asarray(rows)
            rows = unit_length(rows) if self.unit else rows
        return rows

    @cached_property
    def _places(self) -> np.ndarray:
        """Place of each feature up to the last used one among those used; −1: it is not."""
        assert self.used is not None
        places = np.full(int(self.used[-1]) + 2, -1, dtype=np.int32)
        places[self.used] = np.arange(len(self.used))
        return places

    def _of_used(self, rows: Rows) -> Rows:
        assert self.used is not None
        if not sparse.issparse(rows):
            return rows[:, self.used]
        # SciPy's own choice of columns looks at every column, of which there may be a million.
        places = self._places[np.minimum(rows.indices, len(self._places) - 1)]
        known = places >= 0
        ends = np.concatenate([[0], np.cumsum(known)])[rows.indptr]
        shape = rows.shape[0], len(self.used)
        return type(rows)((rows.data[known], places[known], ends), shape=shape)

    def _on_log_scale(self, rows: Rows, final: np.ndarray) -> Rows:
        if self.logged is None:
            return _times(signed_log(rows), final)
        if sparse.issparse(rows):
            chosen = self.logged[rows.indices]
            rows = rows.copy()
            rows.data[chosen] = signed_log(rows.data[chosen])
            return _times(rows, final)
        # A table always has factors, so that these rows are a copy already.
        places = np.flatnonzero(self.logged)
        rows[:, places] = signed_log(rows[:, places]) * like(rows, final[places])
        return rows

    def projected(self, sample: Rows, seed: int, count: int | None = None) -> Scaling:
        """Add a projection on the principal directions of the scaled rows, where few say most.

        Images and the like lie near a subspace of a few dozen dimensions. Distances within it are
        the better neighbours, and cheaper by as much as it is smaller.

        Parameters
        ----------
        sample : array or CSR matrix
            Rows as they are.
        seed : int
        count : int, optional
            Number of directions; by default there is a projection only of wide rows, and only where
            a few directions hold most of their variance.
        """
        n_rows, n_features = sample.shape
        if self.kind == "text":
            few = self.apply(sample[:: max(n_rows // TEXT_ROWS, 1)])
            return replace(self, projection=text_directions(few, seed, count))
        if count is not None:
            if count >= n_features:
                return self
            directions, _ = principal_directions(self.apply(sample), seed, count)
            return replace(self, projection=directions)
        if n_features < PROJECT_ABOVE or n_rows <= 2 * PROJECT_TO:
            return self
        directions, share = principal_directions(self.apply(sample), seed, PROJECT_TO)
        if share < PROJECT_SHARE:
            return self
        return replace(self, projection=directions)

    def n_outputs(self, n_features: int) -> int:
        """Number of features of scaled rows."""
        return n_features if self.projection is None else self.projection.shape[1]

    @property
    def changes_rows(self) -> bool:
        """Whether anything at all is done to rows."""
        steps = (self.used, self.offset, self.factor, self.final, self.projection)
        return self.unit or any(step is not None for step in steps)

    @property
    def makes_dense(self) -> bool:
        """Whether scaled rows are dense, also where the rows are sparse."""
        return self.projection is not None

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays it is made of, for a file."""
        arrays = {name: getattr(self, name) for name in SCALING_ARRAYS}
        found = {name: array for name, array in arrays.items() if array is not None}
        return {**found, "unit": np.array(True)} if self.unit else found

    @classmethod
    def from_arrays(cls, kind: str, arrays: dict[str, np.ndarray]) -> Scaling:
        """Rebuild from :meth:`arrays`, among which there may be others."""
        known = {name: arrays[name] for name in SCALING_ARRAYS if name in arrays}
        return cls(kind, unit="unit" in arrays, **known)

    def describe(self) -> dict[str, Any]:
        """What was recognised and is done, for the report."""
        report: dict[str, Any] = {"scaling": self.kind}
        if self.counts is not None:
            report["columns"] = dict(zip(COUNTED, self.counts.tolist(), strict=True))
        if self.projection is not None:
            report["directions"] = self.projection.shape[1]
        return report

    @classmethod
    def from_sample(cls, sample: Rows, kind: str, device: str = "cpu") -> Scaling:
        """Choose the scale of each feature from a sample of rows.

        ``"auto"`` knows rows of words and embeddings, leaves features alone when they already share
        one scale (pixels, indicators), and takes each feature by its kind otherwise. Sparse rows
        are never centred, because that would fill them in.
        """
        if kind == "text" or (kind == "auto" and is_text(sample)):
            words, weights, counts = word_weights(sample)
            if not counts:
                size = largest_size(sample) * weights.max(initial=1.0)
                weights = weights * _into_range(size, len(weights), sample.dtype)
            scales = {"final": weights} if counts else {"factor": weights}
            return cls("text", used=words, unit=True, **scales)
        dense = not sparse.issparse(sample)
        statistics = feature_statistics(sample, device)
        if kind == "auto":
            kind = _recognise(sample, statistics)
        if kind in ("none", "unit"):
            offset, factor = _kept_in_range(statistics, sample.dtype, dense=dense)
            return cls(kind, None if kind == "unit" else offset, factor, unit=kind == "unit")
        if kind == "table":
            columns = table_columns(sample, statistics)
            return cls(kind, **vars(columns))
        low, high, mean, spread = statistics
        if kind == "log":
            middle, factor, final = log_scales(sample, spread)
            return cls(kind, middle if dense else None, factor, final)
        if kind == "minmax":
            return cls(kind, low if dense else None, inverse(high - low))
        if kind == "standard":
            return cls(kind, mean if dense else None, inverse(spread))
        raise ParameterError(f"scaling={kind!r} is not known; use one of {', '.join(SCALINGS)}.")


def _recognise(sample: Rows, statistics: Statistics) -> str:
    """The kind of scaling that suits rows that are no text."""
    if is_embedding(sample, statistics):
        return "unit" if lengths_differ(sample) else "none"
    return "table" if is_table(sample, statistics) else "none"


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


def _times(rows: Rows, factor: np.ndarray) -> Rows:
    """Each feature times its factor, which denormal numbers would make larger than any number."""
    largest = namespace(rows).finfo(rows.dtype).max if is_torch(rows) else np.finfo(rows.dtype).max
    factor = like(rows, np.minimum(factor, float(largest)))
    if not sparse.issparse(rows):
        return rows * factor
    scaled = rows.copy()
    scaled.data *= factor[rows.indices]
    return scaled


def _kept_in_range(
    statistics: Statistics, dtype: np.dtype[Any], *, dense: bool
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Offset and factor of features that are left alone, where arithmetic needs them."""
    low, high, mean, spread = statistics
    far = np.abs(mean) > CENTRING_RATIO * spread
    # Centring is a translation: distances do not change, only their rounding does.
    offset = np.where(far, mean, 0.0) if dense and far.any() else None
    factor = _into_range(float(max(np.abs(low).max(), np.abs(high).max())), len(low), dtype)
    return offset, None if factor == 1.0 else np.full(len(low), factor)


def _into_range(size: float, n_features: int, dtype: np.dtype[Any]) -> float:
    """What numbers up to a size are to be multiplied by: 1 but for very large and small ones.

    Their squared distances would overflow, or vanish; one common factor keeps their ratios.
    """
    limits = np.finfo(dtype)
    largest = np.sqrt(limits.max) / (4.0 * n_features)
    smallest = SMALLEST_DIFFERENCE * np.sqrt(limits.tiny)
    in_range = size == 0 or smallest <= size <= largest
    return 1.0 if in_range else 1.0 / min(max(size, float(limits.tiny)), float(limits.max))
