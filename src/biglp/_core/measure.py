"""How long each step of a run took, and how much memory the process needed at most."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from biglp._core.progress import Progress, Task

POLL_SECONDS = 0.02


@dataclass
class Step:
    """One sweep that has ended; sweeps of one kind (k-means 1, k-means 2…) count together."""

    name: str
    rows: int = 0
    seconds: float = 0.0
    sweeps: int = 0

    def as_json(self) -> dict[str, Any]:
        """Facts for a summary."""
        return {
            "step": self.name,
            "sweeps": self.sweeps,
            "rows": self.rows,
            "seconds": round(self.seconds, 4),
            "rows_per_second": round(self.rows / self.seconds) if self.seconds > 0 else None,
        }


class StepClock(Progress):
    """Passes progress on and keeps the time of each sweep.

    Parameters
    ----------
    inner : Progress, optional
        Who draws.
    """

    def __init__(self, inner: Progress | None = None) -> None:
        self.inner = inner or Progress()
        self.steps: dict[str, Step] = {}

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a timed sweep."""
        return _TimedTask(self.inner.start(label, n_rows), self)

    def say(self, message: str) -> None:
        """Pass a message on."""
        self.inner.say(message)

    def add(self, label: str, rows: int, seconds: float) -> None:
        """Count a sweep that has ended."""
        name = label.rstrip("0123456789").strip()
        step = self.steps.setdefault(name, Step(name))
        step.rows += rows
        step.seconds += seconds
        step.sweeps += 1


class _TimedTask(Task):
    def __init__(self, inner: Task, clock: StepClock) -> None:
        super().__init__(inner.label, inner.n_rows)
        self._inner, self._clock = inner, clock
        self._done = 0
        self._began = time.perf_counter()

    def advance(self, rows: int) -> None:
        self._done += rows
        self._inner.advance(rows)

    def finish(self) -> None:
        self._clock.add(self.label, self._done, time.perf_counter() - self._began)
        self._inner.finish()


class PeakMemory:
    """Watches this process's own memory from a thread, as a context manager.

    Attributes
    ----------
    peak : int
        Most bytes that were resident at once, without file pages that the system can drop.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="biglp-memory", daemon=True)

    def _watch(self) -> None:
        while not self._end.wait(POLL_SECONDS):
            self.peak = max(self.peak, private_memory())

    def __enter__(self) -> PeakMemory:
        self.peak = private_memory()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()
        self.peak = max(self.peak, private_memory())


def private_memory(process: int | str = "self") -> int:
    """Bytes of memory that belong to a process alone: resident, less clean pages of files.

    0 for another process that has ended.
    """
    try:
        with open(f"/proc/{process}/status", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * sum(int(lines[name].split()[0]) for name in ("RssAnon", "RssShmem"))
    except (OSError, KeyError, ValueError):
        if process != "self":
            return 0  # it has ended, or cannot be looked at: this process's figure is not its own
        return _largest_resident()  # not Linux: the nearest there is


def _largest_resident() -> int:
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def versions() -> dict[str, str]:
    """Versions of what did the work."""
    import platform

    import numpy as np
    import scipy

    from biglp._core.version import __version__

    return {
        "biglp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
