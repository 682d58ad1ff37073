"""Which files there are: in a folder or fitting a pattern, on this machine or in a store."""

from __future__ import annotations

import glob
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from biglp._core.errors import BadRowsError
from biglp._core.places import StorePath
from biglp._sources.stores.copies import asked_once


def names_below(folder: Any) -> list[str]:
    """Names of all files in a folder and its folders, relative to it."""
    if isinstance(folder, StorePath):
        return asked_once(StorePath.files, folder)
    return [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]


def is_folder(place: Any) -> bool:
    """Whether a place is a folder."""
    return bool(names_below(place)) if isinstance(place, StorePath) else place.is_dir()


def is_there(place: Any) -> bool:
    """Whether there is such a file."""
    return asked_once(StorePath.exists, place) if isinstance(place, StorePath) else place.exists()


def fitting(pattern: Any) -> list[Any]:
    """Files that fit a pattern, in order of name.

    Raises
    ------
    BadRowsError
        When there is none.
    """
    if not isinstance(pattern, StorePath):
        found = sorted(glob.glob(str(pattern), recursive=True))
        if not found:
            raise BadRowsError(f"no file fits the pattern {pattern} (looked from {Path.cwd()}).")
        return list(map(Path, found))
    start = re.split(r"[*?[]", pattern.path)[0].rpartition("/")[0]
    folder, wanted = replace(pattern, path=start), as_regex(pattern.path)
    below = [folder / name for name in names_below(folder)]
    fit = [file for file in below if wanted.fullmatch(file.path)]
    if not fit:
        raise BadRowsError(f"no file fits the pattern {pattern} (of {len(below):,} in {folder}).")
    return fit


def as_regex(pattern: str) -> re.Pattern[str]:
    """A pattern as the shell knows it: ``*`` stays within a folder, and means no hidden names."""
    *folders, name = pattern.split("/")
    inner = (r"(?:(?!\.)[^/]+/)*" if each == "**" else _one_name(each) + "/" for each in folders)
    return re.compile("".join(inner) + _one_name(name))


def _one_name(pattern: str) -> str:
    words = {"*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*+|\?|\[[^]]+\])", pattern)
    kept = (part if part[:1] == "[" else words.get(part[:1]) or re.escape(part) for part in parts)
    hidden = r"(?!\.)" if pattern[:1] in ("*", "?", "[") else ""
    return hidden + "".join(kept).replace("[!", "[^")
