"""Temporary folders, removed with what they were made for, and those that killed runs left."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

from biglp._core.files import explained_writing
from biglp._core.handles import lock_handle, open_handle

logger = logging.getLogger("biglp")

TEMPORARY_PREFIX = "biglp-"
IN_USE = "in-use"
YOUNG_SECONDS = 60.0


def temporary_folder(owner: object) -> Path:
    """Make a folder that is removed when its owner is gone, or when Python ends."""
    remove_abandoned(Path(tempfile.gettempdir()))
    with explained_writing(tempfile.gettempdir()):
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX))
        lock = _lock_folder(folder)
    weakref.finalize(owner, _remove_folder, folder, lock, os.getpid())
    return folder


def remove_abandoned(place: Path) -> None:
    """Remove temporary folders of processes that were killed before they could do it.

    A living process holds a lock on a file in its folder; the system releases it however the
    process ends. Young folders are left alone: theirs may not be locked yet.
    """
    for folder in place.glob(f"{TEMPORARY_PREFIX}*"):
        with suppress(OSError):
            facts = folder.stat()
            owner = os.getuid() if hasattr(os, "getuid") else facts.st_uid  # Windows has none
            if facts.st_uid != owner or time.time() - facts.st_mtime < YOUNG_SECONDS:
                continue
            handle = open_handle(folder / IN_USE, os.O_RDWR)
            abandoned = lock_handle(handle)
            os.close(handle)  # Windows removes no file that is open
            if abandoned:
                logger.info("removing %s, left behind by a run that was killed", folder)
                shutil.rmtree(folder, ignore_errors=True)


def _lock_folder(folder: Path) -> int:
    handle = open_handle(folder / IN_USE, os.O_RDWR | os.O_CREAT)
    lock_handle(handle)  # where there are no locks, the folder is never taken for abandoned
    return handle


def _remove_folder(folder: Path, lock: int, owner: int) -> None:
    with suppress(OSError):
        os.close(lock)  # before the folder goes: Windows removes no file that is open
    if os.getpid() == owner:  # a forked child must not take the folder from its parent
        shutil.rmtree(folder, ignore_errors=True)
