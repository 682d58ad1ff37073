"""One file of a store and its local copy: fetched in parts, several at once, written in order."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.checkpoint import COPIES
from biglp._core.files import PART, atomic_write, explained_writing
from biglp._core.places import StorePath
from biglp._core.progress import Task
from biglp._core.stores import Stamp

PARTS_AT_ONCE = 4
LEAST_BYTES = 8 << 20
"""A file of this size or less is not worth cutting up."""
NOTE = ".copied"
"""Ending of the note beside a copy."""


class Copy:
    """One file of a store, and its copy."""

    def __init__(self, folder: Path, place: StorePath, stamp: Stamp) -> None:
        self.place, self.stamp = place, stamp
        store = f"{place.scheme}-{place.host}"
        if place.query:
            store += "-" + hashlib.sha256(place.query.encode()).hexdigest()[:8]
        parts = [part for part in place.path.split("/") if part not in ("", ".", "..")]
        self.path = folder.absolute().joinpath(COPIES, store, *parts)
        digest = hashlib.sha256(repr(self.stamp).encode()).hexdigest()[:16]
        self._partial = self.path.with_name(f".{self.path.name}.{digest}{PART}")
        self._note = self.path.with_name(f".{self.path.name}{NOTE}")

    def is_there(self) -> bool:
        """Whether the copy is whole and of the file as it is now."""
        try:
            known = json.loads(self._note.read_text(encoding="utf-8"))
            size = self.path.stat().st_size
        except (OSError, ValueError):
            return False
        return known == list(self.stamp) and size == self.stamp.size

    def begun(self) -> int:
        """Bytes that an interrupted copy has."""
        return self._partial.stat().st_size if self._partial.exists() else 0

    def write(self, parts: Parts, task: Task) -> str:
        """Write the parts that are wanted, in order; return the MD5 of the whole."""
        digest = hashlib.md5(usedforsecurity=False)
        with explained_writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._partial, "ab") as file:
                if file.tell():
                    task.advance(file.tell())
                    _hash_file(self._partial, digest)
                for data in parts.of(self):
                    file.write(data.data)
                    if self.stamp.md5 is not None:
                        digest.update(data.data)
                    task.advance(len(data))
        return digest.hexdigest()

    def keep(self) -> None:
        """Give the copy its name."""
        with explained_writing(self.path):
            self._note.unlink(missing_ok=True)
            self._partial.replace(self.path)
        with atomic_write(self._note) as file:
            file.write(json.dumps(self.stamp).encode())

    def forget(self) -> None:
        """Throw away what was copied."""
        self._partial.unlink(missing_ok=True)


class Parts:
    """Parts of files that are on their way, a few at a time, in the order they are wanted in.

    Parameters
    ----------
    pool : ThreadPoolExecutor
    copies : sequence of Copy
    size : int
        Most bytes of a part.
    """

    def __init__(self, pool: ThreadPoolExecutor, copies: Sequence[Copy], size: int) -> None:
        self.pool = pool
        self._coming: deque[tuple[Copy, Future[Any]]] = deque()
        self._waiting = deque(part for copy in copies for part in _cut(copy, size))
        self._open = threading.local()

    def of(self, copy: Copy) -> Iterator[np.ndarray]:
        """Yield the parts of a file, and have the next ones fetched meanwhile."""
        while True:
            while self._waiting and len(self._coming) < PARTS_AT_ONCE:
                whose, start, stop = self._waiting.popleft()
                self._coming.append((whose, self.pool.submit(self._fetch, whose, start, stop)))
            if not self._coming or self._coming[0][0] is not copy:
                return
            yield self._coming.popleft()[1].result()

    def _fetch(self, copy: Copy, start: int, stop: int) -> np.ndarray:
        """Read a part; each thread has the file open that it read last."""
        if getattr(self._open, "whose", None) is not copy:
            self._open.whose, self._open.file = copy, copy.place.reader()
        return copy.place.read_part(self._open.file, start, stop)

    def stop(self) -> None:
        """Fetch nothing more."""
        for _, part in self._coming:
            part.cancel()


def _cut(copy: Copy, most: int) -> Iterator[tuple[Copy, int, int]]:
    """What is missing of a file, in parts of ``most`` bytes or fewer, for all readers alike."""
    first, end = copy.begun(), copy.stamp.size
    size = min(most, max(-(-(end - first) // PARTS_AT_ONCE), LEAST_BYTES))
    for start in range(first, end, size):
        yield copy, start, min(start + size, end)


def _hash_file(path: Path, digest: Any) -> None:
    with open(path, "rb") as file:
        while piece := file.read(1 << 22):
            digest.update(piece)
