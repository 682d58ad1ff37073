"""What each column of a table is, told from its first rows.

It does not depend on how the rows are cut into files, row groups or batches.
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
from biglp._tables.kinds import CODE, Content, as_numbers, content_of, date_format, missing_in, text
from biglp._tables.number_styles import NumberStyle, find_style
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
    r"(^|[\W_])(id|ids|uuid|guid|key|index|idx|nr|no|number|rowid)$|^unnamed: \d+$|^$|[a-z]ID$|Id$"
)


@dataclass(frozen=True)
class ColumnSummary:
    """What some rows of a column hold."""

    name: str
    type: Any
    content: Content
    rows: int
    missing: int
    median: float | None = None  # of numbers and moments, as the next two
    low: float | None = None
    high: float | None = None
    identity: str | None = None  # why the column numbers or names the rows, and says nothing
    free_text: bool = False  # sentences, not categories
    date_format: str | None = None  # of texts that are all dates
    written: bool = False  # numbers written as text; texts that are none count as missing
    style: NumberStyle | None = None  # how such numbers are written
    mistake: str | None = None  # the first text among them that is none
    constant: bool = False  # all values are the same and none is missing, or there are none


def first_rows(files: Sequence[TableFile], columns: Sequence[str]) -> tuple[pa.Table, bool]:
    """The first rows of some columns, and whether these are all rows."""
    wanted = max(min(LOOK_ROWS, LOOK_VALUES // max(len(columns), 1)), LEAST_LOOK_ROWS)
    parts: list[Any] = []
    n_rows = 0
    for batch in stream(files, columns):
        part = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        parts.append(part.slice(0, wanted - n_rows))
        n_rows += batch.num_rows
        if n_rows > wanted:
            break
    try:
        table = pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        # The file that has another type of column than the first.
        for file in files[1:]:
            for name in columns:
                kind, other = files[0].schema.field(name).type, file.schema.field(name).type
                if content_of(kind) != content_of(other):
                    raise BadRowsError(
                        f"{file.name}: column {name!r} holds {other} and {kind} in "
                        f"{files[0].name}; the files of one table need columns of the same types. "
                        "Leave it out (drop=, --drop), or write it as one type."
                    ) from error
        raise BadRowsError(
            f"{files[0].name}: its files do not have columns of the same types: {error}."
        ) from error
    # pandas before 3 writes a column of text whose values are all missing as one of no type: it
    # gets the type that it has in a later file.
    for index, name in enumerate(table.schema.names):
        if pa.types.is_null(table.schema.field(name).type):
            types = (file.schema.field(name).type for file in files)
            known = next((kind for kind in types if not pa.types.is_null(kind)), pa.null())
            table = table.set_column(index, name, table.column(name).cast(known))
    return table, n_rows <= wanted


def look_at_column(name: str, values: pa.ChunkedArray, *, guess: bool = True) -> ColumnSummary:
    """Say what a column holds; without ``guess`` text is text, whatever it looks like."""
    content, rows = content_of(values.type), len(values)
    enough = rows >= LEAST_ROWS
    if content in ("number", "time"):
        numbers = as_numbers(values).astype(np.float64, copy=False)
        numbers = numbers[~np.isnan(numbers)]
        summary = ColumnSummary(name, values.type, content, rows, rows - len(numbers))
    else:
        summary = ColumnSummary(name, values.type, content, rows, missing_in(values))
        if not guess and content == "text":
            return summary
        if summary.missing == rows:
            return replace(summary, constant=enough)
        if pa.types.is_dictionary(values.type):  # declared to be categories
            same = len(text(values).drop_null().unique()) == 1
            return replace(summary, constant=same and not summary.missing and enough)
        if content != "text":
            return summary

        # Numbers that are written as text, if nearly all are, and none is a code such as 007.
        texts = text(values).drop_null().combine_chunks()
        codes = pc.any(pc.match_substring_regex(texts, CODE)).as_py()
        style = None if codes else find_style(texts, NUMBERS)
        if style is None:  # sentences, dates, names of the rows, or categories
            different = texts.unique()
            share = len(different) / len(texts)
            words = pc.mean(pc.count_substring_regex(different, pattern=r"\S+")).as_py()
            many = len(texts) >= LEAST_ROWS
            free_text = words >= TEXT_WORDS and share >= TEXT_DIFFERENT and many
            dates = None if free_text else date_format(different)
            names = not free_text and dates is None and many and share >= DIFFERENT
            return replace(
                summary,
                identity=f"{share:.0%} of its texts are different: a name or an ID"
                if names
                else None,
                free_text=free_text,
                date_format=dates,
                constant=len(different) == 1 and not summary.missing and enough,
            )
        written = style.read(texts)
        others = texts.filter(pc.is_null(written))
        summary = replace(
            summary,
            content="number",
            missing=summary.missing + len(others),
            written=True,
            style=style,
            mistake=others[0].as_py() if len(others) else None,
        )
        numbers = written.drop_null().to_numpy(zero_copy_only=False)

    # Median and range of numbers and moments, and whether they number the rows.
    if not len(numbers):
        return replace(summary, constant=enough)
    low, high = float(numbers.min()), float(numbers.max())
    with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are refused later
        # As np.median, whose checks take longer than a column's few values.
        middle = [(len(numbers) - 1) // 2, len(numbers) // 2]
        median = 0.5 * float(np.partition(numbers, middle)[middle].sum())
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    identity = None
    if summary.content == "number" and not summary.missing and enough and whole:
        steps, name = np.diff(numbers), summary.name.strip()
        if steps[0] != 0 and (steps == steps[0]).all():
            identity = "it counts the rows"
        elif ID_NAME.search(name) or ID_NAME.search(name.lower()):
            different = (np.diff(np.sort(numbers)) > 0).all()
            identity = "its numbers are all different: an ID" if different else None
    return replace(
        summary,
        median=median if np.isfinite(median) else 0.0,
        low=low,
        high=high,
        identity=identity,
        constant=low == high and not summary.missing and enough,
    )
