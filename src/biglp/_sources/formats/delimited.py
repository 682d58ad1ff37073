"""CSV and other delimited text: header or none, quoted fields, missing values, any usual delimiter.

Text cannot be read from the middle, so these files are streamed once into a block cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from biglp._core.errors import BadRowsError
from biglp._core.files import FileStamp
from biglp._sources.formats.base import LabelColumns
from biglp._sources.formats.lines import append_lines
from biglp._sources.formats.textfiles import (
    MISSING_TEXTS,
    guess_rows,
    is_number_text,
    look_at,
    numbered_lines,
)
from biglp._sources.labels.codes import LabelCodes
from biglp._sources.options import ReadOptions
from biglp._sources.tables.arrow_columns import content_of
from biglp._sources.tables.encoding import Encoding
from biglp._sources.tables.format import TableFormat
from biglp._sources.tables.table import MixedColumnError, TableFile, check_names

BLOCK_BYTES = 1 << 20
"""Text that is parsed at once; pyarrow holds some 35 such pieces, whatever it is asked."""
TRUTH_TEXTS = ("true", "false", "1", "0")


class DelimitedTable(TableFile):
    """One delimited text file.

    Parameters
    ----------
    path : path
    options : ReadOptions
        Delimiter, header, and the encoding that says which columns are text, if one is known.
    like : TableFile, optional
        First file of the same table, whose columns this one has.
    """

    kind = "CSV"
    part_word = "line"
    slow = True
    typed = False

    def __init__(self, path: str, options: ReadOptions, like: TableFile | None = None) -> None:
        self.name = path
        self.stamp = FileStamp.of(path)
        self._layout = look_at(self.name, options.delimiter, options.header)
        check_names(pa.schema([(name, pa.null()) for name in self._layout.names]), self.name)
        self.part_rows = []
        self.n_rows_guess = guess_rows(self.name, self.stamp.size)
        if like is not None and set(like.schema.names) >= set(self._layout.names):
            self.schema = pa.schema([like.schema.field(name) for name in self._layout.names])
        else:
            self.schema = self._find_types(options.encoding)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Parse these columns from the first line to the last."""
        types = {name: self.schema.field(name).type for name in columns}
        try:
            with self._reader(types) as reader:
                yield from reader
        except pa.ArrowException as error:
            raise self._explained(error, types) from error

    def text_example(self, column: str) -> str:
        """Name the first entry of a column that is not a number, and its line."""
        place, skip = self._layout.names.index(column), self._layout.header
        for line, row in numbered_lines(self.name, self._layout.delimiter):
            cell = row[place].strip() if place < len(row) else ""
            if not skip and cell not in MISSING_TEXTS and not is_number_text(cell):
                return f", such as {_shortened(cell)!r} in line {line}"
            skip = False
        return ""

    def read_as_text(self, column: str) -> None:
        """Read a column as it is written from now on."""
        place = self.schema.get_field_index(column)
        self.schema = self.schema.set(place, pa.field(column, pa.string()))

    def _find_types(self, encoding: Encoding | None) -> Any:
        """Numbers are float64, dates and times what they are; everything else is text.

        A whole column is numbers or text, whatever its first rows look like: a text further down
        in a number column is an error that names the line.
        """
        try:
            with self._reader(None) as reader:
                first = reader.read_next_batch()
        except StopIteration:
            raise BadRowsError(f"{self.name} has column names but no rows.") from None
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error, {}) from error
        fields = []
        for field in first.schema:
            kind = pa.string()
            content = content_of(field.type)
            if pa.types.is_boolean(field.type) or content == "time":
                kind = field.type
            elif content in ("number", "nothing"):
                kind = pa.float64()
            column = encoding.column(field.name) if encoding is not None else None
            if column is not None:
                kind = column.read_as(kind)
            fields.append((field.name, kind))
        return pa.schema(fields)

    def _reader(self, types: dict[str, Any] | None) -> Any:
        layout = self._layout
        convert = pyarrow.csv.ConvertOptions(
            null_values=MISSING_TEXTS,
            strings_can_be_null=True,
            column_types=types,
            include_columns=None if types is None else list(types),
        )
        return pyarrow.csv.open_csv(
            self.name,
            read_options=pyarrow.csv.ReadOptions(
                block_size=max(BLOCK_BYTES, 64 * len(layout.names)),  # a line must fit
                column_names=list(layout.names),
                skip_rows=0,
                skip_rows_after_names=int(layout.header),
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=layout.delimiter,
                # In a table of one column an empty line is a missing value, not a line to skip.
                ignore_empty_lines=len(layout.names) > 1,
            ),
            convert_options=convert,
        )

    def _explained(self, error: Exception, types: dict[str, Any]) -> BadRowsError:
        """Find the line that the parser could not read, and say what is wrong there."""
        width = len(self._layout.names)
        numbers = [
            (self._layout.names.index(name), name)
            for name, kind in types.items()
            if content_of(kind) != "text"
        ]
        skip = self._layout.header
        for line, row in numbered_lines(self.name, self._layout.delimiter):
            if skip:
                skip = False
                continue
            if len(row) != width:
                return BadRowsError(
                    f"{self.name}, line {line}: {len(row)} fields where there should be {width} "
                    f"({_shortened(self._layout.delimiter.join(row))!r}). "
                    "Repair or delete that line."
                )
            for index, name in numbers:
                cell = row[index].strip()
                wanted = _wanted(types[name])
                if cell not in MISSING_TEXTS and not _fits(cell, types[name]):
                    return MixedColumnError(
                        f"{self.name}, line {line}: {_shortened(cell)!r} in column {name!r} is not "
                        f"{wanted}, as the first rows of that column are. Repair that line, or "
                        "leave the column out (drop=, --drop).",
                        name,
                    )
        return self.unreadable(error)


class DelimitedFormat(TableFormat):
    """Delimited text; a file of one column may also be labels, one a line."""

    name = DelimitedTable.kind
    table = DelimitedTable

    def read_labels(self, codes: LabelCodes, files: Sequence[str], columns: LabelColumns) -> None:
        """Append a column of labels, or the lines of a file that has one column."""
        if columns.label is None and len(look_at(files[0]).names) == 1:
            append_lines(codes, files[0])
        else:
            super().read_labels(codes, files, columns)


def _wanted(kind: Any) -> str:
    if content_of(kind) == "time":
        return "a date or a time"
    return "true or false" if kind == pa.bool_() else "a number"


def _fits(cell: str, kind: Any) -> bool:
    """Whether the parser reads an entry as this type."""
    if content_of(kind) != "time":
        return cell.lower() in TRUTH_TEXTS if kind == pa.bool_() else is_number_text(cell)
    try:
        pa.scalar(cell).cast(kind)
    except pa.ArrowException:
        return False
    return True


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


DELIMITED = DelimitedFormat()
