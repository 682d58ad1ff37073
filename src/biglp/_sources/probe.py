"""Some rows of an input, and how long reading all of them would take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from biglp._core.arrays import Rows
from biglp._sources.base import Source

SAMPLE_BYTES = 64 << 20
"""Rows in memory that methods are tried on; four times as much where they stay in their file."""
PASS_BYTES = 4 << 20
RAW_BYTES_PER_SECOND = 1.5e9
"""Writing and reading back converted rows."""


@dataclass(frozen=True)
class Probe:
    """Some rows of an input, and what reading all of them costs.

    Attributes
    ----------
    source : Source
        Rows to try methods on.
    n_rows : int
        Rows of the whole input; an estimate unless ``exact``.
    exact : bool
    looked_at : int
        Rows that ``missing`` was counted in, and that ``uses`` were told from.
    convert_seconds : float
        Processor time of the conversion before the first sweep.
    read_seconds : float
        Time of one pass over the rows when they are not in memory.
    decoding : int
        Memory that decoding takes.
    missing : dict of str to int
        Missing values of each column in the first ``looked_at`` rows.
    uses : dict of str to str
        What is done with each column of a table, in words.
    left_out : dict of str to str
        Why other columns of a table are no features.
    """

    source: Source
    n_rows: int
    exact: bool
    looked_at: int
    convert_seconds: float = 0.0
    read_seconds: float = 0.0
    decoding: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    uses: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def probe_rows(source: Source, wanted: int) -> Probe:
    """Read a part of rows that are read where they are; all of them take as much longer."""
    most = max(SAMPLE_BYTES * 4 // (source.n_features * source.dtype.itemsize), 1)
    n_rows = min(source.n_rows, wanted, most)
    part = Slice(source, (source.n_rows - n_rows) // 2, n_rows)
    each = max(PASS_BYTES // (source.n_features * source.dtype.itemsize), 1)
    began, missing = time.perf_counter(), 0
    for start in range(0, n_rows, each):
        rows = part.read(start, min(start + each, n_rows))
        if start == 0 and rows.dtype.kind == "f" and not source.is_sparse:
            missing = int(np.isnan(rows).sum())
    read = time.perf_counter() - began
    return Probe(
        source=part,
        n_rows=source.n_rows,
        exact=True,
        looked_at=min(each, n_rows),
        read_seconds=read * source.n_rows / n_rows,
        decoding=source.decoding_bytes,
        missing={"values": missing} if missing else {},
    )


class Slice(Source):
    """Consecutive rows of another source."""

    def __init__(self, inner: Source, first: int, n_rows: int) -> None:
        self._inner, self._first = inner, first
        self.n_rows, self.n_features, self.dtype = n_rows, inner.n_features, inner.dtype
        self.name, self.is_sparse = inner.name, inner.is_sparse

    def read(self, start: int, stop: int) -> Rows:
        """Read from the middle of the other source."""
        return self._inner.read(self._first + start, self._first + stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read from the middle of the other source."""
        return self._inner.take(np.asarray(indices) + self._first)
