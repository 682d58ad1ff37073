"""pyarrow's parser of delimited text, and the types that it finds in the first rows."""

from __future__ import annotations

from typing import Any

import pyarrow.csv

from biglp._core.errors import BadRowsError
from biglp._core.memory import format_bytes
from biglp._rows.textfiles import PLAIN, Layout, numbered_lines, open_text
from biglp._rows.written_numbers import MISSING_TEXTS
from biglp._sources.formats.textproblems import with_commas
from biglp._sources.tables.arrow_columns import content_of

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
