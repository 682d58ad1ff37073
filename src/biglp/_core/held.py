"""Folders that one process at a time works in: a lock file inside says that somebody does."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO

from biglp._core.files import lock_file

_TRIES = 100
"""Attempts while others remove the folder; more would mean that it cannot be made at all."""


def hold(path: Path) -> IO[bytes] | None:
    """Hold a lock file, making its folder where that is missing; None when another process does.

    Whoever held it may have removed it between its opening here and its locking: a lock on a file
    that has no name any more protects nothing, so it is opened again.
    """
    for attempt in range(_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = lock_file(path)
        except FileNotFoundError:  # the folder was removed in between
            if attempt == _TRIES - 1:
                raise
            continue
        if file is None:
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()
    return None


def let_go(path: Path, file: IO[bytes]) -> None:
    """Remove a lock file that this process holds."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # Windows removes no file that is open
        file.close()
        path.unlink(missing_ok=True)
    file.close()


def remove_held(lock: Path, file: IO[bytes], first: str = "") -> None:
    """Remove the folder of a lock file that this process holds, and let go of it.

    The lock goes last: until then no other process can begin to work there.

    Parameters
    ----------
    lock : Path
        The lock file.
    file : file
        What :func:`hold` gave.
    first : str
        Name of a file that goes before all others: without it, what is left of the folder after
        this process was killed is taken for rubbish.
    """
    folder = lock.parent
    with suppress(OSError):
        if first:
            (folder / first).unlink(missing_ok=True)
        for path in folder.iterdir():
            if path == lock:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        let_go(lock, file)
        folder.rmdir()  # not when another process has begun meanwhile
