"""How the letters of a text file are written, found by looking at its first bytes."""

from __future__ import annotations

import codecs
from typing import NamedTuple

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like UTF-16's mark, hence first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
PLAIN = ("utf-8", "utf-8-sig", "ascii")
"""Encodings that are read as they are; a mark at the beginning is left out."""
MANY = 0.4
"""Share of the bytes that are zero in one half of UTF-16's pairs, for languages of the West."""


class Charset(NamedTuple):
    """An encoding of text.

    Attributes
    ----------
    name : str
        As Python calls it.
    guessed : bool
        Whether nothing in the file says so, and another may be right.
    """

    name: str
    guessed: bool = False


def find_charset(raw: bytes) -> Charset:
    """Find the encoding of a text from its first bytes.

    A mark at the beginning decides; then zeros in every other byte, which are UTF-16; then whether
    the bytes are UTF-8, which other encodings hardly ever are by chance. What remains is taken for
    Windows' Western encoding, and for Latin-1 where that has no such letter.
    """
    for mark, name in MARKS:
        if raw.startswith(mark):
            return Charset(name)
    pairs = raw[: len(raw) // 2 * 2]
    if pairs:
        half = len(pairs) / 2
        first, second = pairs[::2].count(0) / half, pairs[1::2].count(0) / half
        if max(first, second) > MANY and min(first, second) < MANY / 10:
            return Charset("utf-16-be" if first > second else "utf-16-le")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)  # may be cut within a letter
    except UnicodeDecodeError:
        pass
    else:
        return Charset("utf-8")
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return Charset("latin-1", guessed=True)
    return Charset("cp1252", guessed=True)
