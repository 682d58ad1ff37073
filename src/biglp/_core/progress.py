"""Progress as events: engines say how far they are, and a subclass of Progress draws it.

The base class draws nothing. :class:`LogProgress` writes lines through ``logging``;
:mod:`biglp._core.bars` draws a bar below them, on a terminal and in a notebook.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from biglp._core.course import Course

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
    """Starts tasks; this one draws nothing. What draws does so within a ``with`` block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

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

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say which steps the run will have, and guess how long each takes."""

    def start_step(self, label: str) -> Task:
        """Begin a step that visits no rows, or few."""
        return Task(label, 0)

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Run a step that visits no rows, or few."""
        task = self.start_step(label)
        yield
        task.finish()

    def say(self, message: str) -> None:
        """Tell the user something about the run."""
        logger.debug(message)


def step_of(label: str) -> str:
    """The step that a sweep belongs to: those of an iteration differ by a number at the end."""
    return label.rstrip("0123456789").rstrip()


class StepLines(Progress):
    """One line a step, when it has ended; the sweeps of an iteration are one step.

    Subclasses say where lines go, and whether a step says how far it is in between.

    Attributes
    ----------
    course : Course
        How far the whole run is.
    latest : LineTask or None
        The sweep that began last.
    """

    live = False

    def __init__(self) -> None:
        self.course = Course()
        self.latest: LineTask | None = None

    def line(self, text: str) -> None:
        """Show a line."""

    def moved(self) -> None:
        """Show how far it is, where that is shown."""

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say which steps are to come."""
        self.course.expect(seconds)

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a sweep."""
        return self._begin(LineTask(label, n_rows, self, "rows", step_of(label)))

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a download."""
        return self._begin(LineTask(label, n_bytes, self, "bytes", label))

    def start_step(self, label: str) -> Task:
        """Begin a step whose rows are not counted."""
        return self._begin(LineTask(label, 0, self, "", label))

    def say(self, message: str) -> None:
        """Show a message."""
        self.line(message)

    def _begin(self, task: LineTask) -> LineTask:
        last = self.latest
        if last is not None and last.step == task.step:
            task.sweeps, task.seconds = last.sweeps, last.seconds
        elif last is not None and last.is_repeated:
            last.tell()  # only now is it known to have been the last sweep of its iteration
        self.course.begin(task.step, task.n_rows)
        self.latest = task
        self.moved()
        return task

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.course.finish()
            if self.latest is not None and self.latest.is_repeated:
                self.latest.tell()


class LineTask(Task):
    """A sweep that is told in a line."""

    SECONDS_BETWEEN_LINES = 2.0

    def __init__(self, label: str, n_rows: int, progress: StepLines, unit: str, step: str) -> None:
        super().__init__(label, n_rows)
        self.progress, self.unit, self.step = progress, unit, step
        self.done, self.sweeps, self.seconds = 0, 0, 0.0
        self.began = self.last_line = time.perf_counter()

    @property
    def is_repeated(self) -> bool:
        """Whether it is a sweep of an iteration."""
        return self.step != self.label

    @property
    def rate(self) -> float:
        """Rows, or bytes, a second."""
        return self.done / max(time.perf_counter() - self.began, 1e-9)

    def advance(self, rows: int) -> None:
        """Count rows, and say how far it is when the last line is old."""
        self.done += rows
        self.progress.course.advance(rows)
        self.progress.moved()
        now = time.perf_counter()
        old = now - self.last_line >= self.SECONDS_BETWEEN_LINES
        if self.progress.live and old and self.done < self.n_rows:
            self.last_line, rate = now, self.rate
            self.progress.line(
                f"{self.label}: {100 * self.done / self.n_rows:.0f} % ({self.done:,} of "
                f"{self.n_rows:,} {self.unit}, {rate:,.0f} {self.unit}/s, "
                f"{(self.n_rows - self.done) / rate:.0f} s left)"
            )

    def finish(self) -> None:
        """Take the time, and tell it where the step has ended."""
        self.sweeps += 1
        self.seconds += time.perf_counter() - self.began
        if not self.is_repeated:
            self.progress.course.end()
            self.tell()

    def tell(self) -> None:
        """Say how long the step took."""
        # The number of rows of a text file is a guess until its end.
        counted = f"{self.done or self.n_rows:,} {self.unit}" if self.unit else ""
        times = f", {self.sweeps} times," if self.is_repeated else ""
        seconds = f"{self.seconds:.2f} s"
        self.progress.line(
            f"{self.step}: {counted}{times} in {seconds}" if counted else f"{self.step}: {seconds}"
        )


class LogProgress(StepLines):
    """Progress through ``logging``, shown to people where the program has not set it up.

    On a terminal, and in a program that has set up logging, long sweeps say how far they are.
    """

    def __init__(self) -> None:
        super().__init__()
        if not logger.handlers and not logging.getLogger().handlers:
            # A notebook shows standard error as if something had gone wrong.
            in_notebook = type(sys.stdout).__module__.startswith("ipykernel")
            handler = _OwnHandler(sys.stdout if in_notebook else None)
            handler.setFormatter(logging.Formatter("biglp: %(message)s"))
            logger.addHandler(handler)
        if logger.getEffectiveLevel() > logging.INFO:
            logger.setLevel(logging.INFO)
        own = [handler for handler in logger.handlers if isinstance(handler, _OwnHandler)]
        self.live = all(handler.stream.isatty() for handler in own)

    def line(self, text: str) -> None:
        """Log a line."""
        logger.info(text)


class _OwnHandler(logging.StreamHandler):
    """The handler that is added where there is none."""


def shown_progress() -> Progress:
    """Progress where the program runs: a bar in a notebook, lines of the log elsewhere."""
    if type(sys.stdout).__module__.startswith("ipykernel"):
        from biglp._core.bars import NotebookBar

        return NotebookBar()
    return LogProgress()
