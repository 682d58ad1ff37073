"""JSON lines: an object a line, whose fields are columns; arrays of numbers are embeddings.

Text cannot be read from the middle, so these files are streamed once into a block cache.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp
from biglp._rows.options import ReadOptions
from biglp._rows.textfiles import LONGEST_LINE, guess_rows, line_too_long, open_text
from biglp._tables.kinds import content_of
from biglp._tables.source import TableFormat
from biglp._tables.table import TableFile, check_names, pieces, shortened, with_text

PIECE_BYTES = 4 << 20
"""Text that is parsed at once."""
MOST_LEVELS = 100
"""Lists within lists, or objects within objects."""


class JsonLinesTable(TableFile):
    """One file of JSON lines, with the columns of ``like``, the first file of the same table.

    Columns are the fields of the first piece of text; a field that a line lacks is missing there.
    """

    kind = "JSONL"
    part_word = "line"
    slow = True
    typed = False
    stamp: FileStamp
    _first_schema: Any

    def __init__(self, path: str, options: ReadOptions, like: TableFile | None = None) -> None:
        self.name = path
        self.stamp = FileStamp.of(path)
        self.part_rows = []
        self.n_rows_guess = guess_rows(path, self.stamp.size)
        if isinstance(like, JsonLinesTable):
            self._first_schema, self.schema = like._first_schema, like.schema
            return
        first = next(self._texts(), (1, b""))
        if not first[1].strip():
            raise BadRowsError(f"{path} is empty; a table needs at least one row.")
        _check_depth(first, path)
        try:
            table = self._parse(first, None)
        except BadRowsError:
            # A field of several kinds has the first one until it is read, so that it can be left
            # out; where it is not, it is refused.
            alike = _of_first_kinds(first[1])
            if alike is None:
                raise
            table = self._parse((first[0], alike), None)
        self._first_schema = check_names(table.schema, path)
        self.schema = pa.schema(
            [(field.name, _general(field.type)) for field in self._first_schema]
        )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Parse these fields from the first line to the last."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for text in self._texts():
            if text[1].strip():
                yield from pieces(self._parse(text, schema).select(list(columns)))

    def as_written(self, *columns: str, keep_all: bool = False) -> JsonLinesTable:
        """Fields with the types they have at the beginning of the file, integers as such."""
        table = copy.copy(self)
        for column in columns:
            index = self.schema.get_field_index(column)
            table.schema = table.schema.set(index, self._first_schema.field(column))
        return table

    def _texts(self) -> Iterator[tuple[int, bytes]]:
        """Pieces of whole lines, and the number of the first line of each."""
        line, rest = 1, b""
        try:
            with open_text(self.name) as file:
                while piece := file.read(PIECE_BYTES):
                    whole, end, after = piece.rpartition(b"\n")
                    if not end:  # a line that is longer than a piece
                        rest += piece
                        if len(rest) > LONGEST_LINE:
                            raise line_too_long(self.name, line)
                        continue
                    yield line, rest + whole + end
                    line += rest.count(b"\n") + whole.count(b"\n") + 1
                    rest = after
        except (OSError, EOFError) as error:
            raise self.unreadable(error) from error
        if rest:
            yield line, rest

    def _parse(self, text: tuple[int, bytes], schema: Any) -> Any:
        """Parse lines; without a schema the types are found."""
        others = "infer" if schema is None else "ignore"
        try:
            if text[1].lstrip().startswith(b"null"):  # which would end the process in pyarrow 26
                raise pa.ArrowInvalid("null is no object")
            table = pyarrow.json.read_json(
                pa.BufferReader(text[1]),
                read_options=pyarrow.json.ReadOptions(
                    use_threads=False, block_size=len(text[1]) + 1
                ),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior=others
                ),
            )
            return with_text(table)
        except pa.ArrowException as error:
            raise self._explained(error, text, schema) from error

    def _explained(self, error: Exception, text: tuple[int, bytes], schema: Any) -> BadRowsError:
        """Find the line that cannot be read, and say what is wrong there."""
        kinds: dict[str, str | None]
        kinds = {} if schema is None else {field.name: _called(field.type) for field in schema}
        for number, line in enumerate(text[1].splitlines(), text[0]):
            shown = shortened(line.decode("utf-8", errors="replace"))
            try:
                record = json.loads(line) if line.strip() else {}
            except ValueError as reason:
                return BadRowsError(
                    f"{self.name}, line {number}: {shown!r} is not JSON ({reason}). "
                    "Every line must be one object; repair or delete that line."
                )
            if not isinstance(record, dict):
                return BadRowsError(
                    f"{self.name}, line {number}: {shown!r} is not an object with "
                    'named fields, such as {"x": 1.5, "y": "a"}; give each value a name.'
                )
            for name, value in record.items():
                kind = _kind(value)
                if schema is None:
                    kinds.setdefault(name, kind)
                if kind is not None and kinds.get(name) not in (kind, None):
                    return BadRowsError(
                        f"{self.name}, line {number}: {shortened(json.dumps(value))} "
                        f"in field {name!r} is {kind}, and the first lines of that field are "
                        f"{kinds[name]}. Repair that line, or leave the field out (drop=, --drop)."
                    )
        return self.unreadable(error)


def _check_depth(text: tuple[int, bytes], path: str) -> None:
    """Refuse values that are nested without end: finding their types would end the process."""
    for number, line in enumerate(text[1].split(b"\n"), text[0]):
        opened = line.count(b"[") + line.count(b"{")
        if opened <= MOST_LEVELS:
            continue
        marks = np.frombuffer(re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line), dtype=np.uint8)
        steps = np.isin(marks, (91, 123)).astype(np.int32) - np.isin(marks, (93, 125))
        if np.cumsum(steps).max(initial=0) > MOST_LEVELS:
            raise BadRowsError(
                f"{path}, line {number}: values are nested more than {MOST_LEVELS} levels deep. "
                "Fields must be numbers, text, or lists of numbers; repair or delete that line."
            )


def _of_first_kinds(text: bytes) -> bytes | None:
    """Lines without the values that are of another kind than the first of their field.

    None where a line is no object, or there are no such values.
    """
    kinds: dict[str, str] = {}
    lines, changed = [], False
    for line in text.splitlines():
        try:
            record = json.loads(line) if line.strip() else {}
        except ValueError:
            return None
        if not isinstance(record, dict):
            return None
        for name, value in record.items():
            kind = _kind(value)
            if kind is not None and kinds.setdefault(name, kind) != kind:
                record[name], changed = None, True
        lines.append(json.dumps(record).encode())
    return b"\n".join(lines) if changed else None


def _general(kind: Any) -> Any:
    """Type of a field whose further values may be fractions, though the first are not."""
    if pa.types.is_list(kind):
        return pa.list_(_general(kind.value_type))
    if pa.types.is_boolean(kind):
        return kind
    return pa.float64() if content_of(kind) in ("number", "nothing") else kind


def _kind(value: Any) -> str | None:
    """What a JSON value is called; None for null."""
    if isinstance(value, list):
        inner = {_kind(item) for item in value} - {None}
        return f"lists of {inner.pop()}" if len(inner) == 1 else "lists"
    names = {bool: "true or false", int: "numbers", float: "numbers", str: "text", dict: "objects"}
    return names.get(type(value))


def _called(kind: Any) -> str:
    """What the values of a type are called."""
    if pa.types.is_list(kind):
        return f"lists of {_called(kind.value_type)}"
    if pa.types.is_boolean(kind):
        return "true or false"
    return {"number": "numbers", "text": "text"}.get(content_of(kind), "objects")


JSON_LINES = TableFormat(JsonLinesTable)
