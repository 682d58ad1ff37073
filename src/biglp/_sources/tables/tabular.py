"""A table's rows as numbers, read from any row to any row.

Columns are copied into the rows of a (features, rows) buffer, which is then transposed: that is
faster than filling a (rows, features) buffer by columns, and the rows have the same layout, hence
the same sums to the last bit, as those of a ``.npy`` file. Embeddings lie in rows already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._rows.encoding import Encoding
from biglp._rows.prepared import PartCache
from biglp._rows.source import FileSource, table_bytes
from biglp._sources.tables.drift import compare_columns
from biglp._sources.tables.encode import encode, encode_sparse, ready_rows
from biglp._sources.tables.kinds.embedding import Embedding
from biglp._sources.tables.missing import MissingValues
from biglp._sources.tables.table import TableFile, page_bytes_of, take_rows


class TabularSource(FileSource):
    """Rows of one or more files that can be read part by part.

    Parameters
    ----------
    files : sequence of TableFile
        Files of one table, in order.
    encoding : Encoding
        How columns become features.
    name : str
        What messages call the table.
    """

    kind = "table"
    encoding: Encoding

    def __init__(self, files: Sequence[TableFile], encoding: Encoding, name: str) -> None:
        self.name = name
        self._files = tuple(files)
        self.encoding = encoding
        self.feature_names = encoding.feature_names
        self.words_from = encoding.words_from
        self.is_sparse = encoding.words_from is not None
        self.stamps = tuple(file.stamp for file in files if file.stamp is not None)
        self._parts = [
            (number, part)
            for number, file in enumerate(files)
            for part, rows in enumerate(file.part_rows)
            if rows
        ]
        rows = [files[number].part_rows[part] for number, part in self._parts]
        self._bounds = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        self.n_rows = int(self._bounds[-1])
        self.n_features = encoding.n_features
        self.dtype = np.dtype(encoding.dtype)
        self.part_bytes = max(file.part_bytes for file in files)
        if self.stamps:  # a data frame is in memory and is not decoded
            pages = page_bytes_of(files)
            self.decoding_bytes = table_bytes(self.n_rows, encoding.n_inputs, pages)
        self._held = PartCache()

    def compare_columns(self) -> dict[str, Any]:
        """Compare the first rows with the training rows."""
        return compare_columns(self._files, self.encoding)

    def read(self, start: int, stop: int) -> Rows:
        """Decode rows ``start`` to ``stop`` (exclusive)."""
        if self.is_sparse:
            return self._read_sparse(start, stop)
        spans = list(self._spans(start, stop))
        if len(spans) == 1:
            part, low, high = spans[0]
            batch = self._part(part).slice(low - int(self._bounds[part]), high - low)
            ready = ready_rows(self.encoding, batch)
            if ready is not None:
                return ready
        out = feature_buffer(self.encoding, stop - start)
        missing = MissingValues()
        for part, low, high in spans:
            first = int(self._bounds[part])
            batch = self._part(part).slice(low - first, high - low)
            encode(self.encoding, batch, out[:, low - start : high - start], low, missing)
            del batch  # let go of this part before the next one is decoded
        if missing.counts:
            raise missing.error(self.name, whole=False)
        return np.ascontiguousarray(out.T)

    def take(self, indices: np.ndarray) -> Rows:
        """Decode the rows at increasing ``indices``, each part once."""
        indices = np.asarray(indices, dtype=np.int64)
        if self.is_sparse:
            return self._take_sparse(indices)
        out = feature_buffer(self.encoding, len(indices))
        missing = MissingValues()
        cuts = np.searchsorted(indices, self._bounds)
        for part in np.flatnonzero(np.diff(cuts)):
            low, high = int(cuts[part]), int(cuts[part + 1])
            batch = take_rows(self._part(int(part)), indices[low:high] - self._bounds[part])
            encode(self.encoding, batch, out[:, low:high], indices[low:high], missing)
            del batch
        if missing.counts:
            raise missing.error(self.name, whole=False)
        return np.ascontiguousarray(out.T)

    def _read_sparse(self, start: int, stop: int) -> Rows:
        missing, parts = MissingValues(), []
        for part, low, high in self._spans(start, stop):
            first = int(self._bounds[part])
            batch = self._part(part).slice(low - first, high - low)
            parts.append(encode_sparse(self.encoding, batch, low, missing))
            del batch
        return self._stacked(parts, missing)

    def _take_sparse(self, indices: np.ndarray) -> Rows:
        missing, parts = MissingValues(), []
        cuts = np.searchsorted(indices, self._bounds)
        for part in np.flatnonzero(np.diff(cuts)):
            chosen = indices[int(cuts[part]) : int(cuts[part + 1])]
            batch = take_rows(self._part(int(part)), chosen - self._bounds[part])
            parts.append(encode_sparse(self.encoding, batch, chosen, missing))
            del batch
        return self._stacked(parts, missing)

    def _stacked(self, parts: list[Rows], missing: MissingValues) -> Rows:
        if missing.counts:
            raise missing.error(self.name, whole=False)
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        first = int(np.searchsorted(self._bounds, start, side="right")) - 1
        for part in range(first, len(self._parts)):
            low, high = int(self._bounds[part]), int(self._bounds[part + 1])
            if low >= stop:
                return
            yield part, max(low, start), min(high, stop)

    def _part(self, index: int) -> Any:
        number, part = self._parts[index]
        columns = self.encoding.names
        return self._held.get(index, lambda: self._files[number].read_part(part, columns))


def feature_buffer(encoding: Encoding, n_rows: int) -> np.ndarray:
    """Return an empty (features, rows) array in the layout that is quicker to fill and transpose.

    Where most features come from lists of numbers, each row is in one piece. Elsewhere columns are,
    and as those whose distance is a power of two would all fall on the same few cache lines, there
    is a small gap between them, which makes transposing the array six times as fast.
    """
    dtype, n_features = np.dtype(encoding.dtype), encoding.n_features
    if n_features > 2 * encoding.n_inputs and _from_lists(encoding) > n_features // 2:
        return np.empty((n_rows, n_features), dtype=dtype).T
    return np.empty((n_features, n_rows + 16), dtype=dtype)[:, :n_rows]


def _from_lists(encoding: Encoding) -> int:
    columns = encoding.columns or ()
    return sum(column.width for column in columns if isinstance(column, Embedding))
