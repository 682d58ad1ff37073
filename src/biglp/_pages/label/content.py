"""What people see of a row: a picture, text, or its values."""

from __future__ import annotations

import mimetypes
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.errors import ParameterError
from biglp._sources import Source

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif")
"""Pictures that a browser shows and that hold no script, as SVG may."""
LEAST_SIDE, MOST_SIDE = 8, 512


@dataclass(frozen=True)
class Shape:
    """Size of pictures whose pixels are the features."""

    height: int
    width: int
    channels: int

    @classmethod
    def parse(cls, text: str, n_features: int) -> Shape:
        """Read ``28x28`` or ``28x28x3``."""
        try:
            numbers = [int(part) for part in text.lower().split("x")]
        except ValueError:
            numbers = []
        height, width, channels = (*numbers, 1) if len(numbers) == 2 else (*numbers, 0, 0, 0)[:3]
        if len(numbers) not in (2, 3) or channels not in (1, 3) or min(numbers) < 1:
            raise ParameterError(
                f"shape={text!r} is no shape of a picture; give HEIGHTxWIDTH or HEIGHTxWIDTHx3, "
                "such as 28x28."
            )
        if height * width * channels != n_features:
            raise ParameterError(
                f"shape={text!r} has {height * width * channels:,} pixels, but rows have "
                f"{n_features:,} features; give a shape of as many."
            )
        return cls(height, width, channels)

    @classmethod
    def recognised(cls, source: Source) -> Shape | None:
        """The shape of square pictures, where the rows can be such; None where they cannot."""
        if source.feature_names is not None and source.encoding is not None:
            return None
        for channels in (1, 3):
            side = isqrt(source.n_features // channels)
            square = side * side * channels == source.n_features
            if square and LEAST_SIDE <= side <= MOST_SIDE and _like_pixels(source):
                return cls(side, side, channels)
        return None


def _like_pixels(source: Source) -> bool:
    """Whether values are whole numbers of a byte, or shares from 0 to 1, as pixels are."""
    some = source.read(0, min(source.n_rows, 100))
    values = some.data if sparse.issparse(some) else np.asarray(some)
    if not values.size or values.min() < 0 or values.max() > 255:
        return False
    return bool(values.max() <= 1.0 or (values == np.floor(values)).all())


def pixels(row: Any, shape: Shape) -> bytes:
    """A PNG file of a row of pixels.

    Values up to 1 are shares of full brightness; others are bytes.
    """
    values = row.toarray() if sparse.issparse(row) else np.asarray(row)
    values = np.nan_to_num(values.reshape(-1).astype(np.float64))
    scale = 255.0 if values.max(initial=0.0) <= 1.0 else 1.0
    if values.min(initial=0.0) < 0 or values.max(initial=0.0) > 255:  # scaled: what it spans
        low, high = values.min(), values.max()
        values, scale = values - low, 255.0 / max(high - low, 1e-12)
    image = np.clip(np.rint(values * scale), 0, 255).astype(np.uint8)
    return png(image.reshape(shape.height, shape.width * shape.channels), shape)


def png(lines: np.ndarray, shape: Shape) -> bytes:
    """Write pixels as PNG: a header, the lines (each after its filter, none), an end."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    colour = 0 if shape.channels == 1 else 2
    header = struct.pack(">IIBBBBB", shape.width, shape.height, 8, colour, 0, 0, 0)
    data = np.pad(lines, ((0, 0), (1, 0))).tobytes()
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(data, 6))
        + chunk(b"IEND", b"")
    )


@dataclass(frozen=True)
class Pictures:
    """Files of pictures below one folder.

    Attributes
    ----------
    folder : Path
        Resolved: what is not below it is not shown, wherever a link leads.
    column : str
        Column of their paths.
    """

    folder: Path
    column: str

    @classmethod
    def find(cls, folder: Path, some: dict[str, Sequence[Any]]) -> Pictures:
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
