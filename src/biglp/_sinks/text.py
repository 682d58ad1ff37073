"""Answers as text: CSV, or JSON with a row a line; packed where the name ends in ``.gz``."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from biglp._sinks.table import TableSink, class_columns


class TextSink(TableSink):
    """What both have in common: packing."""

    @contextmanager
    def _packed(self, file: Any) -> Iterator[Any]:
        if self.path.suffix.lower() != ".gz":
            yield file
            return
        # No time and no name in it: the same answers are the same bytes.
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            yield packed


class CsvSink(TextSink):
    """Answers as a CSV file with a line of names."""

    @contextmanager
    def _writer(self, file: Any, schema: Any) -> Iterator[Any]:
        with self._packed(file) as out:
            names = io.StringIO()
            csv.writer(names, lineterminator="\n").writerow(schema.names)
            out.write(names.getvalue().encode())
            options = pyarrow.csv.WriteOptions(
                include_header=False,
                quoting_style="needed" if self._needs_quotes(schema) else "none",
            )
            with pyarrow.csv.CSVWriter(out, schema, write_options=options) as writer:
                yield writer

    def _needs_quotes(self, schema: Any) -> bool:
        """Whether text may hold what means something in CSV; "needed" quotes every text."""
        known = class_columns(schema)
        others = [field for field in schema if field.name not in known]
        if any(not pa.types.is_primitive(field.type) for field in others):
            return True
        marks = set(',"\r\n')
        return any(marks & set(str(name)) for name in self.classes.tolist())


class JsonLinesSink(TextSink):
    """Answers as one JSON object a line."""

    @contextmanager
    def _writer(self, file: Any, schema: Any) -> Iterator[Any]:
        with self._packed(file) as out:
            yield _JsonLinesWriter(out)


class _JsonLinesWriter:
    """Writes Arrow tables column by column, which is many times faster than row by row."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write_table(self, table: Any) -> None:
        """Append rows."""
        parts: list[Any] = []
        for name, column in zip(table.column_names, table.columns, strict=True):
            key = json.dumps(name, ensure_ascii=False)
            parts += [f"{', ' if parts else '{'}{key}: ", _json_texts(column)]
        lines = pc.binary_join_element_wise(*parts, "}\n", "")
        self._file.write("".join(lines.to_pylist()).encode())


def _json_texts(column: Any) -> Any:
    """Values of a column as JSON writes them."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string()).fill_null("null")
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices).fill_null("null")
