"""CSV and other delimited text: header or none, quoted fields, missing values, any usual delimiter.

Text cannot be read from the middle, so these files are streamed once into a block cache. pyarrow
parses them; only where it fails, or may have taken lines for one field, is the text looked at here.
"""

from __future__ import annotations

import copy
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

from biglp._core.errors import BadRowsError, InputWarning, warn_caller
from biglp._core.memory import format_bytes
from biglp._files.local import FileStamp
from biglp._rows.format import LABEL_NAMES, Format, LabelColumns, LabelPiece
from biglp._rows.options import ReadOptions
from biglp._rows.source import Encoding
from biglp._rows.textfiles import (
    PLAIN,
    Layout,
    decoded,
    find_charset_of,
    guess_rows,
    long_fields,
    look_at,
    numbered_lines,
    open_text,
)
from biglp._rows.written_numbers import MISSING_TEXTS, has_comma, is_number_text
from biglp._tables.kinds import content_of
from biglp._tables.source import TableFormat
from biglp._tables.table import MixedColumnError, TableFile, check_names, shortened

FIRST_CELLS = 100
"""Entries of a column that are looked at for commas."""
TRUTH_TEXTS = ("true", "false", "1", "0")


class DelimitedTable(TableFile):
    """One delimited text file, with the columns of ``like``, the first file of the same table."""

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
        self._commas: dict[str, str] = {}  # remarks on columns of numbers that look like text
        if isinstance(like, DelimitedTable) and set(like.schema.names) >= set(layout.names):
            self.schema = pa.schema([like.schema.field(name) for name in layout.names])
        else:
            self.schema = self._find_types()

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """A guessed encoding of letters, and numbers that were taken for text."""
        charset = self._layout.charset
        guess = (
            f"{self.name} is not UTF-8 and is read as {charset.name} (Western European letters). "
            "If letters are wrong, say what it is: text_encoding= (--encoding)."
        )
        return (*((guess,) if charset.guessed else ()), *self._commas.values())

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
                for swallowed in self._swallowed(self._is_row):
                    if swallowed.certain:
                        raise _unclosed_quote(self.name, swallowed)
                    warn_caller(
                        f"{self.name}, line {swallowed.first}: text in quotes runs up to line "
                        f"{swallowed.last:,}, over lines that look like rows of the table. If a "
                        "quote is not closed there, rows are missing; if it is meant, all is well.",
                        InputWarning,
                    )
                    break
                self._checked_quotes = True

    def text_example(self, column: str) -> str:
        """Name the first entry of a column that is not a number, and its line."""
        index, skip = self._layout.names.index(column), self._layout.header
        for line, row in numbered_lines(self.name, self._layout):
            cell = row[index].strip() if index < len(row) else ""
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
            index = self.schema.get_field_index(column)
            table.schema = table.schema.set(index, pa.field(column, pa.string()))
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
        table._commas = {name: note for name, note in self._commas.items() if name not in known}
        return table

    def _find_types(self) -> Any:
        """Types by the first rows: float64, dates and times, truth values; all else is text.

        A whole column is numbers or text, whatever its first rows look like: a text further down
        in a number column is an error that names the line.
        """
        no_rows = BadRowsError(f"{self.name} has column names but no rows.")
        layout = self._layout
        if layout.header and next(islice(numbered_lines(self.name, layout), 1, 2), None) is None:
            raise no_rows  # before the parser is made, which takes some KB a column
        try:
            with (
                open_text(self.name) as file,
                open_reader(file, layout, None, MISSING_TEXTS) as reader,
            ):
                first = reader.read_next_batch()
        except StopIteration:
            raise no_rows from None
        except (pa.ArrowException, OSError, EOFError) as error:
            raise self._explained(error, {}) from error
        fields = []
        for field in first.schema:
            kind, content = pa.string(), content_of(field.type)
            if pa.types.is_boolean(field.type) or content == "time":
                kind = field.type
            elif content in ("number", "nothing"):
                kind = pa.float64()
            elif content == "text" and layout.delimiter != ",":
                values = first.column(field.name)[:FIRST_CELLS].to_pylist()
                cells = [str(cell) for cell in values if cell is not None]
                if cells and all(map(has_comma, cells)):
                    self._commas[field.name] = (
                        f"{self.name}: column {field.name!r} is taken as text, such as "
                        f"{cells[0]!r}: the comma may be a decimal comma or stand between "
                        "thousands. If it is a decimal comma, say so with decimal=',' "
                        "(--decimal ,)."
                    )
            fields.append((field.name, kind))
        return pa.schema(fields)

    def _is_number(self, cell: str) -> bool:
        return is_number_text(cell, self._layout.decimal)

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

    def _swallowed(self, is_row: Callable[[list[str]], bool]) -> Iterator[Swallowed]:
        with open_text(self.name) as file, decoded(file, self._layout.charset.name) as text:
            yield from swallowed_lines(text, self._layout.delimiter, is_row)

    def _explained(self, error: Exception, types: dict[str, Any]) -> BadRowsError:
        """Find the line that the parser could not read as these types, and what is wrong there."""
        names, charset = self._layout.names, self._layout.charset.name
        for swallowed in self._swallowed(lambda cells: False):
            return _unclosed_quote(self.name, swallowed)
        if "UTF8" in str(error) or "decode" in str(error):
            where = ""
            if charset in PLAIN:  # the first byte that is not UTF-8
                with open_text(self.name) as file:
                    for number, raw in enumerate(file, start=1):
                        try:
                            raw.decode("utf-8")
                        except UnicodeDecodeError as wrong:
                            where = f", line {number}, byte {raw[wrong.start]:#04x}"
                            break
            return BadRowsError(
                f"{self.name}{where}: the text is not {'UTF-8' if charset in PLAIN else charset}. "
                "Say how it is written with text_encoding= (--encoding), such as cp1252 "
                "(Windows), latin-1 or utf-16."
            )
        others = [
            (index, name, types[name])
            for index, name in enumerate(names)
            if name in types and content_of(types[name]) != "text"
        ]
        skip, longest = self._layout.header, (0, 1)
        for line, row in numbered_lines(self.name, self._layout):
            longest = max(longest, (sum(len(cell.encode()) for cell in row), line))
            if skip:
                skip = False
                continue
            if len(row) != len(names):
                return BadRowsError(
                    f"{self.name}, line {line}: {len(row)} fields where there should be "
                    f"{len(names)} ({shortened(self._layout.delimiter.join(row))!r}). "
                    "Repair or delete that line."
                )
            for index, name, kind in others:
                cell = row[index].strip()
                if cell in MISSING_TEXTS:
                    continue
                if content_of(kind) == "time":
                    wanted, fits = "a date or a time", True
                    try:
                        pa.scalar(cell).cast(kind)
                    except pa.ArrowException:
                        fits = False
                elif kind == pa.bool_():
                    wanted, fits = "true or false", cell.lower() in TRUTH_TEXTS
                else:
                    wanted, fits = "a number", self._is_number(cell)
                if fits:
                    continue
                why = (
                    "as the first rows of that column are. Repair that line, or leave the column "
                    "out (drop=, --drop)."
                )
                if self._encoding is not None and self._encoding.column(name) is not None:
                    why = (
                        "as that column was in the rows that the model was fitted on. Repair that "
                        "line, or the column where all of it is written in another way."
                    )
                return MixedColumnError(
                    f"{self.name}, line {line}: {shortened(cell)!r} in column {name!r} is not "
                    f"{wanted}, {why}",
                    name,
                )
        if "straddling" in str(error):
            size, line = longest
            most = format_bytes(block_bytes(self._layout))
            return BadRowsError(
                f"{self.name}, line {line}: the row has {format_bytes(size)}, and one of delimited "
                f"text may have {most} at most. Shorten its texts, leave such a column out of the "
                "file, or write the table as Parquet or JSON lines, whose rows may be longer."
            )
        return self.unreadable(error)


class DelimitedFormat(TableFormat):
    """Delimited text; a file of one column may also be labels, one a line."""

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield a column of labels, or the lines of a file that has one column."""
        if columns.label is None and len(look_at(files[0]).names) == 1:
            return LINES.read_labels(files, columns, n_rows)
        return super().read_labels(files, columns, n_rows)


DELIMITED = DelimitedFormat(DelimitedTable)


# pyarrow's parser ---------------------------------------------------------------------------------


BLOCK_BYTES = 1 << 20
"""Text that is parsed at once; pyarrow holds some 35 such pieces, whatever it is asked."""
COLUMN_BYTES = 512
"""The same for each column of a wide table: a batch of a few lines costs as much as one of many."""


def block_bytes(layout: Layout) -> int:
    """Text of these columns that is parsed at once, which no row may be longer than."""
    return max(BLOCK_BYTES, COLUMN_BYTES * len(layout.names))


def open_reader(
    file: Any, layout: Layout, types: dict[str, Any] | None, missing: tuple[str, ...]
) -> Any:
    """A parser of these columns, or of all with types by their first rows."""
    plain = layout.charset.name in PLAIN
    return pyarrow.csv.open_csv(
        file,
        read_options=pyarrow.csv.ReadOptions(
            block_size=block_bytes(layout),
            column_names=list(layout.names),
            skip_rows=0,
            skip_rows_after_names=int(layout.header),
            encoding="utf8" if plain else layout.charset.name,
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=layout.delimiter,
            newlines_in_values=True,
            # In a table of one column an empty line is a missing value, not a line to skip.
            ignore_empty_lines=len(layout.names) > 1,
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            null_values=missing,
            strings_can_be_null=True,
            column_types=types,
            include_columns=None if types is None else list(types),
            decimal_point=layout.decimal,
        ),
    )


# Quotes that are opened and not closed ------------------------------------------------------------
#
# A field in quotes may run over several lines. So does one whose quote was never closed: it
# swallows the lines up to the next quote, or to the end of the file, and a parser does not mind.
# Whether lines went into fields is known from counting both, whichever columns are read; only then
# is the text looked at line by line.


class Watched(io.RawIOBase):
    """A file that counts its lines while another reads it, and sees whether there are quotes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._open_line = False
        self._ends = 0
        self.quotes = False

    @property
    def lines(self) -> int:
        """Lines so far; in UTF-16 perhaps more than there are."""
        return self._ends + self._open_line

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        if piece:
            self._ends += piece.count(b"\n") or piece.count(b"\r")
            self._open_line = not piece.endswith((b"\n", b"\n\0", b"\r"))
            self.quotes = self.quotes or b'"' in piece
        return piece

    def close(self) -> None:
        self._file.close()
        super().close()


class Swallowed(NamedTuple):
    """A field in quotes with lines in it that may be rows."""

    first: int  # the lines that the record runs from and to, counted from 1
    last: int
    text: str  # how it begins
    certain: bool  # the quote is certainly wrong: not closed, or closed in the middle of a field


def swallowed_lines(
    lines: Iterator[str], delimiter: str, is_row: Callable[[list[str]], bool]
) -> Iterator[Swallowed]:
    """Find fields that run over several lines, some of which look like rows of the table."""
    record: list[str] = []

    def remembered() -> Iterator[str]:
        for line in lines:
            record.append(line)
            yield line

    reader = csv.reader(remembered(), delimiter=delimiter)
    first = 1
    with long_fields():
        while True:
            try:
                next(reader)
            except StopIteration:
                return
            except csv.Error:  # longer than any field
                yield Swallowed(first, reader.line_num, record[0], True)
                return
            if len(record) > 1:
                try:
                    list(csv.reader(iter(record), delimiter=delimiter, strict=True))
                    certain = False
                except csv.Error:
                    certain = True
                inner = csv.reader(iter(record[1:]), delimiter=delimiter)
                if certain or any(map(is_row, inner)):
                    yield Swallowed(first, reader.line_num, record[0], certain)
            first = reader.line_num + 1
            record.clear()


def _unclosed_quote(name: str, swallowed: Swallowed) -> BadRowsError:
    return BadRowsError(
        f"{name}, line {swallowed.first}: a quote is opened there and not closed as it should be, "
        f"so that the lines up to {swallowed.last:,} would be read as one row "
        f"({shortened(swallowed.text.strip())!r}). Close the quote, write it twice where it is "
        "part of the text, or delete it."
    )


# Labels as text, one a line -----------------------------------------------------------------------


PIECE_CHARACTERS = 8 << 20


class LinesFormat(Format):
    """Labels only, one a line; one line more than there are rows means that the first is a name."""

    name = "lines"

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield a label for each line of the first file."""
        charset = find_charset_of(files[0]).name
        n_lines = sum(map(len, _pieces(files[0], charset)))
        skip = n_rows is not None and n_lines == n_rows + 1
        if n_rows is None:
            skip = next((piece[0] in LABEL_NAMES for piece in _pieces(files[0], charset)), False)
        yield LabelPiece([], text=True, total=n_lines - skip)
        for piece in _pieces(files[0], charset):
            yield LabelPiece(piece[1:] if skip else piece, text=True)
            skip = False


def _pieces(path: str, charset: str) -> Iterator[list[str]]:
    with open_text(path) as file, decoded(file, charset) as text:
        while lines := text.readlines(PIECE_CHARACTERS):
            texts = [line.strip() for line in lines]
            yield [word[1:-1] if word[:1] == word[-1:] == '"' else word for word in texts]


LINES = LinesFormat()
