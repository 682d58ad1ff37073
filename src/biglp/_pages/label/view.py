"""From a row number to what is shown of it: columns of its table, features, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.errors import ParameterError
from biglp._labels.reading import LabelInput
from biglp._pages.label.content import Pictures, Shape, image_type, pixels, readable
from biglp._rows import Source

FIRST_ROWS = 100
"""First rows of a table, by which columns are recognised."""
TEXT_LETTERS, TEXT_WORDS = 40, 5
"""A column whose entries have so many letters and words on average is text to read."""
MOST_VALUES = 40
ENTRY_BYTES = 200
"""What Python takes to find a row's columns."""
SHORT = 200
"""Letters of a text that is shown beside another row."""


@dataclass
class View:
    """What is shown of rows.

    Attributes
    ----------
    source : Source
    beside : LabelInput
        Says where columns and IDs are.
    kind : {"image", "text", "table"}
    shape : Shape or None
    pictures : Pictures or None
    texts, show, columns : tuples of str
        Columns that are read, that are shown beside, and whose values are shown.
    row_bytes : float
        What the columns of a row take in memory.
    """

    source: Source
    beside: LabelInput
    kind: str
    shape: Shape | None = None
    pictures: Pictures | None = None
    texts: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_bytes: float = 0.0
    _held: Any = field(default=None, repr=False)
    _places: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def id_column(self) -> str | None:
        """Column of the rows' IDs."""
        return self.beside.id_column

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns that are looked at."""
        found = [self.id_column, *self.texts, *self.show, *self.columns]
        found.append(None if self.pictures is None else self.pictures.column)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def hold(self, rows: np.ndarray) -> None:
        """Keep the columns of some rows in memory."""
        if self.wanted:
            self._held = self.beside.beside.table(self.wanted, rows)
            self._places = dict(zip(rows.tolist(), range(len(rows)), strict=True))

    def entries(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Columns of rows, by name."""
        if not self.wanted:
            return [{} for _ in rows]
        if all(row in self._places for row in rows):
            return self._held.take([self._places[row] for row in rows]).to_pylist()
        return self.beside.beside.table(self.wanted, np.asarray(rows)).to_pylist()

    def keys(self, rows: Sequence[int]) -> list[str]:
        """What a file of labels calls rows: their IDs, or their numbers."""
        if self.id_column is None or not rows:
            return [str(row) for row in rows]
        return [str(entry[self.id_column]) for entry in self.entries(rows)]

    def content(self, row: int, entry: dict[str, Any], most: int | None = None) -> dict[str, Any]:
        """What is shown large."""
        if self.pictures is not None and self.pictures.file(entry[self.pictures.column]) is None:
            return {"kind": "text", "text": "(no picture)"}
        if self.kind == "image":
            return {"kind": "image", "src": f"/api/image/{row}"}
        if self.kind == "text":
            text = "\n\n".join(readable(entry[name]) for name in self.texts)
            return {"kind": "text", "text": text if most is None else text[:most]}
        return {"kind": "table"}

    def image(self, row: int) -> tuple[bytes | Path, str] | None:
        """A picture of a row: its bytes or its file, and its media type."""
        if self.pictures is not None:
            path = self.pictures.file(self.entries([row])[0][self.pictures.column])
            return None if path is None else (path, image_type(path))
        if self.shape is None:
            return None
        return pixels(self.source.read(row, row + 1), self.shape), "image/png"

    def values(self, row: int, entry: dict[str, Any]) -> list[tuple[str, Any]]:
        """Names and values of a row; those of a table, or its first features."""
        if self.columns:
            return [(name, entry[name]) for name in self.columns]
        if self.kind != "table":
            return []
        read = self.source.read(row, row + 1)
        numbers = read.toarray()[0] if sparse.issparse(read) else np.asarray(read)[0]
        return list(zip(self.feature_names, numbers[:MOST_VALUES].tolist(), strict=True))

    @property
    def feature_names(self) -> list[str]:
        """Names of the first features."""
        n = min(self.source.n_features, MOST_VALUES)
        names = self.source.feature_names
        return list(names[:n]) if names else [f"feature {place}" for place in range(n)]

    def numbers(self, pool: Source) -> tuple[list[str], np.ndarray]:
        """Columns of numbers of the pool's rows, for the means of classes.  (p, q), NaN allowed."""
        if self.kind != "table":
            return [], np.empty((0, 0))
        if not self.columns:
            parts = pool.read(0, pool.n_rows)[:, : len(self.feature_names)]
            dense = parts.toarray() if sparse.issparse(parts) else np.asarray(parts)
            return self.feature_names, dense.astype(np.float32)
        names, found = [], []
        for name in self.columns:
            numbers = _as_numbers(self._held.column(name))
            if numbers is not None:
                names.append(name)
                found.append(numbers)
        empty = np.empty((self._held.num_rows, 0), np.float32)
        return names, np.column_stack(found) if found else empty


def make_view(
    source: Source,
    beside: LabelInput,
    *,
    show: Sequence[str] = (),
    images: Path | None = None,
    shape: str | None = None,
) -> View:
    """Find out what rows look like.

    Raises
    ------
    ParameterError
        When an option names what is not there.
    """
    if beside.table_files is None:
        if show or images is not None:
            option = "show" if show else "images"
            given = show[0] if show else str(images)
            raise ParameterError(
                f"{option}={given!r} means nothing for rows without named columns; "
                "leave it out, or give a table beside the rows (--metadata FILE)."
            )
        found = Shape.parse(shape, source.n_features) if shape else Shape.recognised(source)
        return View(source, beside, "table" if found is None else "image", found)
    table = beside.beside
    table.check("show", *show)
    not_shown = {beside.id_column, beside.label_column, beside.weight_column}
    names = [name for name in table.names if name not in not_shown]
    some = table.table(names, np.arange(min(source.n_rows, FIRST_ROWS)))
    texts = tuple(beside.reading.get("text") or _text_columns(some))
    columns = tuple(name for name in names if name not in texts)[:MOST_VALUES]
    view = View(source, beside, "text", texts=texts, show=tuple(show), columns=columns)
    view.row_bytes = ENTRY_BYTES + some.nbytes / max(some.num_rows, 1)
    if images is not None:
        found_in = Pictures.find(images, some.to_pydict())
        columns = tuple(name for name in columns if name != found_in.column)
        return replace(view, kind="image", pictures=found_in, columns=columns)
    if shape is not None or beside.metadata is not None:
        found = Shape.parse(shape, source.n_features) if shape else Shape.recognised(source)
        if found is not None:
            return replace(view, kind="image", shape=found, columns=())
    return view if texts else replace(view, kind="table")


def _text_columns(some: Any) -> list[str]:
    """Columns of sentences."""
    found = []
    for name in some.column_names:
        values = [value for value in some.column(name).to_pylist() if isinstance(value, str)]
        if not values:
            continue
        letters = sum(map(len, values)) / len(values)
        words = sum(len(value.split()) for value in values) / len(values)
        if letters >= TEXT_LETTERS and words >= TEXT_WORDS:
            found.append(name)
    return found


def _as_numbers(column: Any) -> np.ndarray | None:
    """A column as numbers, NaN where there is none; None where it holds something else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        trimmed = pc.utf8_trim_whitespace(column)
        trimmed = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
        try:
            column = pc.cast(trimmed, pa.float64())
        except pa.ArrowInvalid:
            return None
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    numbers = pc.cast(column, pa.float64())
    if numbers.null_count == len(numbers):
        return None
    return numbers.to_numpy().astype(np.float32)
