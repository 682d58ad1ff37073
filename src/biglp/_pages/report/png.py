"""Small images as PNG files in data URIs, so that a page needs no file beside it."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

LEVEL = 6
"""How hard to compress: 9 takes seven times as long for a map, and saves a tenth."""
COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
"""PNG's number for grey, RGB and RGBA."""


def png(pixels: np.ndarray) -> bytes:
    """Write an image of 8-bit pixels.  (height, width) or (height, width, 1, 3 or 4)."""
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_TYPES[channels], 0, 0, 0)
    lines = np.ascontiguousarray(pixels, dtype=np.uint8).reshape(height, -1)
    # Each line begins with the number of its filter: 0, none.
    raw = np.concatenate([np.zeros((height, 1), dtype=np.uint8), lines], axis=1).tobytes()
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(raw, LEVEL)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def data_uri(pixels: np.ndarray) -> str:
    """An image as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
