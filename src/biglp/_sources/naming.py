"""From what a user names to files, and from their names to a format."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biglp._core.errors import BadRowsError, LabelError
from biglp._core.files import FileStamp
from biglp._sources.formats import LISTINGS, Listing, endings_of
from biglp._sources.formats.textfiles import PACKED

if TYPE_CHECKING:
    from biglp._sources.formats.base import Format


@dataclass(frozen=True)
class Named:
    """What the user named.

    Attributes
    ----------
    files : tuple of str
        Names of files, or the description of rows that are in no file (``sim:…``).
    listing : Listing or None
        Their format; None where no format has this ending.
    """

    files: tuple[str, ...]
    listing: Listing | None

    @property
    def format(self) -> Format:
        """The format, which must be one of rows."""
        listing = self.listing
        if listing is None or listing.holds == "labels":
            raise cannot_open(self.files)
        if len(self.files) > 1 and not listing.is_table:
            raise cannot_open(self.files)
        return listing.load(self.files[0])

    @property
    def is_table(self) -> bool:
        """Whether the rows have named columns."""
        return self.listing is not None and self.listing.is_table

    @property
    def in_files(self) -> bool:
        """Whether the rows are in files, and not made up."""
        return self.listing is None or not self.listing.prefix


def look_up(paths: Any) -> Named:
    """Find the files that were named, and their format.

    Raises
    ------
    BadRowsError
        When there is no such file, or the files have different formats.
    """
    if isinstance(paths, str):
        for listing in LISTINGS.values():
            if listing.prefix and paths.startswith(listing.prefix):
                return Named((paths,), listing)
    files = tuple(find_files(paths))
    endings = {ending(file) for file in files}
    fitting = [listing for listing in LISTINGS.values() if endings <= {*listing.endings}]
    if len(endings) > 1 and not fitting:
        raise BadRowsError(
            f"{files[0]} and the {len(files) - 1} files with it have different endings "
            f"({', '.join(sorted(endings))}); the files of one table must have one format."
        )
    return Named(files, fitting[0] if fitting else None)


def find_files(paths: Any) -> list[str]:
    """Files behind a path, a pattern, a folder or a list of these, in order of name."""
    if isinstance(paths, (list, tuple)):
        return [file for path in paths for file in find_files(path)]
    path = os.fspath(paths)
    if os.path.isdir(path):
        return _files_in(path)
    if not os.path.exists(path) and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise BadRowsError(f"no file fits the pattern {path} (looked from {Path.cwd()}).")
        return found
    FileStamp.of(path)
    return [path]


def ending(path: str) -> str:
    """Ending of a file's name, below the packing: ``.csv`` for ``x.csv.gz``."""
    name = Path(path)
    return (Path(name.stem) if name.suffix.lower() in PACKED else name).suffix.lower()


def _files_in(folder: str) -> list[str]:
    """Tables in a folder and its folders, without hidden files and markers (``_SUCCESS``)."""
    tables = endings_of("table")
    found = [
        str(path)
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
        and ending(str(path)) in tables
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise BadRowsError(
            f"the folder {folder} holds no file that is a table; looked for {', '.join(tables)}."
        )
    return found


def cannot_open(files: Sequence[str]) -> BadRowsError:
    """Explain that files are of no known format of rows, or too many."""
    return BadRowsError(
        f"{files[0]}: files ending in {ending(files[0])!r} cannot be read"
        f"{' in numbers' if len(files) > 1 else ''}; use {', '.join(endings_of('rows'))} "
        f"(one file) or {', '.join(endings_of('table'))} (text may be packed as .gz or .bz2)."
    )


def cannot_read_labels(file: str) -> LabelError:
    """Explain that a file is of no known format of labels."""
    return LabelError(
        f"{file}: labels cannot be read from files ending in {ending(file)!r}; use "
        f"{', '.join(endings_of('rows', 'labels', 'table'))}."
    )
