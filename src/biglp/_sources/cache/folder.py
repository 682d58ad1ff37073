"""A folder of converted inputs: temporary, or named by the user and used again.

Each input has a folder of its own, made under another name and renamed when it is whole, with a
``meta.json`` that says what it was made from. An input that changed has other facts, hence another
name, and is converted again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from biglp._core.errors import OutputError
from biglp._core.files import (
    NPY_HEADER_BYTES,
    PART,
    explained_writing,
    free_space,
    npy_header,
    sync_files,
)
from biglp._core.memory import format_bytes

logger = logging.getLogger("biglp")

VERSION = 1
PREFIX = "biglp-"
LOCK = "in-use"
YOUNG_SECONDS = 60.0
RESERVE_BYTES = 256 << 20
"""Disk space that a conversion leaves to others."""


@dataclass(frozen=True)
class Entry:
    """One converted input: its folder and what is known about it."""

    folder: Path
    meta: dict[str, Any]


class CacheStore:
    """Where converted inputs are kept.

    Parameters
    ----------
    folder : path, optional
        A folder that is kept. By default a temporary one (``TMPDIR`` says where), which is removed
        when the last source that reads from it is gone, or when Python ends.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.kept = folder is not None
        if folder is not None:
            self.path = Path(folder)
            with explained_writing(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
        else:
            remove_abandoned(Path(tempfile.gettempdir()))
            with explained_writing(tempfile.gettempdir()):
                self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
                lock = _lock(self.path)
            weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def find(self, name: str, facts: dict[str, Any]) -> Entry | None:
        """Return the conversion of an input with these facts, if it is there."""
        folder = self._folder(name, facts)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if meta.get("facts") != json.loads(json.dumps(facts)):
            return None
        logger.info("%s: using the rows converted earlier in %s", name, folder)
        return Entry(folder, meta)

    def build(
        self, name: str, facts: dict[str, Any], convert: Callable[[Path], dict[str, Any]]
    ) -> Entry:
        """Convert an input; ``convert`` fills a folder and returns what should be remembered."""
        folder = self._folder(name, facts)
        part = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}{PART}")
        try:
            with explained_writing(part):
                part.mkdir(parents=True)
                meta = {"facts": facts, **convert(part)}
                if self.kept:  # a temporary folder need not outlive a power cut
                    sync_files(part)
                (part / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
                if folder.exists():  # another process was quicker, or an old one is damaged
                    shutil.rmtree(folder, ignore_errors=True)
                os.rename(part, folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        return Entry(folder, meta)

    def shortage(self, needed: int) -> str | None:
        """Say how much space is missing for ``needed`` bytes, or None when there is enough."""
        free = free_space(self.path)
        if needed + RESERVE_BYTES <= free:
            return None
        where = self.path if self.kept else self.path.parent
        return (
            f"about {format_bytes(needed)} are needed in {where} and {format_bytes(free)} are free"
        )

    def _folder(self, name: str, facts: dict[str, Any]) -> Path:
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return self.path / f"{Path(name).name.partition('.')[0]}-{digest[:16]}"


def no_room(name: str, shortage: str) -> OutputError:
    """Explain that a text file cannot be converted for lack of space."""
    return OutputError(
        f"{name} must be converted to raw rows before it can be worked on, but {shortage}. "
        "Make room, set TMPDIR to a folder on another disk, or name one with cache= (--cache)."
    )


class NpyWriter:
    """A ``.npy`` file that grows entry by entry; its header is written last.

    Parameters
    ----------
    path : path
    dtype : numpy.dtype
    entry_shape : tuple of int
        Shape of one entry: ``(m,)`` for rows of m numbers, ``()`` for a list of numbers.
    """

    def __init__(self, path: Path, dtype: Any, entry_shape: tuple[int, ...] = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.entry_shape = entry_shape
        self.length = 0
        self._file = open(path, "xb")  # noqa: SIM115 - closed by __exit__
        self._file.write(bytes(NPY_HEADER_BYTES))

    def append(self, entries: np.ndarray) -> None:
        """Write entries after those that are there."""
        entries = np.ascontiguousarray(entries, dtype=self.dtype)
        self._file.write(entries.reshape(-1).view(np.uint8).data)
        self.length += len(entries)

    def __enter__(self) -> NpyWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._file.write(npy_header(self.dtype, (self.length, *self.entry_shape)))
        finally:
            self._file.close()


def remove_abandoned(place: Path) -> None:
    """Remove temporary folders of processes that were killed before they could do it.

    A living process holds a lock on a file in its folder; the system releases it however the
    process ends. Young folders are left alone: theirs may not be locked yet.
    """
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            facts = folder.stat()
            if facts.st_uid != os.getuid() or time.time() - facts.st_mtime < YOUNG_SECONDS:
                continue
            handle = os.open(folder / LOCK, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                logger.info("removing %s, left behind by a run that was killed", folder)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _lock(folder: Path) -> int:
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    with suppress(OSError):  # a file system without locks: its folders are never taken for dead
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def _remove(folder: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not take the folder from its parent
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)
