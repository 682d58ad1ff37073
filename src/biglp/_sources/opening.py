"""From what a user names to the source that reads it."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from biglp._errors import BadRowsError
from biglp._files import FileStamp
from biglp._sources.arrow import ArrowTable, FrameTable, is_frame, plain_numbers
from biglp._sources.base import Source
from biglp._sources.cache import open_table
from biglp._sources.columns import make_encoding
from biglp._sources.delimited import DelimitedTable
from biglp._sources.filled import fill_missing
from biglp._sources.libsvm import ENDINGS as LIBSVM_ENDINGS
from biglp._sources.libsvm import open_libsvm
from biglp._sources.npy import NpySource
from biglp._sources.options import ReadOptions
from biglp._sources.parquet import ParquetTable
from biglp._sources.simulated import SimulatedSource
from biglp._sources.simulation import PREFIX, Simulation
from biglp._sources.table import TableFile
from biglp._sources.tabular import TabularSource
from biglp._sources.textfiles import PACKED

PARQUET = (".parquet", ".pq", ".parq")
ARROW = (".arrow", ".feather", ".ipc")
DELIMITED = (".csv", ".tsv", ".tab")
TABLES = (*PARQUET, *ARROW, *DELIMITED)


def is_path(value: Any) -> bool:
    """Whether a value names a file, or is a list of such names."""
    if isinstance(value, (str, os.PathLike)):
        return True
    listed = isinstance(value, (list, tuple)) and len(value) > 0
    return listed and all(isinstance(item, (str, os.PathLike)) for item in value)


def open_source(paths: Any, **options: Any) -> Source:
    """Open a file, several files, a folder, a pattern or a simulation.

    Parameters
    ----------
    paths : path or sequence of paths
    **options
        See :class:`biglp._sources.ReadOptions`.
    """
    chosen = ReadOptions(**options)
    if isinstance(paths, str) and paths.startswith(PREFIX):
        chosen.refuse(paths, "columns", "label_column", "drop", "categorical", "missing", "dtype")
        return SimulatedSource(Simulation.parse(paths))
    files = find_files(paths)
    endings = {ending(file) for file in files}
    if len(files) == 1 and endings == {".npy"}:
        chosen.refuse(files[0], "columns", "label_column", "drop", "categorical", "dtype")
        return fill_missing(NpySource(files[0]), chosen)
    if len(files) == 1 and endings <= set(LIBSVM_ENDINGS):
        return open_libsvm(files[0], chosen)
    return open_table(open_tables(files, chosen), chosen)


def open_tables(files: Sequence[str], options: ReadOptions) -> list[TableFile]:
    """Open the files of one table; they must have one format."""
    endings = {ending(file) for file in files}
    if endings <= set(PARQUET):
        return [ParquetTable(file) for file in files]
    if endings <= set(ARROW):
        return [ArrowTable(file) for file in files]
    if endings <= set(DELIMITED):
        first = DelimitedTable(files[0], options)
        return [first, *(DelimitedTable(file, options, like=first) for file in files[1:])]
    if len(endings) > 1:
        raise BadRowsError(
            f"{files[0]} and the {len(files) - 1} files with it have different endings "
            f"({', '.join(sorted(endings))}); the files of one table must have one format."
        )
    FileStamp.of(files[0])  # a file that is not there is the likelier mistake
    raise BadRowsError(
        f"{files[0]}: files ending in {ending(files[0])!r} cannot be read"
        f"{' in numbers' if len(files) > 1 else ''}; use .npy (one file), "
        f"{', '.join((*TABLES, *LIBSVM_ENDINGS))} (text may be packed as .gz or .bz2)."
    )


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


def open_frame(frame: Any, options: ReadOptions) -> Source | None:
    """Open a data frame as a table; None for one of plain numbers, which is as good an array."""
    no_options = ReadOptions(cache=options.cache, progress=options.progress) == options
    if not is_frame(frame) or (no_options and plain_numbers(frame)):
        return None
    table = FrameTable(frame)
    options.refuse("a data frame", "delimiter", "header", "zero_based", "n_features")
    return TabularSource([table], make_encoding([table], options))


def _files_in(folder: str) -> list[str]:
    """Tables in a folder and its folders, without hidden files and markers (``_SUCCESS``)."""
    found = [
        str(path)
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
        and ending(str(path)) in TABLES
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise BadRowsError(
            f"the folder {folder} holds no file that is a table; looked for {', '.join(TABLES)}."
        )
    return found
