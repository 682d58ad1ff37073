"""Missing values of plain arrays replaced by the mean of their feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError, ParameterError
from biglp._sources.base import Source
from biglp._sources.options import ReadOptions
from biglp._sources.tables.encoding import Encoding

_PASS_BYTES = 8 << 20


class FilledSource(Source):
    """Another source's rows, with NaN replaced by means.

    Parameters
    ----------
    inner : Source
    means : ndarray of shape (m,)
    """

    encoding: Encoding

    def __init__(self, inner: Source, means: np.ndarray) -> None:
        self.inner = inner
        self.n_rows, self.n_features, self.dtype = inner.n_rows, inner.n_features, inner.dtype
        self.name, self.stamps = inner.name, inner.stamps
        self.feature_names = inner.feature_names
        self.part_bytes, self.decoding_bytes = inner.part_bytes, inner.decoding_bytes
        self._means = means.astype(inner.dtype)
        self.encoding = Encoding(
            None, inner.n_features, self.dtype.str, means=tuple(means.tolist())
        )

    def read(self, start: int, stop: int) -> Rows:
        """Return rows without missing values."""
        return self._fill(self.inner.read(start, stop))

    def take(self, indices: np.ndarray) -> Rows:
        """Return rows without missing values."""
        return self._fill(self.inner.take(indices))

    def fingerprint(self) -> dict[str, Any]:
        """As the inner source's, with the means."""
        return {**self.inner.fingerprint(), "encoding": self.encoding.to_json()}

    def _fill(self, rows: Rows) -> Rows:
        missing = np.isnan(rows)
        return np.where(missing, self._means, rows) if missing.any() else rows


def fill_missing(source: Source, options: ReadOptions) -> Source:
    """Fill missing values as the options or an earlier encoding say; else return the source."""
    known = options.encoding
    if known is not None:
        if known.n_features != source.n_features or not known.takes_arrays:
            raise BadRowsError(
                f"{source.name} has {source.n_features} features without names, but the model was "
                f"fitted on {known.n_inputs} columns ({known.n_features} features); give a table "
                "with the same columns."
            )
        # What sparse rows leave out is 0, not missing.
        plain = source.dtype.kind == "f" and not source.is_sparse and source.device == "cpu"
        if known.fillings is None or not plain:
            return source
        return FilledSource(source, np.array(known.fillings, dtype=np.float64))
    if options.missing != "mean" or source.dtype.kind != "f":
        return source
    if source.device != "cpu":
        raise ParameterError(
            f"missing='mean' cannot be used with {source.name} on {source.device}: missing values "
            "are filled in the computer's memory; give X.cpu(), or fill them on the GPU first."
        )
    if source.is_sparse:
        raise ParameterError(
            f"missing='mean' cannot be used with {source.name}: what a sparse matrix leaves out "
            "is 0, not missing."
        )
    return FilledSource(source, _means(source))


def _means(source: Source) -> np.ndarray:
    sums, counts = np.zeros(source.n_features), np.zeros(source.n_features)
    each = max(_PASS_BYTES // (source.n_features * source.dtype.itemsize), 1)
    for start in range(0, source.n_rows, each):
        rows = source.read(start, min(start + each, source.n_rows))
        there = ~np.isnan(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite rows are refused later
            sums += np.sum(rows, axis=0, where=there, dtype=np.float64)
        counts += there.sum(axis=0)
    empty = np.flatnonzero(counts == 0)
    if empty.size:
        raise BadRowsError(
            f"{source.name}: features {', '.join(map(str, empty[:8]))} (counted from 0) have no "
            "value at all, so there is no mean to fill them with; leave them out."
        )
    return np.asarray(sums / counts)
