"""Rows made ready for arithmetic: one floating type, scaled features, on the chosen device."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from biglp._core.arrays import Rows, is_torch, to_device, to_numpy
from biglp._sources.base import Source
from biglp._sources.formats.tensors import torch_type
from biglp._sources.kept import KeptRows
from biglp._sources.resident import ResidentRows
from biglp._sources.scaling import Scaling
from biglp._sources.uploading import upload

HALVES = ("torch.float16", "torch.bfloat16")
_MAKING_ROOM = threading.Lock()


class PreparedSource(Source):
    """Another source's rows in one floating type, scaled, on one device.

    On a device rows are cast and scaled there, after they were copied as they are.

    Parameters
    ----------
    inner : Source
    dtype : numpy.dtype
        Type of the arithmetic.
    scaling : Scaling, optional
        What is done to the features; nothing by default.
    device : str
        Where the arithmetic runs.
    stay : bool
        Whether rows stay on the device once they have been brought there.
    """

    scaling: Scaling

    def __init__(
        self,
        inner: Source,
        dtype: np.dtype[Any],
        scaling: Scaling | None = None,
        device: str = "cpu",
        stay: bool = False,
    ) -> None:
        self.inner = inner
        self.scaling = scaling or Scaling()
        dense = self.scaling.makes_dense
        self.n_rows = inner.n_rows
        self.n_features = self.scaling.n_outputs(inner.n_features)
        self.dtype = dtype
        self.device = device
        self.stay = stay and not self.are_there(inner, dtype, self.scaling)
        self.name = inner.name
        self.is_sparse = inner.is_sparse and not dense and self.scaling.offset is None
        self.stamps = inner.stamps
        self.encoding = inner.encoding
        self.feature_names = None if dense else inner.feature_names
        self.part_bytes = inner.part_bytes
        self.decoding_bytes = inner.decoding_bytes
        self._kept: KeptRows | None = None
        self._resident: ResidentRows | None = None
        if dense and device == "cpu":
            self._kept = KeptRows.if_small(self.n_rows, self.n_features, dtype)

    @staticmethod
    def are_there(inner: Source, dtype: np.dtype[Any], scaling: Scaling) -> bool:
        """Whether the rows are on a device already, in a type that the sweeps can use."""
        usable = inner.dtype in (dtype, np.float16)
        return inner.device != "cpu" and usable and not scaling.changes_rows

    @property
    def n_input_features(self) -> int:
        """Number of features before the projection, of which sparse rows hold few."""
        return self.n_features if self.inner.is_sparse else self.inner.n_input_features

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """Type in which rows stay on a device: half precision stays what it is."""
        half = self.inner.dtype == np.float16 and not self.scaling.changes_rows
        return np.dtype(np.float16) if half else self.dtype

    def read(self, start: int, stop: int) -> Rows:
        """Return prepared rows."""
        if self.device != "cpu":
            return _to_type(self.stored(start, stop), self.dtype)
        kept = self._kept
        if kept is None:
            return self._prepare(self.inner.read(start, stop))
        rows = kept.find(slice(start, stop))
        if rows is None:
            kept.keep(start, self._prepare(self.inner.read(start, stop)))
            rows = kept.find(slice(start, stop))
        return rows

    def stored(self, start: int, stop: int) -> Rows:
        """Return prepared rows in the type in which they stay on a device."""
        if self.device == "cpu":
            return self.read(start, stop)
        if not self.stay:
            return self._on_device(start, stop)
        with _MAKING_ROOM:
            if self._resident is None:
                room = (self.n_rows, self.n_features), torch_type(self.stored_dtype)
                self._resident = ResidentRows(_empty(*room, self.device))
        return self._resident.read(start, stop, lambda room: self._fill(room, start))

    def take(self, indices: np.ndarray) -> Rows:
        """Return prepared rows."""
        if self._resident is not None and self._resident.all_there:
            return _to_type(self._resident.take(indices), self.dtype)
        rows = None if self._kept is None else self._kept.find(indices)
        return self._prepare(self.inner.take(indices)) if rows is None else rows

    def release(self) -> None:
        """Give back what rows take of a device; they are brought again when they are wanted."""
        self._resident = None

    def fingerprint(self) -> dict[str, Any]:
        """As the inner source: preparing depends on the settings, not on the file."""
        return self.inner.fingerprint()

    def __getstate__(self) -> dict[str, Any]:
        """Leave kept rows behind: they can be made again."""
        return {**self.__dict__, "_kept": None, "_resident": None}

    def _prepare(self, rows: Rows) -> Rows:
        if self.device == "cpu":
            return self.scaling.apply(to_numpy(rows).astype(self.dtype, copy=False))
        if not is_torch(rows):
            if self.inner.is_sparse or torch_type(rows.dtype) is None:
                rows = rows.astype(self.dtype, copy=False)
            if self.inner.is_sparse:
                return to_device(self.scaling.apply(rows), self.device)
            rows = to_device(rows, self.device)
        return self.scaling.apply(_to_type(rows, self.dtype))

    def _on_device(self, start: int, stop: int) -> Rows:
        """Rows on the device, as they are needed."""
        inner = self.inner
        kind = None if inner.is_sparse else torch_type(inner.dtype)
        if inner.device != "cpu" or kind is None:
            rows = inner.read(start, stop)
        else:
            rows = _empty((stop - start, inner.n_features), kind, self.device)
            upload(lambda first, last: inner.read(start + first, start + last), rows)
        is_half = is_torch(rows) and str(rows.dtype) in HALVES
        return rows if is_half and not self.scaling.changes_rows else self._prepare(rows)

    def _fill(self, room: Any, start: int) -> None:
        """Bring rows to their place."""
        inner = self.inner
        as_they_are = not self.scaling.changes_rows and inner.dtype == self.stored_dtype
        if inner.device == "cpu" and as_they_are and not inner.is_sparse:
            upload(lambda first, last: inner.read(start + first, start + last), room)
        else:
            room.copy_(self._on_device(start, start + room.shape[0]))


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Float type for the arithmetic: float32 where it holds the input exactly, else float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


def _to_type(rows: Any, dtype: np.dtype[Any]) -> Any:
    return rows.to(torch_type(dtype))


def _empty(shape: tuple[int, int], kind: Any, device: str) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(shape, dtype=kind, device=device.removeprefix("torch:"))
