"""Open files by number: what systems other than Linux spell differently or do not have.

macOS has no ``preadv``, ``posix_fadvise`` and ``posix_fallocate``; Windows has none of these, no
``pread`` and ``pwrite`` either, locks files its own way, and changes line ends unless told not to.
"""

from __future__ import annotations

import os
import threading
from typing import Any

_EXTRA = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_LOCKED = 2**31 - 2  # the last byte that Windows' 32-bit call can lock
_SEEKING = threading.Lock()
"""Held from seeking to reading, where the two are not one call and threads share the file."""


def open_handle(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
    """Open a file for bytes; processes that are started later do not get it."""
    return os.open(path, flags | _EXTRA, mode)


def read_at(handle: int, buffer: memoryview, position: int) -> int:
    """Read bytes from ``position`` on into ``buffer``; return how many, 0 at the end."""
    if hasattr(os, "preadv"):
        return os.preadv(handle, [buffer], position)
    if hasattr(os, "pread"):
        data = os.pread(handle, len(buffer), position)
    else:
        with _SEEKING:
            os.lseek(handle, position, os.SEEK_SET)
            data = os.read(handle, len(buffer))
    buffer[: len(data)] = data
    return len(data)


def write_at(handle: int, data: Any, position: int) -> int:
    """Write bytes from ``position`` on; return how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(handle, data, position)
    with _SEEKING:
        os.lseek(handle, position, os.SEEK_SET)
        return os.write(handle, data)


def lock_handle(handle: int) -> bool | None:
    """Lock a file for this process; False when another one holds it, None where locks are unknown.

    The system lets go of it when the process ends, whatever way it ends.
    """
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _lock_on_windows(handle: int) -> bool | None:
    """Lock a byte far behind the end: what is locked, no other handle can read."""
    try:
        import msvcrt

        with _SEEKING:
            os.lseek(handle, _LOCKED, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except ImportError:
        return None
    except OSError:
        return False
    return True
