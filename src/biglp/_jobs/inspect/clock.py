"""Processor time of a few trials, and the clock time that a run with it would take.

A trial of some milliseconds on a busy machine takes any clock time: its threads wait for others.
Its processor time is steady. How much clock time goes by for a second of it, for one thread and for
all of them, is told by all trials together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SWEEPS = frozenset({"k-means", "GLNP", "degrees", "Gram", "labels"})
"""Steps that all threads share; the others run in one."""


@dataclass
class Spent:
    """Time that was measured, in seconds."""

    cpu: float = 0.0
    clock: float = 0.0

    @property
    def pace(self) -> float | None:
        """Clock time for a second of processor time; None where nothing was measured."""
        return self.clock / self.cpu if self.cpu > 0 else None


@dataclass
class Pace:
    """How clock time and processor time go together on this machine, as it is now."""

    n_threads: int = 1
    alone: Spent = field(default_factory=Spent)
    sweeps: Spent = field(default_factory=Spent)

    @contextmanager
    def timed(self, name: str, steps: dict[str, float]) -> Iterator[None]:
        """Measure a step: its processor time is written to ``steps``."""
        cpu, clock = time.process_time(), time.perf_counter()
        yield
        steps[name] = time.process_time() - cpu
        spent = self.sweeps if name in SWEEPS else self.alone
        spent.cpu += steps[name]
        spent.clock += time.perf_counter() - clock

    def seconds(self, steps: dict[str, float]) -> float:
        """Clock time of steps whose processor time is known."""
        alone = max(self.alone.pace or 1.0, 1.0)
        sweeps = max(self.sweeps.pace or alone / self.n_threads, 1.0 / self.n_threads)
        return sum(cpu * (sweeps if name in SWEEPS else alone) for name, cpu in steps.items())
