"""From a row number to what is shown of it: columns of its table, features, a picture."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.arrays import to_dense
from biglp._core.errors import ParameterError
from biglp._labels.reading import LabelInput
from biglp._report.charts import LOOKED_AT, Pictures, png
from biglp._rows import Source

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif")
"""Pictures that a browser shows and that hold no script, as SVG may."""


@dataclass(frozen=True)
class ImageShape:
    """Size of pictures whose pixels are the features.

    ``planar``: colours come one after the other, and not pixel by pixel.
    """

    height: int
    width: int
    channels: int
    planar: bool = False

    @classmethod
    def parse(cls, text: str, n_features: int) -> ImageShape:
        """Read ``28x28``, ``28x28x3`` or ``3x28x28``."""
        try:
            numbers = [int(part) for part in text.lower().split("x")]
        except ValueError:
            numbers = []
        planar = len(numbers) == 3 and numbers[0] == 3 != numbers[2]
        numbers = numbers[1:] + numbers[:1] if planar else numbers
        height, width, channels = (*numbers, 1) if len(numbers) == 2 else (*numbers, 0, 0, 0)[:3]
        if len(numbers) not in (2, 3) or channels not in (1, 3) or min(numbers) < 1:
            raise ParameterError(
                f"shape={text!r} is no shape of a picture; give HEIGHTxWIDTH, HEIGHTxWIDTHx3 or "
                "3xHEIGHTxWIDTH, such as 28x28."
            )
        if height * width * channels != n_features:
            raise ParameterError(
                f"shape={text!r} has {height * width * channels:,} pixels, but rows have "
                f"{n_features:,} features; give a shape of as many."
            )
        return cls(height, width, channels, planar)

    @classmethod
    def recognised(cls, source: Source) -> ImageShape | None:
        """The shape of square pictures, where the rows look like such; None where they do not."""
        some = source.read(0, min(source.n_rows, LOOKED_AT))
        square = Pictures.from_rows(to_dense(some))
        if square is None:
            return None
        planar = square.planar and square.channels > 1
        return cls(square.side, square.side, square.channels, planar)

    def facts(self) -> dict[str, int]:
        """The size, for the page."""
        return {"height": self.height, "width": self.width, "channels": self.channels}


def pixel_image(row: Any, shape: ImageShape) -> bytes:
    """A PNG file of a row of pixels.

    Values up to 1 are shares of full brightness, others are bytes; of values that can be neither
    the smallest is black and the largest white.
    """
    values = to_dense(row)
    values = np.nan_to_num(values.reshape(-1).astype(np.float64))
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    scale = 255.0 if high <= 1.0 else 1.0
    if low < 0 or high > 255:
        values, scale = values - low, 255.0 / (high - low)
    image = np.clip(np.rint(values * scale), 0, 255)
    if shape.planar:
        planes = image.reshape(shape.channels, shape.height, shape.width)
        return png(np.moveaxis(planes, 0, 2))
    return png(image.reshape(shape.height, shape.width, shape.channels))


@dataclass(frozen=True)
class PictureFiles:
    """Files of pictures below one folder, whose paths are in a column."""

    folder: Path  # resolved: what is not below it is not shown, wherever a link leads
    column: str

    @classmethod
    def find(cls, folder: Path, some: dict[str, Sequence[Any]]) -> PictureFiles:
        """Find the column that holds paths below a folder, by its first values."""
        if not folder.is_dir():
            raise ParameterError(
                f"images={str(folder)!r} is no folder; give the one that the paths in a column "
                "begin at."
            )
        root = folder.resolve()
        for name, values in some.items():
            if any(cls(root, name).file(value) is not None for value in values):
                return cls(root, name)
        raise ParameterError(
            f"images={str(folder)!r}: no column holds paths of pictures below this folder (looked "
            f"at {', '.join(some) or 'none'}); paths are relative to the folder, and pictures are "
            "PNG, JPEG, GIF, WebP, BMP or AVIF."
        )

    def file(self, value: Any) -> Path | None:
        """The file of a path, where it is a picture below the folder."""
        if not isinstance(value, str) or not value or "\0" in value:
            return None
        try:
            path = (self.folder / value).resolve()
            inside = path.is_relative_to(self.folder) and path.is_file()
        except OSError:
            return None
        return path if inside and image_type(path) in IMAGE_TYPES else None


def image_type(path: Path) -> str:
    """The media type that a file's ending says."""
    if path.suffix.lower() == ".avif":
        return "image/avif"
    return mimetypes.guess_type(path.name)[0] or ""


def readable(value: Any) -> str:
    """A value as people want to read it."""
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.4g}"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return str(value)


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
    """What is shown of rows: of a ``kind``, "image", "text" or "table".

    ``label_input`` says where columns and IDs are; ``texts`` are read, ``show`` is shown beside, of
    ``columns`` the values are shown, and ``row_bytes`` is what these take in memory.
    """

    source: Source
    label_input: LabelInput
    kind: str
    shape: ImageShape | None = None
    pictures: PictureFiles | None = None
    texts: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_bytes: float = 0.0
    _stored: Any = field(default=None, repr=False)
    _positions: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def id_column(self) -> str | None:
        """Column of the rows' IDs."""
        return self.label_input.id_column

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns that are looked at."""
        names = [self.id_column, *self.texts, *self.show, *self.columns]
        names.append(None if self.pictures is None else self.pictures.column)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def hold(self, rows: np.ndarray) -> None:
        """Keep the columns of some rows in memory."""
        if self.wanted:
            self._stored = self.label_input.side_table.table(self.wanted, rows)
            self._positions = dict(zip(rows.tolist(), range(len(rows)), strict=True))

    def entries(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Columns of rows, by name."""
        if not self.wanted:
            return [{} for _ in rows]
        if all(row in self._positions for row in rows):
            return self._stored.take([self._positions[row] for row in rows]).to_pylist()
        return self.label_input.side_table.table(self.wanted, np.asarray(rows)).to_pylist()

    def keys(self, rows: Sequence[int]) -> list[str]:
        """What a file of labels calls rows: their IDs, or their numbers."""
        if self.id_column is None or not rows:
            return [str(row) for row in rows]
        return [str(entry[self.id_column]) for entry in self.entries(rows)]

    def rows_of_ids(self, ids: Sequence[str]) -> dict[str, list[int]]:
        """Rows of some IDs, in one pass over the column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.label_input.ids
        assert column is not None
        rows: dict[str, list[int]] = {}
        wanted, start = pa.array(list(dict.fromkeys(ids)), pa.string()), 0
        for piece in column.pieces() if ids else ():
            texts = pc.cast(piece, pa.string())
            for index in np.flatnonzero(pc.is_in(texts, value_set=wanted).to_numpy(False)):
                rows.setdefault(texts[int(index)].as_py(), []).append(start + int(index))
            start += len(piece)
        return rows

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
        return pixel_image(self.source.read(row, row + 1), self.shape), "image/png"

    def values(self, row: int, entry: dict[str, Any]) -> list[tuple[str, Any]]:
        """Names and values of a row; those of a table, or its first features."""
        if self.columns:
            return [(name, entry[name]) for name in self.columns]
        if self.kind != "table":
            return []
        numbers = to_dense(self.source.read(row, row + 1))[0]
        return list(zip(self.feature_names, numbers[:MOST_VALUES].tolist(), strict=True))

    @property
    def feature_names(self) -> list[str]:
        """Names of the first features."""
        n = min(self.source.n_features, MOST_VALUES)
        names = self.source.feature_names
        return list(names[:n]) if names else [f"feature {number}" for number in range(n)]

    def numbers(self, pool: Source) -> tuple[list[str], np.ndarray]:
        """Columns of numbers of the pool's rows, for the means of classes.  (p, q), NaN allowed."""
        if self.kind != "table":
            return [], np.empty((0, 0))
        if not self.columns:
            parts = pool.read(0, pool.n_rows)[:, : len(self.feature_names)]
            return self.feature_names, to_dense(parts).astype(np.float32)
        columns = {name: _as_numbers(self._stored.column(name)) for name in self.columns}
        numeric = {name: column for name, column in columns.items() if column is not None}
        empty = np.empty((self._stored.num_rows, 0), np.float32)
        return list(numeric), np.column_stack([*numeric.values()]) if numeric else empty


def make_view(
    source: Source,
    label_input: LabelInput,
    *,
    show: Sequence[str] = (),
    images: Path | None = None,
    shape: str | None = None,
) -> View:
    """Find out what rows look like."""

    def image_shape() -> ImageShape | None:
        return (
            ImageShape.parse(shape, source.n_features) if shape else ImageShape.recognised(source)
        )

    if label_input.table_files is None:
        if show or images is not None:
            option = "show" if show else "images"
            given = show[0] if show else str(images)
            raise ParameterError(
                f"{option}={given!r} means nothing for rows without named columns; "
                "leave it out, or give a table beside the rows (--metadata FILE)."
            )
        pixels = image_shape()
        return View(source, label_input, "table" if pixels is None else "image", pixels)
    table = label_input.side_table
    table.check("show", *show)
    not_shown = {label_input.label_column, label_input.weight_column}
    listed = [name for name in table.names if name not in not_shown]
    some = table.table(listed, np.arange(min(source.n_rows, FIRST_ROWS)))
    pictures = None  # their paths may be the IDs
    if images is not None:
        pictures = PictureFiles.find(images, some.to_pydict())
    names = [name for name in listed if name != label_input.id_column]
    some = some.select(names)
    texts = tuple(label_input.reading.get("text") or _text_columns(some))
    columns = tuple(name for name in names if name not in texts)[:MOST_VALUES]
    view = View(source, label_input, "text", texts=texts, show=tuple(show), columns=columns)
    view.row_bytes = ENTRY_BYTES + some.nbytes / max(some.num_rows, 1)
    if pictures is not None:
        columns = tuple(name for name in columns if name != pictures.column)
        return replace(view, kind="image", pictures=pictures, columns=columns)
    if shape is not None or label_input.metadata is not None:
        pixels = image_shape()
        if pixels is not None:
            return replace(view, kind="image", shape=pixels, columns=())
    return view if texts else replace(view, kind="table")


def _text_columns(some: Any) -> list[str]:
    """Columns of sentences."""
    columns = []
    for name in some.column_names:
        values = [value for value in some.column(name).to_pylist() if isinstance(value, str)]
        letters, words = sum(map(len, values)), sum(len(value.split()) for value in values)
        if values and letters >= TEXT_LETTERS * len(values) and words >= TEXT_WORDS * len(values):
            columns.append(name)
    return columns


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
