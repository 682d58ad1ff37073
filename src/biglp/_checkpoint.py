"""Finished work that survives a crash: small results of each sweep, and which rows are written.

A run folder holds ``run.json`` (what is being run: input, options, version), one ``.npz`` file for
each finished step and journals of the row blocks whose answers are on disk. Every file appears
whole or not at all. Going on with another input or other options is refused with the reason.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from biglp._errors import CheckpointError
from biglp._files import atomic_write

Arrays = dict[str, np.ndarray]
JOURNAL_SECONDS = 2.0
"""Time between two entries of a journal: what a crash can cost."""


class Checkpoint:
    """Keeps nothing: every step is computed. The base of those that keep."""

    def step(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return the small arrays of a step, computed now or in an earlier run."""
        return compute()

    def finished_blocks(self) -> dict[int, int]:
        """First row of each block whose answers are written, and its unreached rows."""
        return {}

    def journal(self, sync: Callable[[], None]) -> Journal | None:
        """Return a journal for the blocks about to be written, if one is kept."""
        return None


class RunFolder(Checkpoint):
    """Keeps finished work in a folder.

    Parameters
    ----------
    folder : Path
        The run folder.
    identity : dict
        What is run, as JSON values: a resumed run must have the same.
    resume : bool
        Go on with what is there; otherwise start afresh.

    Raises
    ------
    CheckpointError
        When there is nothing to go on with, or it belongs to another run.
    """

    def __init__(self, folder: Path, identity: dict[str, Any], *, resume: bool) -> None:
        self.folder = folder
        header = folder / "run.json"
        identity = json.loads(json.dumps(identity))
        if resume and header.exists():
            _check_same(json.loads(header.read_text(encoding="utf-8")), identity, folder)
            return
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        with atomic_write(header) as file:
            file.write(json.dumps(identity, indent=1).encode())

    def step(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Read the step's file, or compute the step and write it."""
        path = self.folder / f"{name}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as stored:
                return dict(stored)
        arrays = compute()
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        with atomic_write(path) as file:
            file.write(buffer.getvalue())
        return arrays

    def finished_blocks(self) -> dict[int, int]:
        """Read all journals; a line that a crash cut short does not count."""
        finished: dict[int, int] = {}
        for path in self.folder.glob("*.journal"):
            for line in path.read_bytes().split(b"\n")[:-1]:
                start, unreached = map(int, line.split())
                finished[start] = unreached
        return finished

    def journal(self, sync: Callable[[], None]) -> Journal | None:
        """Return a journal of this process."""
        return Journal(self.folder, sync)

    def remove(self) -> None:
        """Forget the run, once its results have their final names."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Journal:
    """Notes which blocks are on disk, a few seconds behind the work.

    Parameters
    ----------
    folder : Path
        Run folder.
    sync : callable
        Forces the answers written so far to disk; called before they are noted.
    """

    def __init__(self, folder: Path, sync: Callable[[], None]) -> None:
        self.folder = folder
        self._sync = sync
        self._prepare()

    def _prepare(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, int]] = []
        self._last = time.monotonic()

    def note(self, start: int, unreached: int) -> None:
        """Note that the block from row ``start`` on is written."""
        with self._lock:
            self._waiting.append((start, unreached))
            if time.monotonic() - self._last < JOURNAL_SECONDS:
                return
            entries, self._waiting = self._waiting, []
            self._last = time.monotonic()
        self._append(entries)

    def close(self) -> None:
        """Note what is still waiting."""
        with self._lock:
            entries, self._waiting = self._waiting, []
        self._append(entries)

    def _append(self, entries: list[tuple[int, int]]) -> None:
        if not entries:
            return
        self._sync()
        # One journal a process, so that ranks and workers never write into each other's lines.
        path = self.folder / f"{os.uname().nodename}-{os.getpid()}.journal"
        text = "".join(f"{start} {unreached}\n" for start, unreached in entries)
        with open(path, "ab") as file:
            file.write(text.encode())

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "_sync": self._sync}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.folder, self._sync = state["folder"], state["_sync"]
        self._prepare()


def _check_same(before: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    changed = [
        f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise CheckpointError(
            f"the run in {folder} cannot be resumed, because {'; '.join(changed)}. "
            "Run again with the input and options it was started with, or without --resume to "
            "start afresh."
        )
