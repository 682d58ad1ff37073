"""What runs that were killed left on the disk, found below a folder, and removed.

Only what biglp made is looked at, by its names and what is in it, and nothing that a running
process holds. A run that can go on with ``--resume`` is kept unless it is asked for.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from biglp._core.errors import CheckpointError
from biglp._files.local import PART, abandoned, hold, let_go, lock_file, remove_held
from biglp._files.runfolder import HEADER, LOCK, read_identity
from biglp._jobs.results import RUN_FOLDER, unfinished_work
from biglp._rows.cache import META, code_digest
from biglp._version import __version__

OLD_SECONDS = 3600.0
"""Age of a file that was begun and has no lock, from which on nobody is writing it."""
_BEGUN = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(PART)}")
_CONVERTED = re.compile(rf"(.+-[0-9a-f]{{16}})(\.[0-9a-f]{{8}}{re.escape(PART)})?")


@dataclass(frozen=True)
class Leftover:
    """Something that a run left."""

    path: Path
    what: str  # in words
    n_bytes: int
    resumable: bool = False  # the same command with --resume goes on with it
    lock: Path | None = None  # held by whoever works with it

    def remove(self) -> bool:
        """Remove it; False where a process has begun to use it."""
        if self.lock is None:
            if self.path.is_dir():
                shutil.rmtree(self.path, ignore_errors=True)
            else:
                self.path.unlink(missing_ok=True)
            return not self.path.exists()
        held = hold(self.lock)
        if held is None:
            return False
        if self.lock.parent == self.path:
            remove_held(self.lock, held, first=HEADER)
        else:
            shutil.rmtree(self.path, ignore_errors=True)
            let_go(self.lock, held)
        held.close()
        return not self.path.exists()


def find_leftovers(folder: Path) -> list[Leftover]:
    """What is left below a folder, and of this user in the folder of temporary files."""
    found = list(_below(folder))
    for path in abandoned(Path(tempfile.gettempdir())):
        found.append(Leftover(path, "temporary files of a killed run", _bytes_of(path)))
    return found


def _below(folder: Path) -> Iterator[Leftover]:
    for at, folders, files in os.walk(folder):
        for name in sorted(folders):
            path = Path(at, name)
            if name.startswith(".") and name.endswith(RUN_FOLDER):
                known = of_run(path)
            elif match := _CONVERTED.fullmatch(name):
                known = of_cache(path, Path(at, f".{match[1]}.lock"), is_part=match[2] is not None)
            else:
                continue
            folders.remove(name)
            if known is not None:
                yield known
        for name in sorted(files):
            path = Path(at, name)
            if _BEGUN.fullmatch(name) and time.time() - path.stat().st_mtime > OLD_SECONDS:
                yield Leftover(path, "a file that was never finished", path.stat().st_size)


def of_run(path: Path) -> Leftover | None:
    """An unfinished run; None where a process is at work in it, or it is none of ours."""
    lock, header = path / LOCK, path / HEADER
    if not lock.exists() and not header.exists():
        return None
    if lock.exists() and _is_held(lock):
        return None
    try:
        done = unfinished_work(path)
        version = read_identity(path).get("biglp") if header.exists() else None
    except (CheckpointError, ValueError):
        done = version = None
    what = "an interrupted run in which nothing was finished"
    if done is not None and version == __version__:
        what = f"an interrupted run that can go on with --resume (finished: {done})"
    elif done is not None:
        what = "an interrupted run of another version of biglp, which cannot be resumed"
    return Leftover(path, what, _bytes_of(path), version == __version__ and done is not None, lock)


def of_cache(path: Path, lock: Path, *, is_part: bool) -> Leftover | None:
    """Converted rows that are of no more use; None where they are, or are not ours."""
    if lock.exists() and _is_held(lock):
        return None
    if is_part:
        what = "rows that were never converted to the end"
        return Leftover(path, what, _bytes_of(path), lock=lock)
    try:
        facts = json.loads((path / META).read_text(encoding="utf-8"))["facts"]
        made_of = [(file["path"], file["size"], file["mtime_ns"]) for file in facts["files"]]
        code = facts["code"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # Those without a code are temporary: their process removes them, or abandoned() finds them.
    if not code or (code == code_digest() and all(map(_is_unchanged, made_of))):
        return None
    why = "another version of biglp" if code != code_digest() else "a file that has changed or gone"
    return Leftover(path, f"converted rows of {why}", _bytes_of(path), lock=lock)


def _is_unchanged(made_of: tuple[str, int, int]) -> bool:
    name, *known = made_of
    try:
        facts = os.stat(name)
    except OSError:
        return False
    return os.path.isdir(name) or [facts.st_size, facts.st_mtime_ns] == known


def _is_held(lock: Path) -> bool:
    try:
        file = lock_file(lock)
    except OSError:  # what cannot be opened is not ours
        return True
    if file is not None:
        file.close()
    return file is None


def _bytes_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
