"""Amounts of memory: given, free on this machine or GPU, used by this process, rows of a block."""

from __future__ import annotations

import ctypes
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import inf
from typing import Any

import psutil

from biglp._core.errors import MemoryBudgetError, ParameterError

POLL_SECONDS = 0.02
LEAST_AVAILABLE = 1 << 26
"""What is said to be free when the system reports less: nothing can run in less than 64 MB."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_memory(memory: str | int | float, name: str = "memory") -> int:
    """Turn a budget such as ``"4GB"``, ``"512 MiB"`` or a number of bytes into bytes.

    ``"auto"`` is half of the memory that is free now. GB and GiB both mean 2**30 bytes. ``name`` is
    that of the parameter, for messages.
    """
    if memory == "auto":
        return available_memory() // 2
    if isinstance(memory, (int, float)) and not isinstance(memory, bool) and 0 < memory < inf:
        return int(memory)
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)I?B?\s*", str(memory).upper())
    try:
        amount = float(match.group(1)) if match else 0.0
    except ValueError:
        amount = 0.0
    if match is None or amount <= 0:
        raise ParameterError(
            f"{name}={memory!r} is not an amount of memory; "
            "use 'auto', a number of bytes, or text such as '4GB' or '512MB'."
        )
    return int(amount * _UNITS[match.group(2)])


def format_bytes(amount: float) -> str:
    """Write a number of bytes for people: 1.5 GB."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1024:
            digits = ".0f" if unit == "bytes" or amount >= 1000 else ".3g"
            return f"{amount:{digits}} {unit}"
        amount /= 1024
    return f"{amount:.3g} TB" if amount < 1000 else f"{amount:.0f} TB"


def available_memory() -> int:
    """Bytes of memory that new work can use now, container limits included."""
    free = int(psutil.virtual_memory().available)
    try:  # psutil reports the whole machine, also inside a container with a limit (cgroup v2)
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            limit = file.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as file:
            used = int(file.read())
        if limit != "max":
            free = min(free, int(limit) - used)
    except (OSError, ValueError):
        pass  # not Linux, or no control group: the first figure stands
    return max(free, LEAST_AVAILABLE)


def free_gpu_memory(device: str) -> int | None:
    """Bytes of a GPU's memory that new work can use now; None for a processor."""
    device, torch = device.removeprefix("torch:"), sys.modules.get("torch")
    if not device.startswith("cuda") or torch is None:
        return None
    free, _ = torch.cuda.mem_get_info(device)
    # torch keeps memory that it has freed for later tensors; the driver counts it as used.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free + kept)


def private_memory(process: int | None = None) -> int:
    """Bytes of memory that belong to a process alone: resident, less clean pages of files."""
    try:
        # Linux counts these pages as it goes. psutil's nearest figure, USS, adds up every mapping:
        # 3.7 ms where this takes 0.06 ms, too slow for a reading every 20 ms.
        with open(f"/proc/{process or 'self'}/status", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * sum(int(lines[name].split()[0]) for name in ("RssAnon", "RssShmem"))
    except (OSError, KeyError, ValueError):
        pass  # not Linux, or the process has ended
    try:
        return int(psutil.Process(process).memory_full_info().uss)
    except psutil.Error:
        return 0  # it has ended, or this user may not look at it


class PeakMemory:
    """Watches this process's own memory from a thread, as a context manager."""

    peak: int = 0

    def __enter__(self) -> PeakMemory:
        self.peak = private_memory()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="biglp-memory", daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._end.wait(POLL_SECONDS):
            self.peak = max(self.peak, private_memory())

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._end.set()
        self._thread.join()
        self.peak = max(self.peak, private_memory())


# --------------------------------------------------------------------------------------------------
# Rows of a block.


TARGET_BLOCK_BYTES = 8 << 20
"""Working set of one block on a processor: large enough for fast matrix products, small enough
that a block's features are still in the cache when the next step reads them."""

TARGET_BLOCK_BYTES_GPU = 1 << 30
"""Working set of one block on a GPU, where launching work is what small blocks would wait for."""

MIN_BLOCK_ROWS = 256
BLOCKS_AT_ONCE = 16
"""Blocks that may be in work at once within the budget; fixed, so that the cut into blocks does
not depend on the number of workers."""


def rows_per_block(
    bytes_per_row: int, budget: int, *, device: str = "cpu", target: int | None = None
) -> int:
    """Choose how many rows a block holds.

    The answer depends on the shape of the problem and the budget only, never on the number of
    workers, so that sums over blocks have the same bits however many workers there are.
    """
    smallest = BLOCKS_AT_ONCE * MIN_BLOCK_ROWS * bytes_per_row
    if smallest > budget:
        raise MemoryBudgetError(
            f"memory={format_bytes(budget)} is too little: {BLOCKS_AT_ONCE} of the smallest blocks "
            f"({MIN_BLOCK_ROWS} rows of {format_bytes(bytes_per_row)} working memory each) need "
            f"{format_bytes(smallest)}. Give at least that, or use fewer landmarks."
        )
    target = (target or TARGET_BLOCK_BYTES) if device == "cpu" else TARGET_BLOCK_BYTES_GPU
    rows = min(target, budget // BLOCKS_AT_ONCE) // bytes_per_row
    return int(max(MIN_BLOCK_ROWS, rows))


# --------------------------------------------------------------------------------------------------
# What the C library keeps of freed memory for the next who asks, and what it hands back.


ARRAY_KEPT = 1 << 25
"""Bytes up to which a freed array is kept: the most that the GNU C library comes to by itself."""
_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_MMAP_BY_DEFAULT = 1 << 17
_C_LIBRARY: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
_lock = threading.Lock()
_users = 0  # of freed_is_kept, at the moment


def give_back() -> None:
    """Hand back to the system what Arrow and the C library keep of freed memory.

    They keep it for the next one who asks; between two steps of a run that need memory in other
    places it would count twice.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    trim = getattr(_C_LIBRARY, "malloc_trim", None)
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
    threshold, set_option = trim_threshold(), getattr(_C_LIBRARY, "mallopt", None)
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
