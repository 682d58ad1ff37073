"""Whether a file that was fetched is packed as its name says: a login page is not."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEGINNING = 1 << 16
_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_BROKEN: tuple[Any, ...] = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def packing_problem(path: Path, name: str, *, whole: bool) -> str | None:
    """Say in what way a file is not packed as its name says; None when it is.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Name whose ending says how it is packed; others cannot be judged.
    whole : bool
        Whether to unpack all of it, which shows that nothing is missing, or its beginning only.
    """
    ending = Path(name).suffix.lower()
    try:
        if ending == ".zip":
            zipfile.ZipFile(path).close()
        elif ending in _OPENERS:
            with _OPENERS[ending](path) as file:
                while file.read(BEGINNING) and whole:
                    pass
    except _BROKEN as error:
        with open(path, "rb") as plain:
            begins = plain.read(60)
        return f"it is no {ending} file ({error}), and begins with {begins!r}"
    return None
