"""What every source of rows offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from biglp._core.arrays import Rows


class Source(ABC):
    """A table of numeric rows that can be read from any row to any row.

    Attributes
    ----------
    n_rows, n_features : int
        Shape of the table.
    dtype : numpy.dtype
        Type of the stored numbers.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    encoding: Any = None
    stamps: tuple[Any, ...] = ()
    part_bytes: int = 0
    decoding_bytes: int = 0
    from_files: bool = False
    device: str = "cpu"

    @abstractmethod
    def read(self, start: int, stop: int) -> Rows:
        """Return rows ``start`` to ``stop`` (exclusive) as stored, dense or CSR."""

    def take(self, indices: np.ndarray) -> Rows:
        """Return the rows at increasing ``indices``; most sources can do better than this."""
        return np.concatenate([self.read(int(i), int(i) + 1) for i in indices])

    @property
    def is_sparse(self) -> bool:
        """Whether :meth:`read` returns CSR matrices."""
        return False

    @property
    def name(self) -> str:
        """What messages call this source."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name}: {self.n_rows:,} rows × {self.n_features:,} features, {self.dtype}>"


DECODED_BYTES = 72 << 20
COLUMN_BYTES = 800 << 10


def table_bytes(n_rows: int, n_columns: int) -> int:
    """What decoding a table takes: pieces of every column, of a small table all of it."""
    return DECODED_BYTES + min(COLUMN_BYTES, 64 * n_rows) * n_columns
