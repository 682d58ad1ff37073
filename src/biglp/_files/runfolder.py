"""Finished work that survives a crash: small results of each sweep, and which rows are written.

A run folder holds ``run.json`` (what is being run: input, options, version), one ``.npz`` file for
each finished step and journals of the row blocks whose answers are on disk. Every file appears
whole or not at all. Going on with another input or other options is refused with the reason.
"""

from __future__ import annotations

import io
import json
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from biglp._core.errors import CheckpointError
from biglp._files.local import COPIES, atomic_write, explained_writing, hold, remove_held

Arrays = dict[str, np.ndarray]
Tally = tuple[int, dict[int, int]]
"""What is known about a written block: its unreached rows, and the rows of each class code."""
JOURNAL_SECONDS = 2.0
"""Time between two entries of a journal: what a crash can cost."""
Once = Callable[[Callable[[], Any]], Any]
HEADER, LOCK = "run.json", "lock"


class Checkpoint:
    """Keeps nothing: every step is computed. The base of those that keep."""

    def step(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return the small arrays of a step, computed now or in an earlier run."""
        return compute()

    def finished_blocks(self) -> dict[int, Tally]:
        """First row of each block whose answers are written, and its tally."""
        return {}

    def journal(self, sync: Callable[[], None]) -> Journal | None:
        """Return a journal for the blocks about to be written, if one is kept."""
        return None


class RunFolder(Checkpoint):
    """Keeps finished work in a folder, which one process at a time may use."""

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, Any],
        *,
        resume: bool,
        once: Once | None = None,
    ) -> None:
        self.folder = folder
        self._once: Once = once or (lambda action: action())
        self.lock: IO[bytes] | None = None
        try:
            self._once(lambda: self._begin(identity, resume))
        except BaseException:
            self.close()
            raise

    def _begin(self, identity: Mapping[str, Any], resume: bool) -> None:
        with explained_writing(self.folder):
            self.lock = hold(self.folder / LOCK)
        if self.lock is None:
            raise CheckpointError(
                f"another process is at work in {self.folder}; wait until it has ended, "
                "or choose another output folder."
            )
        identity = dict(json.loads(json.dumps(identity)))
        if resume and (self.folder / HEADER).exists():
            _check_same(read_identity(self.folder), identity, self.folder)
            return
        for path in self.folder.iterdir():
            if path.name in (LOCK, COPIES):  # a copy knows what it is of; it may be older than this
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        with atomic_write(self.folder / HEADER) as file:
            file.write(json.dumps(identity).encode())

    def step(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Read the step's file, or compute the step and write it."""
        path = self.folder / f"{name}.npz"

        def load(path: Path) -> Arrays:
            with np.load(path, allow_pickle=False) as stored:
                return dict(stored)

        found = self._once(lambda: _read(path, load) if path.exists() else None)
        if found is not None:
            return found
        arrays = compute()

        def save() -> Arrays:
            buffer = io.BytesIO()
            np.savez(buffer, **arrays)  # type: ignore[arg-type]
            with atomic_write(path) as file:
                file.write(buffer.getvalue())
            return arrays

        return self._once(save)  # one process's arrays for all: processors round differently

    def confirm(self, facts: Mapping[str, Any]) -> None:
        """Add what has been found out about the run; a resumed run must find the same."""

        def check() -> None:
            path = self.folder / "facts.json"
            now = json.loads(json.dumps(facts))
            if path.exists():
                before = _read(path, lambda path: dict(json.loads(path.read_text("utf-8"))))
                _check_same(before, now, self.folder)
                return
            with atomic_write(path) as file:
                file.write(json.dumps(now).encode())

        self._once(check)

    def finished_blocks(self) -> dict[int, Tally]:
        """Read all journals; a line that a crash cut short does not count."""
        return self._once(lambda: dict(journal_entries(self.folder)))

    def forget_blocks(self) -> None:
        """Have all rows written again."""

        def remove() -> None:
            for path in self.folder.glob("*.journal"):
                path.unlink()

        self._once(remove)

    def journal(self, sync: Callable[[], None]) -> Journal | None:
        """Return a journal of this process."""
        return Journal(self.folder, sync)

    def close(self) -> None:
        """Let other processes use the folder."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def remove(self) -> None:
        """Forget the run, once its results have their final names; for the one that moved them."""
        if self.lock is not None:
            remove_held(self.folder / LOCK, self.lock, first=HEADER)
            self.lock.close()
            self.lock = None


@dataclass(eq=False)
class Journal:
    """Notes which blocks are on disk, a few seconds behind the work."""

    folder: Path
    sync: Callable[[], None]
    _token: str = field(default_factory=lambda: secrets.token_hex(8))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[tuple[int, Tally]] = field(default_factory=list)
    _last: float = field(default_factory=time.monotonic)

    def note(self, start: int, tally: Tally) -> None:
        """Note that the block from row ``start`` on is written."""
        with self._lock:
            self._waiting.append((start, tally))
            due = time.monotonic() - self._last >= JOURNAL_SECONDS
        if due:
            self.close()

    def close(self) -> None:
        """Write the notes that are waiting; more may follow."""
        with self._lock:
            entries, self._waiting = self._waiting, []
            self._last = time.monotonic()
        if not entries:
            return
        self.sync()
        lines = []
        for start, (unreached, counts) in entries:
            lines.append(f"{start} {unreached}")
            lines += [f" {code}:{count}" for code, count in counts.items()]
            lines.append("\n")
        # A name of its own: ranks and workers never write into each other's lines, nor a new
        # process behind the half line of one that was killed.
        path = self.folder / f"{self._token}.journal"
        with explained_writing(path), open(path, "ab") as file:
            file.write("".join(lines).encode())

    def __reduce__(self) -> tuple[Any, ...]:
        return _journal_here, (self.folder, self.sync, self._token)


_here: dict[str, Journal] = {}


def _journal_here(folder: Path, sync: Callable[[], None], token: str) -> Journal:
    """Return the journal that this process keeps for one of another process, made when needed.

    Work comes in many small parcels; a journal for each would never be old enough to be written.
    """
    if token not in _here:
        _here.clear()
        _here[token] = Journal(folder, sync)
    return _here[token]


def read_identity(folder: Path) -> dict[str, Any]:
    """Return what the run in a folder is."""
    return _read(folder / HEADER, lambda path: dict(json.loads(path.read_text(encoding="utf-8"))))


def journal_entries(folder: Path) -> Iterator[tuple[int, Tally]]:
    """First row and tally of every block that the journals of a run folder name."""
    for path in folder.glob("*.journal"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            start, unreached, *counts = line.split()
            pairs = (pair.split(b":") for pair in counts)
            yield int(start), (int(unreached), {int(code): int(count) for code, count in pairs})


def _read(path: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(path)
    except Exception as error:  # a damaged file can fail in any of its layers
        raise CheckpointError(
            f"{path} is damaged ({error}), so the run cannot be resumed; start afresh."
        ) from error


def _check_same(before: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    if changed := differences(before, now):
        raise CheckpointError(
            f"the run in {folder} cannot be resumed, because {'; '.join(changed)}. "
            "Run again with the input and options it was started with, or start afresh with "
            "--overwrite instead of --resume."
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say what differs between two descriptions of a run, in words."""
    old, new = _flat(before), _flat(now)
    return [
        f"{name} was {old.get(name, 'not given')} and is now {new.get(name, 'not given')}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _flat(value: Mapping[str, Any], within: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, part in value.items():
        if isinstance(part, Mapping):
            flat |= _flat(part, f"{within}{name} ")
        else:
            flat[within + name] = part if isinstance(part, str) else json.dumps(part)
    return flat
