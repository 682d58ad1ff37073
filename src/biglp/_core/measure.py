"""How long each step of a run took, and with which versions."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from biglp._core.progress import Progress, Task, step_of


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
        Draws the progress.
    """

    def __init__(self, inner: Progress | None = None) -> None:
        self.inner = inner or Progress()
        self.steps: dict[str, Step] = {}

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a timed sweep."""
        return _TimedTask(label, n_rows, self.inner.start(label, n_rows), self.steps)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Pass a copy on; it is no sweep."""
        return self.inner.start_bytes(label, n_bytes)

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Pass on what is to come."""
        self.inner.expect(seconds)

    def start_step(self, label: str) -> Task:
        """Pass a step on; it is no sweep."""
        return self.inner.start_step(label)

    def say(self, message: str) -> None:
        """Pass a message on."""
        self.inner.say(message)


@dataclass(eq=False)
class _TimedTask(Task):
    inner: Task
    steps: dict[str, Step]
    done: int = 0
    began: float = field(default_factory=time.perf_counter)

    def advance(self, rows: int) -> None:
        self.done += rows
        self.inner.advance(rows)

    def finish(self) -> None:
        name = step_of(self.label)
        step = self.steps.setdefault(name, Step(name))
        step.rows += self.done
        step.seconds += time.perf_counter() - self.began
        step.sweeps += 1
        self.inner.finish()


def versions() -> dict[str, str]:
    """Versions of what did the work."""
    import platform

    import numpy as np
    import scipy

    from biglp._version import __version__

    return {
        "biglp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
