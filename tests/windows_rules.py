"""Windows' rules for open files, kept on Linux: what breaks there breaks here.

Windows removes and replaces no file that is open or mapped into memory, locks bytes against every
other handle, and forces only files to disk that are open for writing.
"""

import errno
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

READ_ONLY = "0"
"""What the last digit of a handle's flags is in ``/proc``."""


def keep_windows_rules(monkeypatch: Any) -> None:
    if sys.platform == "win32":
        return
    if sys.platform != "linux":
        pytest.skip("asks /proc which files are open")
    from fcntl import LOCK_EX, LOCK_NB, flock

    def lock(handle: int, mode: int, count: int) -> None:
        if os.lseek(handle, 0, os.SEEK_CUR) < os.fstat(handle).st_size + (1 << 30):
            raise AssertionError("the lock is on bytes that the file has, or may have")
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error

    for name in ("unlink", "remove", "rename", "replace"):
        monkeypatch.setattr(os, name, _careful(getattr(os, name)))
    synced = os.fsync

    def fsync(handle: int) -> None:
        flags = Path(f"/proc/self/fdinfo/{handle}").read_text().split("flags:")[1].split()[0]
        if flags[-1] == READ_ONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        synced(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=lock))
    opened = os.open

    def open_file(path: Any, *given: Any, **named: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *given, **named)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(shutil, "_use_fd_functions", False)  # as shutil decides there


def _careful(call: Any) -> Any:
    def wrapped(*paths: Any, **named: Any) -> Any:
        for path in paths:
            name = os.path.realpath(path)
            if os.path.isfile(name) and name in _in_use():
                raise PermissionError(errno.EACCES, "The file is in use", name)
        return call(*paths, **named)

    return wrapped


def _in_use() -> set[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # that of the list itself
            continue
    for line in Path("/proc/self/maps").read_text().splitlines():
        found.add(line.split(maxsplit=5)[-1])
    return found
