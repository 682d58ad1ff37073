"""Rows made ready for arithmetic: one floating type, scaled features, on the chosen device."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import Rows, to_device
from biglp._sources.base import Source
from biglp._sources.kept import KeptRows
from biglp._sources.scaling import Scaling


class PreparedSource(Source):
    """Another source's rows in one floating type, scaled, on one device.

    Parameters
    ----------
    inner : Source
    dtype : numpy.dtype
        Type of the arithmetic.
    scaling : Scaling, optional
        What is done to the features; nothing by default.
    device : str
        Where the arithmetic runs.
    """

    scaling: Scaling

    def __init__(
        self,
        inner: Source,
        dtype: np.dtype[Any],
        scaling: Scaling | None = None,
        device: str = "cpu",
    ) -> None:
        self.inner = inner
        self.scaling = scaling or Scaling()
        dense = self.scaling.makes_dense
        self.n_rows = inner.n_rows
        self.n_features = self.scaling.n_outputs(inner.n_features)
        self.dtype = dtype
        self.device = device
        self.name = inner.name
        self.is_sparse = inner.is_sparse and not dense and self.scaling.offset is None
        self.stamps = inner.stamps
        self.encoding = inner.encoding
        self.feature_names = None if dense else inner.feature_names
        self.part_bytes = inner.part_bytes
        self.decoding_bytes = inner.decoding_bytes
        self._kept: KeptRows | None = None
        if dense and device == "cpu":
            self._kept = KeptRows.if_small(self.n_rows, self.n_features, dtype)

    @property
    def n_input_features(self) -> int:
        """Number of features before the projection, of which sparse rows hold few."""
        return self.n_features if self.inner.is_sparse else self.inner.n_input_features

    def read(self, start: int, stop: int) -> Rows:
        """Return prepared rows."""
        kept = self._kept
        if kept is None:
            return self.prepared(self.inner.read(start, stop))
        rows = kept.find(slice(start, stop))
        if rows is None:
            kept.keep(start, self.prepared(self.inner.read(start, stop)))
            rows = kept.find(slice(start, stop))
        return rows

    def take(self, indices: np.ndarray) -> Rows:
        """Return prepared rows."""
        rows = None if self._kept is None else self._kept.find(indices)
        return self.prepared(self.inner.take(indices)) if rows is None else rows

    def fingerprint(self) -> dict[str, Any]:
        """As the inner source: preparing depends on the settings, not on the file."""
        return self.inner.fingerprint()

    def __getstate__(self) -> dict[str, Any]:
        """Leave kept rows behind: they can be made again."""
        return {**self.__dict__, "_kept": None}

    def prepared(self, rows: Rows) -> Rows:
        """Prepare rows that were read from the inner source, or are like those."""
        # Rows too large to be scaled are found out by what comes of them, and explained then.
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = self.scaling.apply(rows.astype(self.dtype, copy=False))
        return to_device(scaled, self.device)


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Float type for the arithmetic: float32 where it holds the input exactly, else float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)
