"""A first look at the columns of a table: what each holds, told from the first rows.

What is decided from the first rows does not depend on how the rows are cut into files, row groups
or batches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.errors import BadRowsError
from biglp._rows.written_numbers import MISSING_TEXTS
from biglp._tables.kinds import (
    CODE,
    Content,
    as_numbers,
    content_of,
    date_format,
    has_thousands,
    missing_in,
    text,
    written_numbers,
)
from biglp._tables.table import TableFile, stream

LOOK_ROWS = 50_000
LOOK_VALUES = 5_000_000
LEAST_LOOK_ROWS = 10_000
"""Rows that are looked at: so many, fewer of a wide table, but never fewer than that."""
LEAST_ROWS = 20
"""Values below which nothing is said of their being all different, or all the same."""
DIFFERENT = 0.9
"""Share of a column's texts that are different, from which on they are names or IDs."""
TEXT_WORDS = 4.5
TEXT_DIFFERENT = 0.2
"""Words that a free text has on average, and the share of them that are different, at least."""
NUMBERS = 0.9
"""Share of a column's texts that are numbers or marks of missing ones; others are mistakes."""
ID_NAME = re.compile(
    r"(^|[\W_])(id|ids|uuid|guid|key|index|idx|nr|no|number|rowid)$|^unnamed: \d+$|^$|[a-z]ID$|Id$",
)


@dataclass(frozen=True)
class ColumnSummary:
    """What the first rows of a column hold.

    Attributes
    ----------
    name : str
    type : pyarrow.DataType
    content : {"number", "time", "text", "nothing", "other"}
    rows : int
        Rows that were looked at.
    missing : int
        Missing values among them.
    median, low, high : float or None
        Of numbers and moments, where there are any.
    identity : str or None
        Why the column numbers or names the rows, and says nothing of them.
    free_text : bool
        Whether texts are sentences, not categories.
    date_format : str or None
        How texts that are all dates are written.
    written : bool
        Whether numbers are written as text; ``missing`` counts the texts that are none.
    thousands : bool
        Whether such numbers have commas between thousands.
    mistake : str or None
        The first text among such numbers that is none.
    constant : bool
        Whether all values are the same, none of them missing, or there are none.
    """

    name: str
    type: Any
    content: Content
    rows: int
    missing: int
    median: float | None = None
    low: float | None = None
    high: float | None = None
    identity: str | None = None
    free_text: bool = False
    date_format: str | None = None
    written: bool = False
    thousands: bool = False
    mistake: str | None = None
    constant: bool = False

    @property
    def needs_text(self) -> bool:
        """Whether the values are read from text."""
        return self.written or self.date_format is not None


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a table.

    Attributes
    ----------
    table : pyarrow.Table
    complete : bool
        Whether these are all rows.
    """

    table: Any
    complete: bool

    def look(self, column: str, *, guess: bool = True) -> ColumnSummary:
        """Look at one column; without ``guess`` text is text, whatever it looks like."""
        values = self.table.column(column)
        look = look_at_column(column, values)
        if guess or content_of(values.type) != "text":
            return look
        return ColumnSummary(column, values.type, "text", len(values), missing_in(values))


def first_rows(files: Sequence[TableFile], columns: Sequence[str]) -> FirstRows:
    """Read the first rows of some columns."""
    wanted = max(min(LOOK_ROWS, LOOK_VALUES // max(len(columns), 1)), LEAST_LOOK_ROWS)
    parts: list[Any] = []
    have = 0
    for batch in stream(files, columns):
        part = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        parts.append(part.slice(0, wanted - have))
        have += batch.num_rows
        if have > wanted:
            break
    try:
        table = pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        raise _other_types(files, columns, error) from error
    return FirstRows(_typed(table, files), have <= wanted)


def _typed(table: Any, files: Sequence[TableFile]) -> Any:
    """Give columns without any value the type that they have in a later file.

    pandas before 3 writes a column of text whose values are all missing as one of no type.
    """
    for place, name in enumerate(table.schema.names):
        if pa.types.is_null(table.schema.field(name).type):
            types = (file.schema.field(name).type for file in files)
            known = next((kind for kind in types if not pa.types.is_null(kind)), pa.null())
            table = table.set_column(place, name, table.column(name).cast(known))
    return table


def _other_types(
    files: Sequence[TableFile], columns: Sequence[str], error: Exception
) -> BadRowsError:
    """Say which file has another type of column than the first."""
    for file in files[1:]:
        for name in columns:
            first, other = files[0].schema.field(name).type, file.schema.field(name).type
            if content_of(first) != content_of(other):
                return BadRowsError(
                    f"{file.name}: column {name!r} holds {other} and {first} in {files[0].name}; "
                    "the files of one table need columns of the same types. Leave it out (drop=, "
                    "--drop), or write it as one type."
                )
    return BadRowsError(
        f"{files[0].name}: its files do not have columns of the same types: {error}."
    )


def look_at_column(name: str, values: Any) -> ColumnSummary:
    """Say what a column holds.

    Parameters
    ----------
    name : str
    values : pyarrow.ChunkedArray
        Its values in the first rows.
    """
    content = content_of(values.type)
    if content in ("number", "time"):
        found = as_numbers(values).astype(np.float64, copy=False)
        known = found[~np.isnan(found)]
        return _look_at_numbers(
            ColumnSummary(name, values.type, content, len(values), len(values) - len(known)), known
        )
    missing = missing_in(values)
    seen = ColumnSummary(name, values.type, content, len(values), missing)
    if missing == len(values):
        return replace(seen, constant=len(values) >= LEAST_ROWS)
    if pa.types.is_dictionary(values.type):  # declared to be categories, whatever they look like
        same = len(text(values).drop_null().unique()) == 1
        return replace(seen, constant=_one_value(seen, same))
    if content == "text":
        return _look_at_text(seen, text(values).drop_null().combine_chunks())
    return seen


def _look_at_text(seen: ColumnSummary, values: Any) -> ColumnSummary:
    thousands = has_thousands(values)
    found = written_numbers(values, thousands=thousands)
    marks = pc.is_in(values, value_set=pa.array(MISSING_TEXTS))
    others = found.null_count - pc.sum(marks).as_py()
    some = found.null_count < len(values)
    if some and others <= (1.0 - NUMBERS) * len(values) and not _has_codes(values):
        return _look_at_written(replace(seen, thousands=thousands), values, found)
    different = values.unique()
    share = len(different) / len(values)
    words = pc.mean(pc.count_substring_regex(different, pattern=r"\S+")).as_py()
    free_text = words >= TEXT_WORDS and share >= TEXT_DIFFERENT and len(values) >= LEAST_ROWS
    written = None if free_text else date_format(different)
    identity = None
    if not free_text and written is None and len(values) >= LEAST_ROWS and share >= DIFFERENT:
        identity = f"{share:.0%} of its texts are different: a name or an ID"
    return replace(
        seen,
        identity=identity,
        free_text=free_text,
        date_format=written,
        constant=_one_value(seen, len(different) == 1),
    )


def _look_at_written(seen: ColumnSummary, values: Any, found: Any) -> ColumnSummary:
    """Numbers that are written as text."""
    others = values.filter(pc.is_null(found))
    look = replace(seen, content="number", missing=seen.missing + len(others), written=True)
    look = replace(look, mistake=others[0].as_py() if len(others) else None)
    return _look_at_numbers(look, found.drop_null().to_numpy(zero_copy_only=False))


def _has_codes(values: Any) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, CODE)).as_py())


def _look_at_numbers(seen: ColumnSummary, values: np.ndarray) -> ColumnSummary:
    if not len(values):
        return replace(seen, constant=seen.rows >= LEAST_ROWS)
    low, high = float(values.min()), float(values.max())
    with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are refused later
        # As np.median, whose checks take longer than a column's few values.
        middle = [(len(values) - 1) // 2, len(values) // 2]
        median = 0.5 * float(np.partition(values, middle)[middle].sum())
    return replace(
        seen,
        median=median if np.isfinite(median) else 0.0,
        low=low,
        high=high,
        identity=_counting(seen.name, values)
        if seen.content == "number" and not seen.missing
        else None,
        constant=_one_value(seen, low == high),
    )


def _one_value(seen: ColumnSummary, same: bool) -> bool:
    return same and seen.missing == 0 and seen.rows >= LEAST_ROWS


def _counting(name: str, values: np.ndarray) -> str | None:
    """Why numbers are those of the rows, if they are."""
    whole = np.isfinite(values).all() and (values == np.rint(values)).all()
    if len(values) < LEAST_ROWS or not whole:
        return None
    steps = np.diff(values)
    if steps[0] != 0 and (steps == steps[0]).all():
        return "it counts the rows"
    if ID_NAME.search(name.strip()) is None and ID_NAME.search(name.strip().lower()) is None:
        return None
    ordered = np.sort(values)
    return "its numbers are all different: an ID" if (np.diff(ordered) > 0).all() else None
