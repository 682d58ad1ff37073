"""Data frames in memory: pandas, polars, pyarrow, or anything with Arrow's stream interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from biglp._core.errors import BadRowsError
from biglp._sources.base import Source
from biglp._sources.options import ReadOptions
from biglp._sources.tables.columns import make_encoding
from biglp._sources.tables.table import TableFile, check_names, pieces
from biglp._sources.tables.tabular import TabularSource


def open_frame(frame: Any, options: ReadOptions, keep_plain: bool) -> Source | None:
    """Open a data frame as a table.

    Parameters
    ----------
    frame : data frame
    options : ReadOptions
    keep_plain : bool
        Whether a frame of plain numbers is a table too. Otherwise the answer is None for one whose
        columns are all numbers and features, none missing, as for what is no data frame: an array
        does as well.
    """
    if not _is_frame(frame):
        return None
    table = FrameTable(frame)
    options.refuse("a data frame", "delimiter", "header", "zero_based", "n_features")
    encoding = make_encoding([table], options)
    numbers = encoding.takes_arrays and encoding.n_features == encoding.n_inputs  # no lists
    if not keep_plain and numbers and not encoding.left_out and not table.has_nulls:
        return None
    return TabularSource([table], encoding, table.name)


class FrameTable(TableFile):
    """A data frame in memory."""

    kind = "a data frame"
    part_word = "chunk"

    def __init__(self, frame: Any) -> None:
        self.name = "data frame"
        self.stamp = None
        self._batches = _arrow_table(frame).to_batches()
        self.schema = check_names(self._batches[0].schema, self.name)
        self.part_rows = [batch.num_rows for batch in self._batches]
        self.n_rows_guess = sum(self.part_rows)

    @property
    def has_nulls(self) -> bool:
        """Whether a value is missing."""
        return any(column.null_count for batch in self._batches for column in batch.columns)

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return a chunk without copying."""
        return self._batches[part].select(list(columns))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the chunks in pieces of bounded size."""
        for part in range(len(self._batches)):
            yield from pieces(self.read_part(part, columns))


def _is_frame(value: Any) -> bool:
    """Whether an object is a data frame with named columns."""
    has_stream = hasattr(value, "__arrow_c_stream__") and hasattr(value, "columns")
    return has_stream or _is_pandas(value) or isinstance(value, (pa.Table, pa.RecordBatch))


def _is_pandas(value: Any) -> bool:
    pandas = type(value).__module__.partition(".")[0] == "pandas"
    return pandas and hasattr(value, "columns")


def _arrow_table(frame: Any) -> Any:
    try:
        if isinstance(frame, pa.RecordBatch):
            table = pa.Table.from_batches([frame])
        elif _is_pandas(frame):
            table = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadRowsError(
            f"the data frame holds values that Arrow cannot store: {error}. "
            "Give each column one type: numbers or text."
        ) from error
    if table.num_rows == 0:
        raise BadRowsError(
            f"Found array with 0 sample(s) (shape={table.shape}) in the data frame "
            "while a minimum of 1 is required."
        )
    return table
