"""What people see of a row: a picture, text, or its values."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.errors import ParameterError
from biglp._pages.report.pictures import LOOKED_AT
from biglp._pages.report.pictures import Pictures as SquarePictures
from biglp._pages.report.png import png
from biglp._rows import Source

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif")
"""Pictures that a browser shows and that hold no script, as SVG may."""


@dataclass(frozen=True)
class Shape:
    """Size of pictures whose pixels are the features.

    Attributes
    ----------
    height, width, channels : int
    planar : bool
        Whether colours come one after the other, and not pixel by pixel.
    """

    height: int
    width: int
    channels: int
    planar: bool = False

    @classmethod
    def parse(cls, text: str, n_features: int) -> Shape:
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
    def recognised(cls, source: Source) -> Shape | None:
        """The shape of square pictures, where the rows look like such; None where they do not."""
        some = source.read(0, min(source.n_rows, LOOKED_AT))
        rows = some.toarray() if sparse.issparse(some) else np.asarray(some)
        found = SquarePictures.of(rows)
        if found is None:
            return None
        planar = found.planar and found.channels > 1
        return cls(found.side, found.side, found.channels, planar)

    def facts(self) -> dict[str, int]:
        """The size, for the page."""
        return {"height": self.height, "width": self.width, "channels": self.channels}


def pixels(row: Any, shape: Shape) -> bytes:
    """A PNG file of a row of pixels.

    Values up to 1 are shares of full brightness, others are bytes; of values that can be neither
    the smallest is black and the largest white.
    """
    values = row.toarray() if sparse.issparse(row) else np.asarray(row)
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
