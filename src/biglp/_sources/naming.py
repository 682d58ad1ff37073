"""From what a user names to files, and from their names to a format."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from biglp._core.errors import BadRowsError, LabelError
from biglp._core.files import FileStamp
from biglp._core.places import StorePath, as_place
from biglp._core.stores import no_such_file
from biglp._sources.copies import asked_once, local_names
from biglp._sources.formats import FORMATS, LISTINGS, endings_of, without_pyarrow
from biglp._sources.formats.textfiles import PACKED
from biglp._sources.lakes import inside_a_table, is_lake, live_files, refuse_parts, table_above
from biglp._sources.listing import fitting, is_folder, is_there, names_below

if TYPE_CHECKING:
    from biglp._sources.formats.base import Format


@dataclass(frozen=True)
class Named:
    """What the user named.

    Attributes
    ----------
    names : tuple of str
        Names of files, which may be URIs, or the description of rows that are in no file
        (``sim:…``).
    format_name : str or None
        Their format; None where there is none for this ending, or for several files of it.
    is_table : bool
        Whether the rows have named columns.
    in_files : bool
        Whether the rows are in files, and not made up.
    """

    names: tuple[str, ...]
    format_name: str | None
    is_table: bool = False
    in_files: bool = True

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Names of files on this machine; those of a store are copied when this is asked for."""
        return local_names(self, self.names) if self.in_files else self.names

    @property
    def format(self) -> Format:
        """The format, loaded; one that refuses to read where there is none."""
        if self.format_name is None:
            from biglp._sources.formats.base import Format  # which imports this module

            return Format()
        try:
            return FORMATS[self.format_name]
        except ImportError as error:
            raise without_pyarrow(self.names[0], error) from error


def look_up(paths: Any, *, for_labels: bool = False) -> Named:
    """Find the files that were named, and their format.

    Parameters
    ----------
    paths : path or sequence of paths
    for_labels : bool
        Whether they hold labels of rows that are elsewhere: formats of labels come first then.

    Raises
    ------
    BadRowsError
        When there is no such file, or the files have different formats.
    """
    if isinstance(paths, str):
        for listing in LISTINGS.values():
            if listing.prefix and paths.startswith(listing.prefix):
                return Named((paths,), listing.name, in_files=False)
    files = tuple(find_files(paths))
    endings = {ending(file) for file in files}
    fitting = [listing for listing in LISTINGS.values() if endings <= {*listing.endings}]
    fitting.sort(key=lambda listing: (listing.holds == "labels") != for_labels)
    if len(endings) > 1 and not fitting:
        raise BadRowsError(
            f"{files[0]} and the {len(files) - 1} files with it have different endings "
            f"({', '.join(sorted(endings))}); the files of one table must have one format."
        )
    is_table = bool(fitting) and fitting[0].holds == "table"
    can_read = bool(fitting) and (is_table or len(files) == 1)
    return Named(files, fitting[0].name if can_read else None, is_table)


def find_files(paths: Any) -> list[str]:
    """Files behind a path, a URI, a pattern, a folder or a list of these, in order of name."""
    if isinstance(paths, (list, tuple)):
        return [file for path in paths for file in find_files(path)]
    place = as_place(paths)
    if is_lake(place):
        return asked_once(live_files, place)[0]
    if is_folder(place):
        return [str(place / name) for name in _tables_in(place)]
    files = [place]
    if not is_there(place):
        if glob.has_magic(getattr(place, "path", str(place))):
            files = fitting(place)
        elif isinstance(place, StorePath):
            raise no_such_file(str(place))
    if not isinstance(place, StorePath):
        FileStamp.of(files[0])
    refuse_parts(files)
    return [str(file) for file in files]


def ending(path: str) -> str:
    """Ending of a file's name, below the packing: ``.csv`` for ``x.csv.gz``."""
    name = PurePosixPath(as_place(path).name)
    return (PurePosixPath(name.stem) if name.suffix.lower() in PACKED else name).suffix.lower()


def _tables_in(folder: Any) -> list[str]:
    """Tables in a folder and its folders, without hidden files and markers (``_SUCCESS``)."""
    names, tables = names_below(folder), endings_of("table")
    inner = table_above(names)
    if inner is not None:
        raise inside_a_table(folder / inner, folder / inner)
    found = [
        name
        for name in sorted(names, key=lambda name: PurePosixPath(name).parts)
        if ending(name) in tables
        and not any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)
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
        f"{' several at a time' if len(files) > 1 else ''}; use {', '.join(endings_of('rows'))} "
        f"(one file) or {', '.join(endings_of('table'))} (text may be packed as .gz or .bz2)."
    )


def cannot_read_labels(files: Sequence[str]) -> LabelError:
    """Explain that files are of no known format of labels, or too many."""
    return LabelError(
        f"{files[0]}: labels cannot be read from files ending in {ending(files[0])!r}"
        f"{' several at a time' if len(files) > 1 else ''}; use "
        f"{', '.join(endings_of('rows', 'labels'))} (one file) or "
        f"{', '.join(endings_of('table'))}."
    )
