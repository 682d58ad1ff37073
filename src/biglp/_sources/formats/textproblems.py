"""What can be wrong with a text file, in words."""

from __future__ import annotations

from typing import Any

from biglp._core.errors import BadRowsError
from biglp._rows.textfiles import PLAIN, open_text
from biglp._rows.written_numbers import has_comma
from biglp._sources.formats.quotes import Swallowed

FIRST_CELLS = 100
"""Entries of a column that are looked at."""


def unclosed_quote(name: str, found: Swallowed) -> BadRowsError:
    """Explain that a quote swallows lines."""
    return BadRowsError(
        f"{name}, line {found.first}: a quote is opened there and not closed as it should be, so "
        f"that the lines up to {found.last:,} would be read as one row "
        f"({shortened(found.text.strip())!r}). Close the quote, write it twice where it is part "
        "of the text, or delete it."
    )


def perhaps_unclosed(name: str, found: Swallowed) -> str:
    """Say that lines in quotes look like rows."""
    return (
        f"{name}, line {found.first}: text in quotes runs up to line {found.last:,}, over lines "
        "that look like rows of the table. If a quote is not closed there, rows are missing; if "
        "it is meant, all is well."
    )


def not_utf8(name: str, charset: str) -> str:
    """Say that the encoding of a file is a guess."""
    return (
        f"{name} is not UTF-8 and is read as {charset} (Western European letters). If letters are "
        "wrong, say what it is: text_encoding= (--encoding)."
    )


def with_commas(name: str, column: str, values: Any) -> tuple[str, ...]:
    """Say that texts of a column may be numbers, where all of the first ones are."""
    cells = [str(cell) for cell in values[:FIRST_CELLS].to_pylist() if cell is not None]
    if not cells or not all(map(has_comma, cells)):
        return ()
    return (
        f"{name}: column {column!r} is taken as text, such as {cells[0]!r}: the comma may be a "
        "decimal comma or stand between thousands. If it is a decimal comma, say so with "
        "decimal=',' (--decimal ,).",
    )


def not_this_charset(name: str, charset: str) -> BadRowsError:
    """Explain that a file is not written in its encoding, and name the first such line."""
    where, shown = "", "UTF-8" if charset in PLAIN else charset
    if charset in PLAIN:
        with open_text(name) as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    where = f", line {number}, byte {line[error.start]:#04x}"
                    break
    return BadRowsError(
        f"{name}{where}: the text is not {shown}. Say how it is written with text_encoding= "
        "(--encoding), such as cp1252 (Windows), latin-1 or utf-16."
    )


def shortened(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= 60 else text[:57] + "..."
