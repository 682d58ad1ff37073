"""What the C library keeps of freed memory for the next who asks, and what it hands back."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

ARRAY_KEPT = 1 << 25
"""Bytes up to which a freed array is kept: the most that the GNU C library comes to by itself."""
_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_MMAP_BY_DEFAULT = 1 << 17
_lock = threading.Lock()
_users = 0  # of freed_is_kept, at the moment


def give_back() -> None:
    """Hand back to the system what Arrow and the C library keep of freed memory.

    They keep it for the next one who asks; between two steps of a run that need memory in other
    places it would count twice.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


@contextmanager
def freed_is_kept() -> Iterator[None]:
    """Let arrays of one block have the memory of the block before, whoever started this process.

    The GNU C library does so by itself. Dask starts its workers with MALLOC_TRIM_THRESHOLD_, so
    that they are small when idle, and leaves it behind in the program that starts them, of which
    commands inherit it. It has every freed array of 128 kB or more handed back at once: each block
    is then worked on in new pages, which the system fills with zeros first. Outside this, a process
    is as its starter wants it.
    """
    global _users
    threshold, set_option = trim_threshold(), _c_function("mallopt")
    if threshold is None or set_option is None:
        yield
        return
    with _lock:
        _users += 1
        set_option(_MMAP, ARRAY_KEPT)
        set_option(_TRIM, 2 * ARRAY_KEPT)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                set_option(_MMAP, _MMAP_BY_DEFAULT)
                set_option(_TRIM, threshold)
                give_back()


@lru_cache
def trim_threshold() -> int | None:
    """MALLOC_TRIM_THRESHOLD_ of this process; None where the C library decides.

    That of the time it was started: the C library looks at no other, and Dask leaves its own behind
    in the program that starts workers.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = (entry.partition(b"=") for entry in file.read().split(b"\0"))
            value = {name: value for name, _, value in pairs}.get(b"MALLOC_TRIM_THRESHOLD_")
            return None if value is None else int(value)
    except (OSError, ValueError):
        return None


def _c_function(name: str) -> Any:
    """A function of the C library; None where it has none of that name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
