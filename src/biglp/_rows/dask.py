"""Rows of a dask array or data frame, computed chunk by chunk where they are needed.

On a Dask worker a chunk that is in its memory is used as it is; one that is elsewhere is fetched,
and one that is not computed yet is computed by the cluster. Without a cluster it is computed here.
Blocks are smaller than chunks, so the last chunks are kept: neighbouring blocks are worked on one
after the other. Rows of an array that was not persisted are computed again in each sweep.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from dask.array import Array
from distributed import get_worker, worker_client

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError
from biglp._rows.source import Source, check_shape

CHUNKS_KEPT = 4


def open_dask(collection: Any) -> DaskSource:
    """Open a dask array, or a dask data frame of numbers."""
    if isinstance(collection, Array):
        return DaskSource(collection)
    if not hasattr(type(collection), "to_dask_array"):
        raise BadRowsError(
            f"X is a {type(collection).__name__} of Dask; give a dask array or a dask data frame."
        )
    dtypes = list(collection.dtypes)
    other = [
        str(name)
        for name, dtype in zip(collection.columns, dtypes, strict=True)
        if not (isinstance(dtype, np.dtype) and dtype.kind in "fiub")
    ]
    if other:
        raise BadRowsError(
            "X must hold real numbers; the dask data frame has other values in "
            f"{', '.join(other)}. Leave these columns out, or encode them as numbers first "
            "(categories as one-hot columns, missing values filled)."
        )
    # Lengths of partitions are only known once they are counted.
    array = collection.to_dask_array(lengths=True)
    return DaskSource(array.astype(np.result_type(*dtypes)))


class DaskSource(Source):
    """A two-dimensional dask array with known chunks."""

    name = "dask array"

    def __init__(self, array: Any) -> None:
        if any(np.isnan(size) for size in array.shape):
            array = array.compute_chunk_sizes()
        array = check_shape(array, "dask array")
        if array.numblocks[1] > 1:
            array = array.rechunk({1: -1})
        self.n_rows, self.n_features = array.shape
        self.dtype = np.dtype(array.dtype)
        self._bounds = np.concatenate([[0], np.cumsum(array.chunks[0])])
        self._chunks = list(array.to_delayed()[:, 0])
        self._last: OrderedDict[int, np.ndarray] = OrderedDict()

    def read(self, start: int, stop: int) -> Rows:
        first = int(np.searchsorted(self._bounds, start, side="right")) - 1
        parts = []
        for chunk in range(first, len(self._chunks)):
            begin, end = int(self._bounds[chunk]), int(self._bounds[chunk + 1])
            if begin >= stop:
                break
            if begin < end:
                parts.append(self._chunk(chunk)[max(start - begin, 0) : stop - begin])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, indices: np.ndarray) -> Rows:
        indices = np.asarray(indices)
        chunks = np.searchsorted(self._bounds, indices, side="right") - 1
        parts = [
            self._chunk(int(chunk))[indices[chunks == chunk] - self._bounds[chunk]]
            for chunk in np.unique(chunks)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.n_features), self.dtype)

    def _chunk(self, number: int) -> np.ndarray:
        """Return a chunk, one of the last or computed now.

        Two threads may compute the same one. A lock would be worse: a task on a worker gives its
        place away while it waits for a chunk, to one that might wait for the lock.
        """
        chunk = self._last.get(number)
        if chunk is None:
            delayed = self._chunks[number]
            try:
                get_worker()
            except ValueError:  # not a worker: the user's client, or threads
                chunk = delayed.compute()
            else:
                with worker_client() as client:
                    chunk = client.compute(delayed).result()
            chunk = self._last[number] = np.asarray(chunk)
            while len(self._last) > CHUNKS_KEPT:
                self._last.popitem(last=False)
        return chunk

    def __getstate__(self) -> dict[str, Any]:
        """Send no rows."""
        return {**self.__dict__, "_last": OrderedDict()}
