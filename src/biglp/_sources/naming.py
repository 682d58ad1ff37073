"""From what a user names to files, and from a file's name to its format."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

from biglp._core.errors import BadRowsError
from biglp._core.files import FileStamp
from biglp._sources.formats.textfiles import PACKED

PARQUET = (".parquet", ".pq", ".parq")
ARROW = (".arrow", ".feather", ".ipc")
DELIMITED = (".csv", ".tsv", ".tab")
TABLES = (*PARQUET, *ARROW, *DELIMITED)
LIBSVM = (".libsvm", ".svm", ".svmlight", ".svml")


def is_path(value: Any) -> bool:
    """Whether a value names a file, or is a list of such names."""
    if isinstance(value, (str, os.PathLike)):
        return True
    listed = isinstance(value, (list, tuple)) and len(value) > 0
    return listed and all(isinstance(item, (str, os.PathLike)) for item in value)


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
