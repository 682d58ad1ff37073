"""CSV and other delimited text: header or none, quoted fields, missing values, any usual delimiter.

Text cannot be read from the middle, so these files are streamed once into a block cache.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from biglp._core.errors import BadRowsError, InputWarning, warn_caller
from biglp._files.local import FileStamp
from biglp._rows.encoding import Encoding
from biglp._rows.format import LabelColumns, LabelPiece
from biglp._rows.options import ReadOptions
from biglp._rows.textfiles import decoded, guess_rows, look_at, numbered_lines, open_text
from biglp._rows.written_numbers import MISSING_TEXTS, has_comma, is_number_text
from biglp._sources.formats.csvparser import first_types, open_reader, row_too_long
from biglp._sources.formats.lines import labels_in_lines
from biglp._sources.formats.quotes import Watched, swallowed_lines
from biglp._sources.formats.textproblems import (
    not_this_charset,
    not_utf8,
    perhaps_unclosed,
    shortened,
    unclosed_quote,
)
from biglp._sources.tables.arrow_columns import content_of
from biglp._sources.tables.format import TableFormat
from biglp._sources.tables.table import MixedColumnError, TableFile, check_names

TRUTH_TEXTS = ("true", "false", "1", "0")


class DelimitedTable(TableFile):
    """One delimited text file.

    Parameters
    ----------
    path : path
    options : ReadOptions
        Layout.
    like : TableFile, optional
        First file of the same table, whose columns this one has.
    """

    kind = "CSV"
    part_word = "line"
    slow = True
    typed = False
    _missing: tuple[str, ...] = MISSING_TEXTS

    def __init__(self, path: str, options: ReadOptions, like: TableFile | None = None) -> None:
        self.name = path
        self.stamp = FileStamp.of(path)
        self._layout = layout = look_at(self.name, options)
        self._checked_quotes = False
        self._encoding: Encoding | None = None
        self.words = layout.words
        check_names(pa.schema([(name, pa.null()) for name in layout.names]), self.name)
        self.part_rows = []
        self.n_rows_guess = guess_rows(self.name, self.stamp.size)
        self._commas: dict[str, tuple[str, ...]] = {}
        if isinstance(like, DelimitedTable) and set(like.schema.names) >= set(layout.names):
            self.schema = pa.schema([like.schema.field(name) for name in layout.names])
        else:
            self.schema = self._find_types()

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """A guessed encoding of letters, and numbers that were taken for text."""
        guessed = self._layout.charset.guessed
        about = (not_utf8(self.name, self._layout.charset.name),) if guessed else ()
        return sum(self._commas.values(), about)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Parse these columns from the first line to the last."""
        types = {name: self.schema.field(name).type for name in columns}
        count = int(self._layout.header)
        with Watched(open_text(self.name)) as file:
            try:
                with open_reader(file, self._layout, types, self._missing) as reader:
                    for batch in reader:
                        count += batch.num_rows
                        yield batch
            except pa.ArrowException as error:
                raise self._explained(error, types) from error
            if file.quotes and count < file.lines and not self._checked_quotes:
                self._check_quotes()

    def text_example(self, column: str) -> str:
        """Name the first entry of a column that is not a number, and its line."""
        place, skip = self._layout.names.index(column), self._layout.header
        for line, row in numbered_lines(self.name, self._layout):
            cell = row[place].strip() if place < len(row) else ""
            if not skip and cell not in MISSING_TEXTS and not self._is_number(cell):
                comma = self._layout.delimiter != "," and has_comma(cell)
                hint = ", a number with decimal=',' (--decimal ,)" if comma else ""
                return f", such as {shortened(cell)!r} in line {line}{hint}"
            skip = False
        return ""

    def as_written(self, *columns: str, keep_all: bool = False) -> DelimitedTable:
        """The file with these columns as text."""
        table = copy.copy(self)
        for column in columns:
            place = self.schema.get_field_index(column)
            table.schema = table.schema.set(place, pa.field(column, pa.string()))
        table._missing = ("",) if keep_all else MISSING_TEXTS
        return table

    def with_encoding(self, encoding: Encoding) -> DelimitedTable:
        """The file with columns of the types that they had in the training rows."""
        table = copy.copy(self)
        table._encoding = encoding
        known = {column.name: column for column in encoding.columns or ()}
        table.schema = pa.schema(
            [
                (name, known[name].read_as(kind) if name in known else kind)
                for name, kind in zip(self.schema.names, self.schema.types, strict=True)
            ]
        )
        table._commas = {name: told for name, told in self._commas.items() if name not in known}
        return table

    def _find_types(self) -> Any:
        """Numbers are float64, dates and times what they are; everything else is text.

        A whole column is numbers or text, whatever its first rows look like: a text further down
        in a number column is an error that names the line.
        """
        no_rows = BadRowsError(f"{self.name} has column names but no rows.")
        lines = numbered_lines(self.name, self._layout)
        if self._layout.header and next(islice(lines, 1, 2), None) is None:
            raise no_rows  # before the parser is made, which takes some KB a column
        try:
            first, commas = first_types(self.name, self._layout)
        except StopIteration:
            raise no_rows from None
        except (pa.ArrowException, OSError, EOFError) as error:
            raise self._explained(error, {}) from error
        fields = []
        for field in first:
            kind = pa.string()
            content = content_of(field.type)
            if pa.types.is_boolean(field.type) or content == "time":
                kind = field.type
            elif content in ("number", "nothing"):
                kind = pa.float64()
            if kind == pa.string() and field.name in commas:
                self._commas[field.name] = commas[field.name]
            fields.append((field.name, kind))
        return pa.schema(fields)

    def _check_quotes(self) -> None:
        """Look at fields that run over several lines.

        Raises
        ------
        BadRowsError
            When a quote is not closed.
        """
        with open_text(self.name) as file, decoded(file, self._layout.charset.name) as text:
            for found in swallowed_lines(iter(text), self._layout.delimiter, self._is_row):
                if found.certain:
                    raise unclosed_quote(self.name, found)
                warn_caller(perhaps_unclosed(self.name, found), InputWarning)
                break
        self._checked_quotes = True

    def _is_row(self, cells: list[str]) -> bool:
        """Whether cells fit the columns, and there is a number among them."""
        if len(cells) != len(self.schema):
            return False
        numbers = [
            cell.strip()
            for cell, field in zip(cells, self.schema, strict=True)
            if pa.types.is_floating(field.type)
        ]
        given = [cell for cell in numbers if cell not in MISSING_TEXTS]
        return bool(given) and all(map(self._is_number, given))

    def _is_number(self, cell: str) -> bool:
        return is_number_text(cell, self._layout.decimal)

    def _explained(self, error: Exception, types: dict[str, Any]) -> BadRowsError:
        """Find the line that the parser could not read, and say what is wrong there."""
        names = self._layout.names
        others = {name for name, kind in types.items() if content_of(kind) != "text"}
        numbers = [(place, name) for place, name in enumerate(names) if name in others]
        skip, quotes = self._layout.header, self._unclosed()
        if quotes is not None:
            return quotes
        if "UTF8" in str(error) or "decode" in str(error):
            return not_this_charset(self.name, self._layout.charset.name)
        for line, row in numbered_lines(self.name, self._layout):
            if skip:
                skip = False
                continue
            if len(row) != len(names):
                return BadRowsError(
                    f"{self.name}, line {line}: {len(row)} fields where there should be "
                    f"{len(names)} ({shortened(self._layout.delimiter.join(row))!r}). "
                    "Repair or delete that line."
                )
            for index, name in numbers:
                cell = row[index].strip()
                wanted = _wanted(types[name])
                if cell not in MISSING_TEXTS and not self._fits(cell, types[name]):
                    return MixedColumnError(
                        f"{self.name}, line {line}: {shortened(cell)!r} in column {name!r} is not "
                        f"{wanted}, {self._expected(name)}",
                        name,
                    )
        if "straddling" in str(error):
            return row_too_long(self.name, self._layout)
        return self.unreadable(error)

    def _expected(self, name: str) -> str:
        """Why a column should be of its type, and what to do."""
        if self._encoding is not None and self._encoding.column(name) is not None:
            return (
                "as that column was in the rows that the model was fitted on. Repair that line, "
                "or the column where all of it is written in another way."
            )
        return (
            "as the first rows of that column are. Repair that line, or leave the column out "
            "(drop=, --drop)."
        )

    def _fits(self, cell: str, kind: Any) -> bool:
        """Whether the parser reads an entry as this type."""
        if content_of(kind) != "time":
            return cell.lower() in TRUTH_TEXTS if kind == pa.bool_() else self._is_number(cell)
        try:
            pa.scalar(cell).cast(kind)
        except pa.ArrowException:
            return False
        return True

    def _unclosed(self) -> BadRowsError | None:
        """The quote that is not closed, where there is one."""
        with open_text(self.name) as file, decoded(file, self._layout.charset.name) as text:
            for found in swallowed_lines(iter(text), self._layout.delimiter, lambda _: False):
                return unclosed_quote(self.name, found)
        return None


class DelimitedFormat(TableFormat):
    """Delimited text; a file of one column may also be labels, one a line."""

    name = DelimitedTable.kind
    table = DelimitedTable

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield a column of labels, or the lines of a file that has one column."""
        if columns.label is None and len(look_at(files[0]).names) == 1:
            return labels_in_lines(files[0], n_rows)
        return super().read_labels(files, columns, n_rows)


def _wanted(kind: Any) -> str:
    if content_of(kind) == "time":
        return "a date or a time"
    return "true or false" if kind == pa.bool_() else "a number"


DELIMITED = DelimitedFormat()
