"""What every source of rows offers."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._files.local import FileStamp
from biglp._sources.tables.encoding import Encoding


class Source(ABC):
    """A table of numeric rows that can be read from any row to any row.

    Everything that other rooms ask of a source is declared here, with the value that fits rows in
    memory. A source must set the first three attributes.

    Attributes
    ----------
    n_rows, n_features : int
        Shape of the table.
    dtype : numpy.dtype
        Type of the numbers.
    name : str
        What messages call this source.
    is_sparse : bool
        Whether :meth:`read` returns CSR matrices.
    device : str
        Where the rows are after reading.
    stamps : tuple of FileStamp
        The files behind it as they were when they were opened; empty for rows in memory.
    encoding : Encoding or None
        How columns became features, to be stored with a model and applied to new files.
    feature_names : tuple of str or None
        Names of the features, where the input has names.
    words_from : int or None
        First feature of sparse rows that is a count of a word, where the input says so: all before
        it are columns of a table, it and all after it are words.
    part_bytes : int
        Memory that each worker may hold beside its block while it reads.
    decoding_bytes : int
        Memory that decoding the input takes or took; 0 for rows that are read as they are.
    stay : bool
        Whether blocks keep their rows on the device once they have been brought there.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    name: str = "rows"
    is_sparse: bool = False
    device: str = "cpu"
    stamps: tuple[FileStamp, ...] = ()
    encoding: Encoding | None = None
    feature_names: tuple[str, ...] | None = None
    words_from: int | None = None
    part_bytes: int = 0
    decoding_bytes: int = 0
    stay: bool = False

    @abstractmethod
    def read(self, start: int, stop: int) -> Rows:
        """Return rows ``start`` to ``stop`` (exclusive) as stored, dense or CSR."""

    def stored(self, start: int, stop: int) -> Rows:
        """Return rows as :meth:`read` does, or in half precision where they are kept in it."""
        return self.read(start, stop)

    def as_read(self, stored: Rows) -> Rows:
        """Return what :meth:`stored` gave as :meth:`read` does."""
        return stored

    def take(self, indices: np.ndarray) -> Rows:
        """Return the rows at increasing ``indices``; most sources can do better than this."""
        return np.concatenate([self.read(int(i), int(i) + 1) for i in indices])

    def compare_columns(self) -> dict[str, Any]:
        """Say how columns differ from what the encoding knows of the training rows.

        Returns
        -------
        drift : dict
            See :func:`~biglp._sources.tables.drift.compare_columns`; empty without named columns.
        """
        return {}

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """Names of the columns that the features are made of, where the input has names."""
        names = () if self.encoding is None else self.encoding.names
        return names or self.feature_names

    @property
    def n_input_features(self) -> int:
        """Numbers that a dense row has before any projection."""
        return self.n_features

    @property
    def from_files(self) -> bool:
        """Whether the rows are read from files, and not from memory."""
        return bool(self.stamps)

    def check_unchanged(self) -> None:
        """Raise when one of the files is no longer what it was."""
        for stamp in self.stamps:
            stamp.check()

    def fingerprint(self) -> dict[str, Any]:
        """Facts, ready for JSON, that change when the rows may have changed."""
        some = self.take(np.unique(np.linspace(0, self.n_rows - 1, 1000).astype(np.int64)))
        values = some.data if sparse.issparse(some) else np.ascontiguousarray(some)
        return {
            "kind": "memory",
            "shape": [self.n_rows, self.n_features],
            "dtype": np.dtype(self.dtype).str,
            "probe": hashlib.sha256(values.tobytes()).hexdigest(),
        }

    def __repr__(self) -> str:
        return f"<{self.name}: {self.n_rows:,} rows × {self.n_features:,} features, {self.dtype}>"


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Float type for the arithmetic: float32 where it holds the input exactly, else float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)
