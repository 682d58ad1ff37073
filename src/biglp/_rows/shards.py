"""Rows in several files without names, read as one source: shards."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp
from biglp._files.uri import split_inside
from biglp._rows.source import Source

OPEN_SHARDS = 64
"""Shards that are kept open; a system allows a process about a thousand files."""
ASKED_BYTES = 32 << 20
"""What is asked of the next shard when the end of one is read."""


class ShardedSource(Source):
    """Dense rows of several files, one after the other, in the type that holds those of all.

    Shards are opened when they are first read from, and the last few are kept open. What is sent
    to another process are their names and sizes, some fifty bytes a shard. ``open_shard`` is a
    class, or a function at the top of a module; a shard may hold no rows.
    """

    _elsewhere = False  # whether it was sent to another process

    def __init__(self, files: Sequence[str], open_shard: Callable[[str], Source]) -> None:
        self.name = f"{files[0]} and {len(files) - 1:,} more"
        self._names = tuple(files)
        self._open_shard = open_shard
        self._opened: OrderedDict[int, Source] = OrderedDict()
        self._lock = threading.Lock()
        rows: list[int] = []
        stamps: list[FileStamp] = []
        dtypes = []
        first = self._shard(0)
        for index in range(len(files)):
            shard = self._shard(index)
            if shard.n_features != first.n_features:
                raise BadRowsError(
                    f"{files[index]} has {shard.n_features:,} features a row and {files[0]} has "
                    f"{first.n_features:,}; all shards need the same number. Leave out the file "
                    "that does not belong to them, or write it again."
                )
            rows.append(shard.n_rows)
            stamps += shard.stamps
            dtypes.append(shard.dtype)
        self.stamps = tuple(stamps)
        self._bounds = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        self.n_rows, self.n_features = int(self._bounds[-1]), first.n_features
        self.dtype = np.result_type(*set(dtypes))
        self.part_bytes = first.part_bytes
        if self.n_rows == 0:
            raise BadRowsError(
                f"{self.name}: none of these {len(files):,} files holds any rows; at least 1 is "
                "required."
            )

    def read(self, start: int, stop: int) -> Rows:
        # Shards that hold some of these rows, and which of their own rows that is.
        spans = []
        index = int(np.searchsorted(self._bounds, start, side="right")) - 1
        while index < len(self._names) and self._bounds[index] < stop:
            first, end = int(self._bounds[index]), int(self._bounds[index + 1])
            if end > first:
                spans.append((index, max(start, first) - first, min(stop, end) - first))
            index += 1
        # What is read next: further shards, and the one after the last where it ends.
        for index, low, high in spans[1:]:
            self._shard(index).ask_for(low, high)
        if spans:
            index, _, end = spans[-1]
            following = index + 1
            if following < len(self._names) and end == self._rows_of(index):
                most = max(ASKED_BYTES // (self.n_features * self.dtype.itemsize), 1)
                self._shard(following).ask_for(0, min(self._rows_of(following), most))
        if len(spans) == 1:
            ((index, low, high),) = spans
            return self._shard(index).read(low, high).astype(self.dtype, copy=False)
        out = np.empty((stop - start, self.n_features), dtype=self.dtype)
        done = 0
        for index, low, high in spans:
            out[done : done + high - low] = self._shard(index).read(low, high)
            done += high - low
        return out

    def take(self, indices: np.ndarray) -> Rows:
        indices = np.asarray(indices, dtype=np.int64)
        out = np.empty((len(indices), self.n_features), dtype=self.dtype)
        cuts = np.searchsorted(indices, self._bounds)
        for index in np.flatnonzero(np.diff(cuts)).tolist():
            chosen = slice(cuts[index], cuts[index + 1])
            out[chosen] = self._shard(index).take(indices[chosen] - self._bounds[index])
        return out

    def _rows_of(self, index: int) -> int:
        return int(self._bounds[index + 1] - self._bounds[index])

    def _shard(self, index: int) -> Source:
        with self._lock:
            shard = self._opened.pop(index, None)
            if shard is None:
                shard = self._open_shard(self._names[index])
                # It must be the one that was looked at first.
                if self.stamps and shard.n_rows != self._rows_of(index):
                    raise BadRowsError(
                        f"{self._names[index]} has {shard.n_rows:,} rows and had "
                        f"{self._rows_of(index):,} when the work began. Every process must see the "
                        "same file, and no program may write to it."
                    )
                if self.stamps and not self._elsewhere:
                    self.stamps[index].check()
            self._opened[index] = shard
            while len(self._opened) > OPEN_SHARDS:  # closed when no thread reads from it
                self._opened.popitem(last=False)
        return shard

    def __getstate__(self) -> dict[str, Any]:
        """Leave open files behind; names and facts in few bytes."""
        state = {**self.__dict__}
        del state["_lock"], state["_opened"], state["stamps"]
        state["_names"] = "\0".join(map(os.path.abspath, self._names))
        state["_sizes"] = np.array([stamp.size for stamp in self.stamps])
        state["_times"] = np.array([stamp.mtime_ns for stamp in self.stamps])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        sizes, times = state.pop("_sizes").tolist(), state.pop("_times").tolist()
        self.__dict__.update(state)
        self._names = tuple(state["_names"].split("\0"))
        self.stamps = tuple(
            FileStamp(split_inside(name)[0], size, time, elsewhere=True)
            for name, size, time in zip(self._names, sizes, times, strict=True)
        )
        self._opened, self._lock = OrderedDict(), threading.Lock()
        self._elsewhere = True
