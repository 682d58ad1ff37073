"""The format of a file that has no name, from its first bytes."""

from __future__ import annotations

import bz2
import re
import zlib

from biglp._sources.formats.charset import find_charset

MAGIC = (
    (b"\x93NUMPY", "npy"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"PK\x03\x04", "npz"),
    (b"\x89HDF", "h5"),
)
_LIBSVM = re.compile(rb"\S+(?: +\d+:\S+)+ *\r?\n")


def ending_for(first: bytes) -> str | None:
    """Ending, without its point, of a file that begins like this; None where nothing fits."""
    for magic, ending in MAGIC:
        if first.startswith(magic):
            return ending
    if first.startswith(b"\x1f\x8b"):
        inner = ending_for(zlib.decompressobj(wbits=31).decompress(first))
        return inner and f"{inner}.gz"
    if first.startswith(b"BZh"):
        try:
            return f"{ending_for(bz2.BZ2Decompressor().decompress(first)) or 'csv'}.bz2"
        except OSError:
            return None
    if b"\0" in first and not find_charset(first).name.startswith(("utf-16", "utf-32")):
        return None
    if first.lstrip()[:1] == b"{":
        return "jsonl"
    return "libsvm" if _LIBSVM.match(first) else "csv"
