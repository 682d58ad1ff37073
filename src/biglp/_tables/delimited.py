"""CSV and other delimited text: header or none, quoted fields, missing values, any usual delimiter.

Text cannot be read from the middle, so these files are streamed once into a block cache.
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
from biglp._rows.encoding import Encoding
from biglp._rows.format import LABEL_NAMES, Format, LabelColumns, LabelPiece
from biglp._rows.options import ReadOptions
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
from biglp._tables.table import MixedColumnError, TableFile, check_names

# --------------------------------------------------------------------------------------------------
# Labels as text, one a line.


PIECE_CHARACTERS = 8 << 20


class LinesFormat(Format):
    """Labels only, one a line."""

    name = "lines"

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield a label for each line of the first file."""
        return labels_in_lines(files[0], n_rows)


def labels_in_lines(path: str, n_rows: int | None) -> Iterator[LabelPiece]:
    """One label a line; one line more than there are rows means that the first is a name."""
    charset = find_charset_of(path).name
    n_lines = sum(map(len, _pieces(path, charset)))
    skip = n_rows is not None and n_lines == n_rows + 1
    if n_rows is None:
        skip = next((piece[0] in LABEL_NAMES for piece in _pieces(path, charset)), False)
    yield LabelPiece([], text=True, total=n_lines - skip)
    for piece in _pieces(path, charset):
        yield LabelPiece(piece[1:] if skip else piece, text=True)
        skip = False


def _pieces(path: str, charset: str) -> Iterator[list[str]]:
    with open_text(path) as file, decoded(file, charset) as text:
        while lines := text.readlines(PIECE_CHARACTERS):
            texts = [line.strip() for line in lines]
            yield [word[1:-1] if word[:1] == word[-1:] == '"' else word for word in texts]


LINES = LinesFormat()


# --------------------------------------------------------------------------------------------------
# Quotes that are opened and not closed.
#
# A field in quotes may run over several lines. So does one whose quote was never closed: it
# swallows the lines up to the next quote, or to the end of the file, and a parser does not mind.
# Whether lines went into fields is known from counting both; only then is the text looked at line
# by line.


class Watched(io.RawIOBase):
    """A file that counts its lines while another reads it.

    Attributes
    ----------
    lines : int
        Lines so far; in UTF-16 perhaps more than there are.
    quotes : bool
        Whether there were quotes.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._open_line = False
        self._ends = 0
        self.quotes = False

    @property
    def lines(self) -> int:
        return self._ends + self._open_line

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        piece = self._file.read(size)
        if piece:
            self._ends += piece.count(b"\n") or piece.count(b"\r")
            self._open_line = not piece.endswith((b"\n", b"\n\0", b"\r"))
            self.quotes = self.quotes or b'"' in piece
        return piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class Swallowed(NamedTuple):
    """A field in quotes with lines in it that may be rows.

    Attributes
    ----------
    first, last : int
        Lines that the record runs from and to, counted from 1.
    text : str
        How it begins.
    certain : bool
        Whether the quote is certainly wrong: not closed, or closed in the middle of a field.
    """

    first: int
    last: int
    text: str
    certain: bool


def swallowed_lines(
    lines: Iterator[str], delimiter: str, is_row: Callable[[list[str]], bool]
) -> Iterator[Swallowed]:
    """Find fields that run over several lines and should perhaps not.

    Parameters
    ----------
    lines : iterator of str
        The whole file, with the ends of lines.
    delimiter : str
    is_row : callable
        Whether the fields of a line look like a row of the table.
    """
    read: list[str] = []

    def remembered() -> Iterator[str]:
        for line in lines:
            read.append(line)
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
                yield Swallowed(first, reader.line_num, read[0], True)
                return
            if len(read) > 1:
                certain = not _well_formed(read, delimiter)
                inner = csv.reader(iter(read[1:]), delimiter=delimiter)
                if certain or any(map(is_row, inner)):
                    yield Swallowed(first, reader.line_num, read[0], certain)
            first = reader.line_num + 1
            read.clear()


def _well_formed(lines: list[str], delimiter: str) -> bool:
    try:
        list(csv.reader(iter(lines), delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


# --------------------------------------------------------------------------------------------------
# What can be wrong with a text file, in words.


FIRST_CELLS = 100
"""Entries of a column that are looked at."""


def unclosed_quote(name: str, found: Swallowed) -> BadRowsError:
    """Explain that a quote swallows lines."""
    return BadRowsError(
        f"{name}, line {found.first}: a quote is opened there and not closed as it should be, so "
        f"that the lines up to {found.last:,} would be read as one row "
        f"({shortened(found.text.strip())!r}). Close the quote, write it twice where it is part "
        "of the text, or delete it."
    )


def perhaps_unclosed(name: str, found: Swallowed) -> str:
    """Say that lines in quotes look like rows."""
    return (
        f"{name}, line {found.first}: text in quotes runs up to line {found.last:,}, over lines "
        "that look like rows of the table. If a quote is not closed there, rows are missing; if "
        "it is meant, all is well."
    )


def not_utf8(name: str, charset: str) -> str:
    """Say that the encoding of a file is a guess."""
    return (
        f"{name} is not UTF-8 and is read as {charset} (Western European letters). If letters are "
        "wrong, say what it is: text_encoding= (--encoding)."
    )


def with_commas(name: str, column: str, values: Any) -> tuple[str, ...]:
    """Say that texts of a column may be numbers, where all of the first ones are."""
    cells = [str(cell) for cell in values[:FIRST_CELLS].to_pylist() if cell is not None]
    if not cells or not all(map(has_comma, cells)):
        return ()
    return (
        f"{name}: column {column!r} is taken as text, such as {cells[0]!r}: the comma may be a "
        "decimal comma or stand between thousands. If it is a decimal comma, say so with "
        "decimal=',' (--decimal ,).",
    )


def not_this_charset(name: str, charset: str) -> BadRowsError:
    """Explain that a file is not written in its encoding, and name the first such line."""
    where, shown = "", "UTF-8" if charset in PLAIN else charset
    if charset in PLAIN:
        with open_text(name) as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    where = f", line {number}, byte {line[error.start]:#04x}"
                    break
    return BadRowsError(
        f"{name}{where}: the text is not {shown}. Say how it is written with text_encoding= "
        "(--encoding), such as cp1252 (Windows), latin-1 or utf-16."
    )


def shortened(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= 60 else text[:57] + "..."


# --------------------------------------------------------------------------------------------------
# pyarrow's parser of delimited text, and the types that it finds in the first rows.


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
    convert = pyarrow.csv.ConvertOptions(
        null_values=missing,
        strings_can_be_null=True,
        column_types=types,
        include_columns=None if types is None else list(types),
        decimal_point=layout.decimal,
    )
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
        convert_options=convert,
    )


def row_too_long(name: str, layout: Layout) -> BadRowsError:
    """Explain that a row is longer than the text that is parsed at once."""
    sizes = (
        (sum(len(cell.encode()) for cell in row), line)
        for line, row in numbered_lines(name, layout)
    )
    size, line = max(sizes)
    most = block_bytes(layout)
    return BadRowsError(
        f"{name}, line {line}: the row has {format_bytes(size)}, and one of delimited text may "
        f"have {format_bytes(most)} at most. Shorten its texts, leave such a column out of the "
        "file, or write the table as Parquet or JSON lines, whose rows may be longer."
    )


def first_types(path: str, layout: Layout) -> tuple[Any, dict[str, tuple[str, ...]]]:
    """Types of the columns by their first rows, and remarks on numbers that look like text."""
    with (
        open_text(path) as file,
        open_reader(file, layout, None, MISSING_TEXTS) as reader,
    ):
        first = reader.read_next_batch()
    commas: dict[str, tuple[str, ...]] = {}
    if layout.delimiter != ",":
        texts = [field.name for field in first.schema if content_of(field.type) == "text"]
        commas = {name: with_commas(path, name, first.column(name)) for name in texts}
    return first.schema, commas


# --------------------------------------------------------------------------------------------------


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
