"""How long each step of a run took, and with which versions."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from biglp._core.progress import Progress, Task


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
