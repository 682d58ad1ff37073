"""More images from few: small translations, rotations, scalings, shears and elastic fields.

A pixel at p of the new image is read at p + d(p) from the old one, with

    d(p) = t + (A - I)(p - c) + Σ_jk e_jk sin(πj y) sin(πk x),

t a translation, A a rotation, scaling and shear about the centre c, and e_jk an elastic field of
long waves. The whole field is one product of a row's coefficients with fixed functions of the
pixel. Both are whole numbers, small enough for float32 to add them up exactly in any order, and
the rest is integer arithmetic: row i has the same bits whatever block it is made in. Its random
numbers come from a counter-based generator (Philox) set to a counter that depends on i alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Philox
from scipy.special import ndtri

from biglp._core.errors import BadRowsError, LabelError, ParameterError
from biglp._core.progress import Progress
from biglp._files.local import atomic_write, npy_header

DEFAULT_SEED = 0
BLOCK_ROWS = 128
"""Images made at once: their fields and pixels stay in the processor's cache."""

# How much, at 28 × 28 pixels; chosen by eye, so that every digit stays the digit that it was.
SHIFT, TURN, STRETCH, SHEAR, BEND = 1.5, 0.2, 0.12, 0.12, 1.1
WAVES = 4

_STEPS = 1 << 13
"""Steps that a pixel is divided into."""
_FINE = 64
_AFFINE = 6
_COUNTS = 3
"""Steps of the generator's counter that a row takes: 48 random words of 16 bits, 38 are used."""
_LARGEST_SIDE = 512


def deform(
    images: Any,
    labels: Any,
    n_rows: int,
    seed: int,
    out_path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Grow a set of square images to ``n_rows`` rows and write them to a ``.npy`` file.

    The first rows are the images as they are, followed by deformed ones of all images in turn.

    Parameters
    ----------
    images : array of shape (n, side * side) or (n, side, side), uint8
    labels : array of shape (n,)
    n_rows : int
    seed : int
    out_path : path
        Name of the rows' file; ``x.npy`` goes with ``x.labels.npy``. Each appears whole or not at
        all.
    progress : Progress, optional

    Returns
    -------
    paths : dict of str to Path
        "rows" and "labels".

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from biglp import datasets
    >>> images = np.random.default_rng(0).integers(0, 255, (5, 64), dtype=np.uint8)
    >>> with TemporaryDirectory() as folder:
    ...     made = datasets.deform(images, np.arange(5), 12, 0, Path(folder, "more.npy"))
    ...     np.load(made["rows"]).shape
    (12, 64)
    """
    rows_path = Path(out_path)
    if rows_path.suffix != ".npy":
        raise ParameterError(f"out_path={os.fspath(out_path)!r} must end in .npy.")
    paths = {"rows": rows_path, "labels": rows_path.with_name(f"{rows_path.stem}.labels.npy")}
    pieces = deformed_pieces(images, labels, n_rows, seed)
    classes, width = np.asarray(labels), images[0].size
    with (
        atomic_write(paths["rows"]) as rows_file,
        atomic_write(paths["labels"]) as labels_file,
        (progress or Progress()).task(f"deforming to {rows_path}", n_rows) as task,
    ):
        rows_file.write(npy_header(np.dtype(np.uint8), (n_rows, width)))
        labels_file.write(npy_header(classes.dtype, (n_rows,)))
        for values, y in pieces:
            rows_file.write(values.data)
            labels_file.write(y.tobytes())
            task.advance(len(y))
    return paths


def deformed_pieces(
    images: Any, labels: Any, n_rows: int, seed: int, *, rows_a_piece: int = 4096
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all rows and their labels in pieces; the arguments are those of :func:`deform`."""
    classes = np.asarray(labels)
    if len(classes) != len(images):
        raise LabelError(f"there are {len(classes):,} labels for {len(images):,} images.")
    if n_rows < 1:
        raise ParameterError(f"n_rows={n_rows!r} must be 1 or more.")
    deformer = Deformer(images, seed)

    def made() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, n_rows, rows_a_piece):
            stop = min(start + rows_a_piece, n_rows)
            yield deformer.read(start, stop), classes[np.arange(start, stop) % len(classes)]

    return made()


class Deformer:
    """Deformed images, any of which can be made anywhere.

    Parameters
    ----------
    images : array of shape (n, side * side) or (n, side, side), uint8
        May be mapped from a file; only the rows in work are read.
    seed : int
    """

    def __init__(self, images: Any, seed: int = DEFAULT_SEED) -> None:
        side = images.shape[1] if images.ndim == 3 else isqrt(int(np.prod(images.shape[1:])))
        square = images.ndim in (2, 3) and int(np.prod(images.shape[1:])) == side * side
        if not square or len(images) == 0 or images.dtype != np.uint8 or side > _LARGEST_SIDE:
            raise BadRowsError(
                f"images must be square, of 8 bits a pixel, at most {_LARGEST_SIDE} pixels wide: "
                f"an array of shape (n, side * side), uint8; found shape {images.shape}, "
                f"{images.dtype}."
            )
        self.n_images, self.side = len(images), side
        self._images = images
        digest = hashlib.blake2b(f"deform {seed}".encode(), digest_size=16).digest()
        self._key = int.from_bytes(digest, "little")
        self._functions = _functions(side)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Make rows ``start`` to ``stop`` (exclusive): array of shape (rows, side * side)."""
        out = np.empty((stop - start, self.side * self.side), dtype=np.uint8)
        for first in range(start, stop, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, stop)
            self._fill(out[first - start : last - start], first, last)
        return out

    def _fill(self, out: np.ndarray, start: int, stop: int) -> None:
        n, side = stop - start, self.side
        chosen = np.arange(start, stop) % self.n_images
        quads = _quads(np.asarray(self._images[chosen]).reshape(n, side, side))
        # Where each pixel is read, in steps, counted from the frame around the image.
        places = (self._coefficients(start, stop) @ self._functions).reshape(2, n, side, side)
        places[0] += _STEPS * np.arange(1, side + 1, dtype=np.float32)[:, None]
        places[1] += _STEPS * np.arange(1, side + 1, dtype=np.float32)
        np.maximum(places, 0, out=places)
        np.minimum(places, (side + 1) * _STEPS - 1, out=places)
        steps = places.astype(np.int32)
        y, x = steps >> 13
        y *= side + 1
        y += x
        y += (np.arange(n, dtype=np.int32) * (side + 1) ** 2)[:, None, None]
        found = np.take(quads, y, mode="clip")  # the four pixels around a place, in one number
        steps >>= 6
        steps &= 127
        down, right = steps.view(np.uint32)
        # Two weighted means at once, in the two halves of a number: of the upper two pixels and
        # of the lower two.
        means = (found & 0x00FF00FF) * (128 - right)
        found >>= 8
        found &= 0x00FF00FF
        found *= right
        means += found
        upper = (means & 0xFFFF) * (128 - down)
        means >>= 16
        means *= down
        upper += means
        upper += 1 << 13
        upper >>= 14
        out[:] = upper.reshape(n, -1)

    def _coefficients(self, start: int, stop: int) -> np.ndarray:
        """Whole numbers that make up the fields of some rows.  (2 * rows, functions)."""
        n, scale = stop - start, self.side / 28
        stream = Philox(key=self._key, counter=start * _COUNTS)
        words = stream.random_raw(n * _COUNTS * 4).astype("<u8", copy=False).view("<u2")
        words = words.reshape(n, -1)
        shift_y, shift_x, turn, *stretch, shear = (words[:, :_AFFINE].T + 0.5) / (1 << 15) - 1
        cos, sin = np.cos(TURN * turn), np.sin(TURN * turn)
        tall, wide = (np.exp(STRETCH * part) for part in stretch)
        slant = SHEAR * shear
        out = np.empty((2, n, 3 + WAVES**2))
        # A = rotation · shear · scaling, applied to (y, x) measured from the centre.
        out[0, :, 0], out[1, :, 0] = SHIFT * scale * shift_y, SHIFT * scale * shift_x
        out[0, :, 1], out[0, :, 2] = cos * tall - 1, wide * (cos * slant - sin)
        out[1, :, 1], out[1, :, 2] = sin * tall, wide * (sin * slant + cos) - 1
        waves = _normal_table()[words[:, _AFFINE : _AFFINE + 2 * WAVES**2]]
        out[:, :, 3:] = waves.reshape(n, 2, -1).transpose(1, 0, 2) * (BEND * scale * _falling())
        out *= _units()
        out[:, : max(min(self.n_images, stop) - start, 0)] = 0  # the images as they are
        return np.rint(out).astype(np.float32).reshape(2 * n, -1)


def _quads(images: np.ndarray) -> np.ndarray:
    """Pack each pixel with its neighbours right, below, and below right; a frame of 0 around."""
    n, side, _ = images.shape
    quads = np.zeros((n, side + 1, side + 1, 4), dtype=np.uint8)
    quads[:, 1:, 1:, 0] = images
    quads[:, 1:, :-1, 1] = images
    quads[:, :-1, 1:, 2] = images
    quads[:, :-1, :-1, 3] = images
    return quads.view("<u4").reshape(-1).astype(np.uint32, copy=False)


@lru_cache(maxsize=4)
def _functions(side: int) -> np.ndarray:
    """Fixed functions of the pixel: constant, y, x and waves.  (functions, side * side)."""
    centred = 2 * np.arange(side) - (side - 1)
    waves = np.sin(np.pi * np.outer(np.arange(1, WAVES + 1), np.arange(1, side + 1)) / (side + 1))
    out = np.empty((3 + WAVES**2, side, side))
    out[0], out[1], out[2] = _FINE, centred[:, None], centred
    out[3:] = (_FINE * waves[:, None, :, None] * waves[None, :, None, :]).reshape(-1, side, side)
    return np.rint(out).reshape(len(out), -1).astype(np.float32)


@lru_cache(maxsize=1)
def _units() -> np.ndarray:
    """What turns pixels into whole numbers, for each function.  (functions,)."""
    units = np.full(3 + WAVES**2, _STEPS / _FINE)
    units[1:3] = _STEPS / 2
    return units


@lru_cache(maxsize=1)
def _falling() -> np.ndarray:
    """Size of each wave, smaller for shorter ones.  (waves,)."""
    order = np.arange(1, WAVES + 1)
    return (1 / np.hypot(order[:, None], order)).ravel()


@lru_cache(maxsize=1)
def _normal_table() -> np.ndarray:
    """The middles of 65,536 equally likely slices of the normal distribution."""
    return ndtri((np.arange(1 << 16) + 0.5) / (1 << 16)).clip(-3, 3)
