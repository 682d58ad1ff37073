"""Checksums of converted rows, so that a bit that a disk or another program changed is noticed.

A file has a sum for each 32 kB, taken over its words of 64 bits: any one changed bit changes it.
Sums run at the memory's speed (10 GB/s, where a CRC-32 of zlib has 2), and each process checks each
stretch once, when it first reads from it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp
from biglp._sources.cache.rawfile import RawFile

STRETCH = 32 << 10
"""Bytes with a sum of their own: a disk needs as long for these as for a single row."""
AT_ONCE = 32
"""Stretches that are checked together."""
KNOWN_FILES = 16
"""Files whose sums a process keeps, also between two readers: work for another process brings its
own. An input has one, or four where its rows are sparse."""
ENDING = ".sums"
META = "meta.json"


class RunningSums:
    """Sums of a file that is being written.

    Parameters
    ----------
    head : int
        Bytes at the beginning of the file that are written last.
    """

    def __init__(self, head: int) -> None:
        self._open = bytearray(head)
        self._sums: list[np.ndarray] = []
        self._size = head

    def add(self, piece: Any) -> None:
        """Take bytes that follow those before."""
        self._size += len(piece)
        missing = min(STRETCH - len(self._open), len(piece))
        self._open += piece[:missing]
        if len(self._open) < STRETCH:
            return
        whole = missing + (len(piece) - missing) // STRETCH * STRETCH
        self._sums += [_summed(self._open), _summed(piece[missing:whole])]
        self._open = bytearray(piece[whole:])

    def write(self, path: Path, head: bytes = b"") -> None:
        """Write the sums beside the file, now that its beginning is known."""
        sums = np.concatenate([*self._sums, _summed(self._open)])
        if head:
            sums[:1] += _summed(head)
        sums = np.concatenate([np.array([self._size], dtype=np.uint64), sums])
        _beside(path).write_bytes(np.append(sums, sums.sum(dtype=np.uint64)).tobytes())


def write_sums(path: Path) -> None:
    """Write the sums of a file that is whole."""
    running = RunningSums(0)
    with open(path, "rb") as file:
        while piece := file.read(AT_ONCE * STRETCH):
            running.add(memoryview(piece))
    running.write(path)


class CheckedFile(RawFile):
    """An array in a ``.npy`` file with sums; what is read is checked the first time.

    Raises
    ------
    BadRowsError
        When the bytes are not those that were written. The folder is then no longer taken for
        converted rows, so that the next run converts them again.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.path.abspath(path)
        self.stamp = FileStamp.of(path)
        self._check(0, 1)  # the header
        super().__init__(path, self.stamp)

    def _fill(self, view: memoryview, position: int) -> None:
        self._check(position, position + len(view))
        super()._fill(view, position)

    def _check(self, first: int, end: int) -> None:
        """Check the stretches of these bytes that have not been checked in this process."""
        _sums, done = self._sums()
        low, high = first // STRETCH, -(-end // STRETCH)
        waiting = low + np.flatnonzero(~done[low:high])
        for some in np.split(waiting, np.flatnonzero(np.diff(waiting) > 1) + 1):
            for start in range(0, len(some), AT_ONCE):
                self._check_run(int(some[start]), int(some[start : start + AT_ONCE][-1]) + 1)

    def _check_run(self, low: int, high: int) -> None:
        sums, done = self._sums()
        begin = low * STRETCH
        content = np.empty(min(high * STRETCH, self.stamp.size) - begin, dtype=np.uint8)
        super()._fill(content.data, begin)
        if not np.array_equal(_summed(content.data), sums[low:high]):
            raise self._damaged(f"bytes {begin:,} to {begin + len(content):,} were changed")
        done[low:high] = True

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The sums, and which stretches are known to agree."""
        try:
            return known_sums(self._path, self.stamp.size, self.stamp.mtime_ns)
        except OSError as error:
            raise self._damaged(f"its checksums cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, what: str) -> BadRowsError:
        (Path(self._path).parent / META).unlink(missing_ok=True)
        return BadRowsError(
            f"{self._path}, which holds rows that were converted earlier, is damaged: {what} by "
            "the disk or by another program. Run again, and the rows are converted again; an "
            "interrupted run can be resumed."
        )


@lru_cache(maxsize=KNOWN_FILES)
def known_sums(path: str, size: int, mtime_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of a file as it is now, and which stretches agree, which all its readers share."""
    content = np.fromfile(_beside(Path(path)), dtype=np.uint64)
    whole = len(content) > 2 and content[:-1].sum(dtype=np.uint64) == content[-1]
    if not whole or int(content[0]) != size:
        raise ValueError("its length or its checksums were changed")
    return content[1:-1], np.zeros(len(content) - 2, dtype=bool)


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ENDING)


def _summed(content: Any) -> np.ndarray:
    """Sum of each stretch; the last one may be shorter, and is filled up with zeros."""
    words = np.frombuffer(content, dtype=np.uint8)
    whole = len(words) // STRETCH * STRETCH
    sums = words[:whole].view(np.uint64).reshape(-1, STRETCH // 8).sum(axis=1, dtype=np.uint64)
    if whole == len(words):
        return sums
    rest = np.zeros(STRETCH, dtype=np.uint8)
    rest[: len(words) - whole] = words[whole:]
    return np.append(sums, rest.view(np.uint64).sum(dtype=np.uint64))
