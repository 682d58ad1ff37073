"""Progress as events: engines say how far they are, and a subclass of Progress draws it.

The base class draws nothing. :class:`LogProgress` writes a line every few seconds through
``logging``; the command line draws bars.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

logger = logging.getLogger("biglp")


@dataclass(eq=False)
class Task:
    """One sweep in progress."""

    label: str
    n_rows: int

    def advance(self, rows: int) -> None:
        """Say that ``rows`` more rows are done."""

    def finish(self) -> None:
        """Say that the sweep is over."""


class Progress:
    """Starts tasks; this one draws nothing."""

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a sweep over ``n_rows`` rows."""
        return Task(label, n_rows)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a download of ``n_bytes`` bytes, which advances by bytes."""
        return Task(label, n_bytes)

    @contextmanager
    def task(self, label: str, n_rows: int) -> Iterator[Task]:
        """Run a sweep: started on entry, finished on success."""
        task = self.start(label, n_rows)
        yield task
        task.finish()

    def say(self, message: str) -> None:
        """Tell the user something about the run."""
        logger.debug(message)


class LogTask(Task):
    """A sweep that logs a line every few seconds and one at its end."""

    SECONDS_BETWEEN_LINES = 2.0

    def __init__(self, label: str, n_rows: int, unit: str = "rows") -> None:
        super().__init__(label, n_rows)
        self.unit = unit
        self.done = 0
        self.began = self.last_line = time.perf_counter()

    def advance(self, rows: int) -> None:
        """Count rows and log when the last line is old."""
        self.done += rows
        now = time.perf_counter()
        if now - self.last_line >= self.SECONDS_BETWEEN_LINES and self.done < self.n_rows:
            self.last_line = now
            rate = self.done / (now - self.began)
            logger.info(
                "%s: %.0f %% (%s of %s %s, %s %s/s, %.0f s left)",
                self.label,
                100 * self.done / self.n_rows,
                f"{self.done:,}",
                f"{self.n_rows:,}",
                self.unit,
                f"{rate:,.0f}",
                self.unit,
                (self.n_rows - self.done) / rate,
            )

    def finish(self) -> None:
        """Log how long the sweep took."""
        seconds = time.perf_counter() - self.began
        logger.info("%s: %s %s in %.2f s", self.label, f"{self.n_rows:,}", self.unit, seconds)


class LogProgress(Progress):
    """Progress through ``logging``, shown on standard error where the program has not set it up."""

    def __init__(self) -> None:
        if not logger.handlers and not logging.getLogger().handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("biglp: %(message)s"))
            logger.addHandler(handler)
        if logger.getEffectiveLevel() > logging.INFO:
            logger.setLevel(logging.INFO)

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a logged sweep."""
        return LogTask(label, n_rows)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a logged download."""
        return LogTask(label, n_bytes, "bytes")

    def say(self, message: str) -> None:
        """Log a message."""
        logger.info(message)
