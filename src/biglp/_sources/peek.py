"""What a file is, found without reading or converting its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biglp._core.files import FileStamp
from biglp._sources.base import Source
from biglp._sources.formats.simulation import PREFIX
from biglp._sources.formats.textfiles import guess_rows
from biglp._sources.naming import LIBSVM, ending, find_files
from biglp._sources.opening import open_source, open_tables
from biglp._sources.options import ReadOptions


@dataclass(frozen=True)
class FileFacts:
    """What can be said about an input at once.

    Attributes
    ----------
    kind : str
        Format.
    files : tuple of str
        Files, in order; empty for a simulation.
    size : int
        Their bytes.
    n_rows : int
        Number of rows; an estimate when ``exact`` is false.
    exact : bool
    columns : dict of str to str
        Names and types of a table's columns; empty for other formats.
    n_features : int or None
        Number of features of formats without named columns, where the file says it.
    dtype : str or None
        Type of the numbers of formats without named columns.
    converted : bool
        Whether the rows will be converted once before the first sweep.
    """

    kind: str
    files: tuple[str, ...]
    size: int
    n_rows: int
    exact: bool
    columns: dict[str, str]
    n_features: int | None
    dtype: str | None
    converted: bool


def peek(paths: Any, **options: Any) -> FileFacts:
    """Look at a file, several files, a folder, a pattern or a simulation.

    Parameters
    ----------
    paths : path or sequence of paths
    **options
        ``delimiter`` and ``header`` of :class:`biglp._sources.ReadOptions`.
    """
    if isinstance(paths, str) and paths.startswith(PREFIX):
        return _of_source(open_source(paths), "simulated", (), 0)
    files = tuple(find_files(paths))
    size = sum(FileStamp.of(file).size for file in files)
    if len(files) == 1 and ending(files[0]) == ".npy":
        return _of_source(open_source(files[0]), "npy", files, size)
    if len(files) == 1 and ending(files[0]) in LIBSVM:
        rows = guess_rows(files[0], size)
        return FileFacts("LIBSVM", files, size, rows, False, {}, None, "float64", True)
    tables = open_tables(files, ReadOptions(**options))
    return FileFacts(
        kind=tables[0].kind,
        files=files,
        size=size,
        n_rows=sum(table.n_rows_guess for table in tables),
        exact=bool(tables[0].part_rows),
        columns={field.name: str(field.type) for field in tables[0].schema},
        n_features=None,
        dtype=None,
        converted=tables[0].slow,
    )


def _of_source(source: Source, kind: str, files: tuple[str, ...], size: int) -> FileFacts:
    dtype = source.dtype.name
    return FileFacts(kind, files, size, source.n_rows, True, {}, source.n_features, dtype, False)
