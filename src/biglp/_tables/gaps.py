"""What of a table is filled in or left out: told, or refused where the options are strict.

A new table need not be what the model's was. Columns that it lacks count as missing, and so do
texts where the model has numbers or dates; how missing values become features the model knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.errors import BadRowsError, InputWarning, warn_caller
from biglp._rows.options import ReadOptions
from biglp._rows.source import Encoding, some
from biglp._rows.written_numbers import MISSING_TEXTS
from biglp._tables.detect_kinds import LEAST_ROWS, NUMBERS, first_rows
from biglp._tables.kinds import ISO, Column, Date, Number, content_of, date_format, text
from biglp._tables.number_styles import find_style
from biglp._tables.table import PartitionedTable, TableFile, shortened, stream

NAMED_ROWS = 3
"""Rows of a column that are named."""


@dataclass
class Gaps:
    """Missing values of one column, and texts that are no numbers or dates, of so many rows."""

    column: Column
    rows: int = 0
    missing: int = 0
    unreadable: int = 0
    first_missing: tuple[int, ...] = ()
    example: str = ""

    def add(self, values: Any) -> None:
        """Count those of the next rows."""
        empty = np.asarray(values.is_null())
        if isinstance(self.column, Number):
            empty = np.isnan(self.column.numbers(values).astype(np.float64, copy=False))
            if content_of(values.type) == "text" and empty.any():
                words = text(values)
                none = pc.or_kleene(words.is_null(), pc.is_in(words, pa.array(MISSING_TEXTS)))
                wrong = np.flatnonzero(empty & ~np.asarray(none))
                if len(wrong) and not self.unreadable:
                    word = shortened(words[int(wrong[0])].as_py())
                    self.example = f"{word!r} in row {self.rows + int(wrong[0]):,}"
                self.unreadable += len(wrong)
                empty[wrong] = False
        found = self.rows + np.flatnonzero(empty)
        self.missing += len(found)
        self.first_missing = (*self.first_missing, *found.tolist())[:NAMED_ROWS]
        self.rows += len(values)

    def told(self) -> Iterator[str]:
        """What there is of either, in words."""
        if self.missing:
            rows = ", ".join(f"{row:,}" for row in self.first_missing)
            yield f"{self.column.name!r} has no value in {self.missing:,} rows (first {rows})"
        if self.unreadable:
            what = "date or time" if isinstance(self.column, Date) else "number"
            where = f"of {self.column.name!r}"
            if self.unreadable == 1:
                yield f"1 value {where} is no {what} ({self.example})"
            else:
                yield f"{self.unreadable:,} values {where} are no {what}s (such as {self.example})"


def count_gaps(files: Sequence[TableFile], columns: Sequence[Column]) -> list[Gaps]:
    """Count what is missing in some columns of all rows."""
    counted = [Gaps(column) for column in columns]
    for batch in stream(files, [column.name for column in columns]) if columns else ():
        for gaps in counted:
            gaps.add(batch.column(gaps.column.name))
    return counted


class CompletedTable(PartitionedTable):
    """A table file with columns of missing values, which it lacks."""

    @property
    def absent(self) -> list[str]:
        """Their names."""
        return list(self._values)


def absent_columns(files: Sequence[TableFile]) -> list[str]:
    """Columns that some of the files lack."""
    lacking = (file.absent for file in files if isinstance(file, CompletedTable))
    return list(dict.fromkeys(name for names in lacking for name in names))


def as_model_expects(
    files: Sequence[TableFile], options: ReadOptions
) -> tuple[Sequence[TableFile], ReadOptions]:
    """Files with all columns of an encoding, which reads text where it expects numbers.

    Columns of missing values stand for those that are not there. BadRowsError: a column is not
    there of which no value may be missing, or all of them are not, or the options are strict.
    """
    known = options.encoding
    if known is None or known.columns is None:
        return files, options
    fields = {field.name: field for file in reversed(files) for field in file.schema}
    absent = [column for column in known.columns if column.name not in fields]
    refused = options.strict or not all(column.fills for column in absent)
    if absent and (refused or len(absent) == len(known.columns)):
        known.check_names([*fields], files[0].name)
    full: list[TableFile] = []
    for file in files:
        empty = {
            column.name: pa.scalar(None, fields[column.name].type)
            if column.name in fields
            else pa.scalar(None, column.read_as(pa.null()))
            for column in known.columns
            if column.name not in file.schema.names and column.fills and not options.strict
        }
        full.append(CompletedTable(file, empty) if empty else file)
    for column in known.columns:
        if column.name in fields and content_of(fields[column.name].type) == "text":
            known = reads_text(known, column.name, full)
    return full, replace(options, encoding=known)


def reads_text(known: Encoding, name: str, files: Sequence[TableFile]) -> Encoding:
    """An encoding that reads a column's numbers or dates from text, however these are written.

    BadRowsError: no text is one, so that it is another column than the model's.
    """
    column = known.column(name)
    if not isinstance(column, Number) or not column.fills:
        return known
    words = text(first_rows(files, [name])[0].column(name)).drop_null().combine_chunks()
    words = words.filter(pc.invert(pc.is_in(words, pa.array(MISSING_TEXTS))))
    if isinstance(column, Date):
        column = replace(column, format=column.format or date_format(words.unique()) or ISO)
    elif not column.texts:
        column = replace(column, texts=True)
        style = find_style(words, NUMBERS)
        if style is not None:  # units were not there before, and mean nothing now
            column = replace(column, thousands=style.thousands, decimal=style.decimal)
    if len(words) >= LEAST_ROWS and np.isnan(column.numbers(words)).all():
        raise BadRowsError(
            f"{files[0].name}: column {name!r} holds text (such as "
            f"{shortened(words[0].as_py())!r}) where the model has {column.expects}, and none of "
            "its values is one. Write it as in the table that the model was fitted on, or take it "
            "out of the table: it counts as missing then."
        )
    columns = tuple(column if one.name == name else one for one in known.columns or ())
    return replace(known, columns=columns)


def unknown_columns(files: Sequence[TableFile], options: ReadOptions) -> list[str]:
    """Columns of new rows that the model does not know, and that nobody leaves out."""
    known = options.encoding
    if known is None or known.columns is None:
        return []
    meant = {*known.names, *known.left_out, *options.drop, options.label_column}
    return [name for name in files[0].schema.names if name not in meant]


def tell_gaps(
    files: Sequence[TableFile], encoding: Encoding, options: ReadOptions
) -> tuple[str, ...]:
    """Warn of columns that new rows lack, and of texts in them that are no numbers or dates.

    The answer are notes: on such texts in columns where training rows had no value either, and on
    columns that the model does not know.
    """
    if options.strict:
        return ()
    told = list[str]()
    lacking = [file for file in files if isinstance(file, CompletedTable)]
    if lacking:
        absent = absent_columns(files)
        where = f"{lacking[0].name} lacks"
        if len(lacking) > 1:
            where = f"{lacking[0].name} and {len(lacking) - 1} more lack"
        told.append(
            f"{where} {len(absent):,} of the {len(encoding.names):,} columns that the model was "
            f"fitted on: {some(absent)}. They count as missing in all rows there."
        )
    lacked = {name for name, facts in encoding.facts.items() if facts["missing"] > 0}
    written = [
        column
        for column in encoding.columns or ()
        if isinstance(column, Number)
        and (options.encoding is not None or column.name in lacked)
        and any(
            content_of(file.schema.field(column.name).type) == "text"
            for file in files
            if not (isinstance(file, CompletedTable) and column.name in file.absent)
        )
    ]
    notes, usual = list[str](), list[str]()
    for gaps in count_gaps(files, written):
        gaps.missing = 0  # nothing is wrong with these
        (usual if gaps.column.name in lacked else notes).extend(gaps.told())
    end = "They count as missing."
    if notes:
        told.append(f"{files[0].name}: {'; '.join(notes)}. {end}")
    for note in told:
        warn_caller(note, InputWarning)
    told = [f"{files[0].name}: {'; '.join(usual)}. {end}"] if usual else []
    if more := unknown_columns(files, options):
        told.append(f"{files[0].name}: the model does not know {some(more)}; left out.")
    return tuple(told)


def refuse_gaps(files: Sequence[TableFile], encoding: Encoding, options: ReadOptions) -> None:
    """Where the options are strict, refuse a table of which anything is left out or filled in."""
    if not options.strict:
        return
    name, known, notes = files[0].name, options.encoding, list[str]()
    if known is None:
        notes += [f"{column!r} is left out ({why})" for column, why in encoding.left_out.items()]
    elif more := unknown_columns(files, options):
        notes.append(f"the model does not know {some(more)}")
    for gaps in count_gaps(files, encoding.columns or ()):
        notes += gaps.told()
    if notes:
        more_notes = f"; and {len(notes) - 8} more" if len(notes) > 8 else ""
        raise BadRowsError(
            f"{name}: strict=True (--strict) leaves nothing out and fills nothing in, but "
            f"{'; '.join(notes[:8])}{more_notes}. Repair the table, leave columns out yourself "
            "(drop=, --drop), or do without strict."
        )
