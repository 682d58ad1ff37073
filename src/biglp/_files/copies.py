"""Files of a store, copied once to this machine; everything that reads files reads the copies.

A copy has the name that it has in the store, below a folder of its bucket, and a note beside it of
the size and ETag it was made of: it is used again while the store says the same. Large files come
in parts, several at once, and are written in order, so that an interrupted copy goes on where it
stopped. The size is checked, the ETag before and after, and the MD5 where the ETag is one.
"""

from __future__ import annotations

import glob
import hashlib
import json
import re
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from biglp._core.errors import BadRowsError, BigLPError, OutputError, StoreError
from biglp._core.memory import available_memory, format_bytes
from biglp._core.progress import Progress, Task
from biglp._files.local import (
    COPIES,
    PART,
    RESERVE_BYTES,
    atomic_write,
    explained_writing,
    free_space,
    temporary_folder,
)
from biglp._files.uri import Stamp, StorePath, as_place, is_uri, split_inside

# --------------------------------------------------------------------------------------------------
# One file of a store and its local copy: fetched in parts, several at once, written in order.


LOOKS_AT_ONCE = 16
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

    def missing(self, most: int) -> Iterator[tuple[Copy, int, int]]:
        """What an interrupted copy lacks, in parts of ``most`` bytes or fewer, for all readers."""
        first = self._partial.stat().st_size if self._partial.exists() else 0
        end = self.stamp.size
        size = min(most, max(-(-(end - first) // PARTS_AT_ONCE), LEAST_BYTES))
        for start in range(first, end, size):
            yield self, start, min(start + size, end)

    def write(self, parts: Parts, task: Task) -> str:
        """Write the parts that are wanted, in order; return the MD5 of the whole."""
        digest = hashlib.md5(usedforsecurity=False)
        with explained_writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._partial, "ab") as file:
                if file.tell():
                    task.advance(file.tell())
                    with open(self._partial, "rb") as begun:
                        while piece := begun.read(1 << 22):
                            digest.update(piece)
                for data in parts.of(self):
                    file.write(data)
                    if self.stamp.md5 is not None:
                        digest.update(data)
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
    """Parts of files that are on their way, a few at a time, in the order they are wanted in."""

    def __init__(self, pool: ThreadPoolExecutor, copies: Sequence[Copy], size: int) -> None:
        self.pool = pool
        self._coming: deque[tuple[Copy, Future[Any]]] = deque()
        self._waiting = deque(part for copy in copies for part in copy.missing(size))

    def of(self, copy: Copy) -> Iterator[Any]:
        """Yield the parts of a file, and have the next ones fetched meanwhile."""
        while True:
            while self._waiting and len(self._coming) < PARTS_AT_ONCE:
                whose, start, stop = self._waiting.popleft()
                self._coming.append((whose, self.pool.submit(whose.place.read_part, start, stop)))
            if not self._coming or self._coming[0][0] is not copy:
                return
            yield self._coming.popleft()[1].result()

    def stop(self) -> None:
        """Fetch nothing more."""
        for _, part in self._coming:
            part.cancel()


LEAST_PART, MOST_PART = 8 << 20, 128 << 20
"""Bytes that are asked for at once: large parts save requests, small ones memory."""
MOST_COPIES = 4
"""How often a file is copied whose MD5 is not what its ETag says."""

Result = TypeVar("Result")
_current: ContextVar[Copies | None] = ContextVar("copies", default=None)
_alive: weakref.WeakSet[Copies] = weakref.WeakSet()
"""All that anybody holds: messages call their files by the names they have in their stores."""


class Copies:
    """A folder of copies."""

    def __init__(
        self,
        folder: Path | None = None,
        progress: Progress | None = None,
        memory: int | None = None,
    ) -> None:
        self._folder = folder
        self._progress = progress or Progress()
        share = (memory or available_memory()) // (8 * PARTS_AT_ONCE)
        self._part = min(max(share, LEAST_PART), MOST_PART)
        self._plain_tags = False
        self.remembered: dict[Any, Any] = {}
        self._known: dict[str, str] = {}
        self._stamps: dict[str, Stamp] = {}
        _alive.add(self)

    @cached_property
    def folder(self) -> Path:
        """The folder, made when it is needed."""
        return temporary_folder(self) if self._folder is None else self._folder

    def local(self, names: Sequence[str]) -> tuple[str, ...]:
        """Local names of files: their own, or those of copies, made now where there are none."""
        new = [name for name in names if is_uri(name) and name not in self._known]
        stamps = self.stamps([as_place(name) for name in new])
        wanted = {name: Copy(self.folder, as_place(name), stamps[name]) for name in new}
        missing = [copy for copy in wanted.values() if not copy.is_there()]
        if missing:
            self._make(missing)
        for name, copy in wanted.items():
            self._known[name] = str(copy.path)
        return tuple(self._known.get(name, name) for name in names)

    def stamps(self, places: Sequence[StorePath]) -> dict[str, Stamp]:
        """Size and tag of files by name, as they were when they were first looked at."""
        new = [place for place in places if str(place) not in self._stamps]
        with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
            self._stamps |= zip(map(str, new), pool.map(StorePath.stamp, new), strict=True)
        return {str(place): self._stamps[str(place)] for place in places}

    def _make(self, copies: Sequence[Copy]) -> None:
        total = sum(copy.stamp.size for copy in copies)
        free = free_space(self.folder)
        if total + RESERVE_BYTES > free:
            raise OutputError(
                f"{copies[0].place} and what belongs to it are copied to this machine before they "
                f"are read, which takes {format_bytes(total)}; {format_bytes(free)} are free in "
                f"{self.folder}. Make room, set TMPDIR to a folder on another disk, or name one "
                "with cache= (--cache)."
            )
        what = copies[0].place.name if len(copies) == 1 else f"{len(copies)} files"
        task = self._progress.start_bytes(f"copying {what}", total)
        with ThreadPoolExecutor(PARTS_AT_ONCE, "biglp-copy") as pool:
            parts = Parts(pool, copies, self._part)
            try:
                for copy in copies:
                    self._finish(copy, parts, task)
            finally:
                parts.stop()
        task.finish()

    def _finish(self, copy: Copy, parts: Parts, task: Task) -> None:
        """Write the parts of a copy, check it, and give it its name."""
        seen: set[str] = set()
        for number in range(1, MOST_COPIES + 1):
            found = copy.write(parts, task)
            if self._is_right(found, copy.stamp.md5, seen):
                break
            copy.forget()
            seen.add(found)
            size = min(copy.stamp.size // (number + 1) + 1, self._part)
            parts, task = Parts(parts.pool, [copy], size), Task("", 0)
        else:
            raise StoreError(
                f"{copy.place} does not arrive as it is stored: {MOST_COPIES} copies differ from "
                "each other and from its ETag. Check the connection, then run the same again."
            )
        if copy.place.stamp() != copy.stamp:
            copy.forget()
            raise BadRowsError(
                f"{copy.place} changed while it was being copied; it had {copy.stamp} before. "
                "Let no other program write to it, and run again."
            )
        copy.keep()

    def _is_right(self, found: str, expected: str | None, seen: set[str]) -> bool:
        """Whether a copy is to be believed, by its MD5.

        Where a store encrypts, an ETag may look like an MD5 and be none: two copies that agree, cut
        into different parts, are as good then.
        """
        if expected not in (None, found) and found in seen:
            self._plain_tags = True
        return self._plain_tags or expected in (None, found)


@contextmanager
def copying_to(
    folder: Path | None, progress: Progress | None = None, memory: int | None = None
) -> Iterator[Copies]:
    """Have files of stores copied to one folder; inside another such block that one's is used."""
    known = _current.get()
    if known is not None:
        yield known
        return
    made = Copies(folder, progress, memory)
    token = _current.set(made)
    try:
        with told_by_origin():
            yield made
    finally:
        _current.reset(token)


def asked_once(what: Callable[[Any], Result], place: Any) -> Result:
    """What was found out about a place; inside :func:`copying_to` a store is asked once.

    It saves requests, and files that appear during a run do not change what it reads.
    """
    copies = _current.get()
    if copies is None:
        return what(place)
    key = what, place
    if key not in copies.remembered:
        copies.remembered[key] = what(place)
    return copies.remembered[key]


def stamps_once(places: Sequence[StorePath]) -> dict[str, Stamp]:
    """Size and tag of files by name; inside :func:`copying_to` they are looked at once."""
    return (_current.get() or Copies()).stamps(places)


def local_names(owner: object, names: Sequence[str]) -> tuple[str, ...]:
    """Local names of files, some of which may be in stores; copies live as long as ``owner``."""
    copies = _current.get() or Copies()
    keep_alive(owner, copies)
    parts = [split_inside(name) for name in names]
    with told_by_origin():
        files = copies.local([file for file, _ in parts])
    return tuple(file + inside for file, (_, inside) in zip(files, parts, strict=True))


def keep_alive(owner: object, thing: object) -> None:
    """Keep something as long as ``owner`` is there."""
    weakref.finalize(owner, lambda kept: None, thing)


def origin(text: str) -> str:
    """The same text with files called by the names they have in their stores."""
    for copies in list(_alive):
        for name, local in list(copies._known.items()):
            if local in text:
                text = text.replace(local, name)
    return text


@contextmanager
def told_by_origin() -> Iterator[None]:
    """Have errors name files as they are called in their stores, not their copies."""
    try:
        yield
    except BigLPError as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (origin(error.args[0]), *error.args[1:])
        raise


# --------------------------------------------------------------------------------------------------
# Which files there are: in a folder or fitting a pattern, on this machine or in a store.


def names_below(folder: Any) -> list[str]:
    """Names of all files in a folder and its folders, relative to it."""
    if isinstance(folder, StorePath):
        return asked_once(StorePath.files, folder)
    return [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]


def is_folder(place: Any) -> bool:
    """Whether a place is a folder."""
    return bool(names_below(place)) if isinstance(place, StorePath) else place.is_dir()


def fitting(pattern: Any) -> list[Any]:
    """Files that fit a pattern, in order of name."""
    if not isinstance(pattern, StorePath):
        found = sorted(glob.glob(str(pattern), recursive=True))
        if not found:
            raise BadRowsError(f"no file fits the pattern {pattern} (looked from {Path.cwd()}).")
        return list(map(Path, found))
    start = re.split(r"[*?[]", pattern.path)[0].rpartition("/")[0]
    folder, wanted = replace(pattern, path=start), as_regex(pattern.path)
    below = [folder / name for name in names_below(folder)]
    fit = [file for file in below if wanted.fullmatch(file.path)]
    if not fit:
        raise BadRowsError(f"no file fits the pattern {pattern} (of {len(below):,} in {folder}).")
    return fit


def as_regex(pattern: str) -> re.Pattern[str]:
    """A pattern as the shell knows it: ``*`` stays within a folder, and means no hidden names."""
    words = {"*": "[^/]*", "?": "[^/]"}

    def one_name(part: str) -> str:
        pieces = re.split(r"(\*+|\?|\[[^]]+\])", part)
        text = (
            piece if piece[:1] == "[" else words.get(piece[:1]) or re.escape(piece)
            for piece in pieces
        )
        hidden = r"(?!\.)" if part[:1] in ("*", "?", "[") else ""
        return hidden + "".join(text).replace("[!", "[^")

    *folders, name = pattern.split("/")
    inner = (r"(?:(?!\.)[^/]+/)*" if each == "**" else one_name(each) + "/" for each in folders)
    return re.compile("".join(inner) + one_name(name))
