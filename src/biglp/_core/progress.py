"""Progress as events: engines say how far they are, and a subclass of Progress draws it.

The base class draws nothing. :class:`LogProgress` writes lines through ``logging``; :class:`Bar`
draws a bar below them on a terminal, :class:`NotebookBar` in a notebook.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

# --------------------------------------------------------------------------------------------------
# How far a whole run is, and when it will have ended.
#
# Before a run it is guessed how many seconds each of its steps takes. The guesses are rough, but
# how much slower or faster this machine is shows as steps end: what is left is
#
#     the rest of this step + f · the guesses of those to come,    f = taken / guessed so far.
#
# The rest of a step whose rows are counted follows from its own speed. The share that is done is
# the time so far, divided by that and the time left, so that both say the same; it never falls, and
# is not 1 before the run has ended.


LEAST_DONE = 0.02
"""Share of a step's rows from which on its own speed tells how long it takes."""
OVERDUE = 0.2
"""Of a step that takes longer than was guessed, this share of its time so far may be to come."""
SLOWER = 2.0
"""f before a step has ended: a bar that stands still later is worse than one that is slow first."""
ALMOST = 0.99
"""Most that is done before the end."""


class WholeRun:
    """Follows the steps of a run."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self._expected: dict[str, float] = {}
        self._taken = self._guessed = 0.0
        self._step: str | None = None
        self._step_began = 0.0
        self._total = self._done = 0
        self._repeated = False
        self._share = 0.0
        self._ended = False
        self.known = False  # what the run will do; it is said of the step otherwise

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say which steps are to come, in their order, and guess how long they take.

        Said again, these come before those: a job knows what it does last before the fit within it
        knows what it does.
        """
        if not self._expected:  # what came before, such as reading a file, is no part of the course
            self._began = self._clock()
        self.known = True
        self._expected = {**seconds, **self._expected}

    def begin(self, step: str, total: int = 0) -> None:
        """Say that a step begins, of so many rows where they are counted.

        One that begins again is one step of several sweeps, nobody knows how many.
        """
        if step == self._step:
            self._repeated = True
        else:
            self.end()
            self._step, self._step_began, self._repeated = step, self._clock(), False
            if step in self._expected:  # a run that is resumed leaves out what came before
                order = list(self._expected)
                self._expected = {name: self._expected[name] for name in order[order.index(step) :]}
        self._total, self._done = total, 0

    def advance(self, rows: int) -> None:
        """Say that so many more rows of the step are done."""
        self._done += rows

    def end(self) -> None:
        """Say that the step is over."""
        guessed = self._expected.get(self._step or "")
        if guessed is not None:
            self._taken += self._clock() - self._step_began
            self._guessed += guessed
            del self._expected[self._step or ""]
        self._step = None

    def finish(self) -> None:
        """Say that the run is over."""
        self._ended = True

    def left(self) -> float:
        """Guess how many seconds are left."""
        if self._ended:
            return 0.0
        factor = self._taken / self._guessed if self._guessed > 0 else SLOWER
        # A copy: a bar is drawn in a thread of its own.
        later = sum(guess for step, guess in list(self._expected.items()) if step != self._step)
        return self._rest(factor) + factor * later

    def share(self) -> float | None:
        """Share of the run, or of the step, that is done, from 0 to 1; None where nobody knows."""
        if self._ended:
            return 1.0
        if not self.known:
            counted = self._total and not self._repeated
            return min(self._done / self._total, 1.0) if counted else None
        so_far, left = self._clock() - self._began, self.left()
        if so_far + left > 0:
            self._share = max(self._share, min(so_far / (so_far + left), ALMOST))
        return self._share

    def _rest(self, factor: float) -> float:
        """Guess how many seconds of this step are left."""
        if self._step is None:
            return 0.0
        taken = self._clock() - self._step_began
        if self._total and not self._repeated and self._done >= LEAST_DONE * self._total:
            return taken * max(self._total - self._done, 0) / self._done
        guess = factor * self._expected.get(self._step, 0.0)
        return max(guess - taken, OVERDUE * taken)


def clock_time(seconds: float) -> str:
    """Write a time as clocks do: 0:05, 12:40, 1:02:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


# --------------------------------------------------------------------------------------------------


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


class Progress(AbstractContextManager["Progress"]):
    """Starts tasks; this one draws nothing. What draws does so within a ``with`` block."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a sweep over ``n_rows`` rows, or a step that visits none, or few: 0."""
        return Task(label, n_rows)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a download of ``n_bytes`` bytes, which advances by bytes."""
        return Task(label, n_bytes)

    @contextmanager
    def task(self, label: str, n_rows: int = 0) -> Iterator[Task]:
        """Run a sweep or a step: started on entry, finished on success."""
        task = self.start(label, n_rows)
        yield task
        task.finish()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say which steps the run will have, and guess how long each takes."""

    def say(self, message: str) -> None:
        """Tell the user something about the run."""
        logger.debug(message)


def step_of(label: str) -> str:
    """The step that a sweep belongs to: those of an iteration differ by a number at the end."""
    return label.rstrip("0123456789").rstrip()


class StepLines(Progress):
    """One line a step, when it has ended; the sweeps of an iteration are one step.

    Subclasses say where lines go, and whether a step says how far it is in between.
    """

    live = False

    def __init__(self) -> None:
        self.course = WholeRun()
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

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
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
        counted = f"{self.done or self.n_rows:,} {self.unit}" if self.done or self.n_rows else ""
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


# --------------------------------------------------------------------------------------------------
# One bar for a whole run, below a line for each step that has ended. rich is loaded to draw one.


WORDS = {"Gram": "Gram sums", "labels": "labels, written", "suggestions": "candidates"}
"""What a sweep is called on the screen, where its own name says too little."""
SECONDS_BETWEEN = 0.2
"""A notebook is a page in a browser far away: it need not hear of every block."""


def bar_of(progress: StepLines) -> Any:
    """The step, the share of the run (of the step, where no more is known), speed and time left."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    course, task = progress.course, progress.latest
    share, left = course.share(), course.left()
    step = "" if task is None else WORDS.get(task.label, task.label)
    bar = ProgressBar(1.0, share or 0.0, width=14, pulse=share is None)
    row: list[Any] = [Text(f"{step:<20}"), bar]
    if share is not None:
        row.append(Text(f"{share:.0%} of the run" if course.known else f"{share:.0%}"))
    if task is not None and task.done and share != 1.0:
        row.append(Text(f"{task.rate:,.0f} {task.unit}/s", style="cyan"))
    if share and left:
        row.append(Text(f"{clock_time(left)} left", style="bold"))
    table = Table.grid(padding=(0, 1))
    for _ in row:
        table.add_column(no_wrap=True)
    table.add_row(*row)
    return table


class Lines(StepLines):
    """The lines alone."""

    def __init__(self, console: Any) -> None:
        super().__init__()
        self._console = console

    def line(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, style="dim", markup=False)


class Bar(Lines):
    """On a terminal; what is logged stands above the bar as well."""

    def __init__(self, console: Any) -> None:
        from rich.live import Live

        super().__init__(console)
        self._live = Live(
            console=console,
            get_renderable=lambda: bar_of(self),
            refresh_per_second=10,
            transient=True,
        )
        self._handler = logging.Handler(logging.INFO)
        self._handler.emit = lambda record: self.line(record.getMessage())  # type: ignore[method-assign]

    def __enter__(self) -> Self:
        logger.addHandler(self._handler)
        logger.setLevel(logging.INFO)
        self._live.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        self._live.stop()
        logger.removeHandler(self._handler)


class NotebookBar(StepLines):
    """In the output of a notebook's cell, by what every kernel has."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._handle: Any = None
        self._began, self._drawn = time.perf_counter(), 0.0

    def line(self, text: str) -> None:
        """Show a line above the bar."""
        self._lines.append(text)
        self._draw()

    def moved(self) -> None:
        """Move the bar on."""
        if time.perf_counter() - self._drawn >= SECONDS_BETWEEN:
            self._draw()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._lines.append(f"done in {clock_time(time.perf_counter() - self._began)}")
            self._draw(ended=True)

    def _draw(self, ended: bool = False) -> None:
        from IPython.display import display
        from rich.table import Table
        from rich.text import Text

        self._drawn = time.perf_counter()
        shown = Table.grid()
        for line in self._lines:
            shown.add_row(Text(line, style="dim"))
        if not ended:
            shown.add_row(bar_of(self))
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


def shown_progress() -> Progress:
    """Progress where the program runs: a bar in a notebook, lines of the log elsewhere."""
    if type(sys.stdout).__module__.startswith("ipykernel"):
        return NotebookBar()
    return LogProgress()


# --------------------------------------------------------------------------------------------------
# How long each step of a run took, and with which versions.


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
    """Passes progress on and keeps the time of each sweep."""

    def __init__(self, inner: Progress | None = None) -> None:
        self.inner = inner = inner or Progress()
        self.steps: dict[str, Step] = {}
        # What is no sweep goes straight on.
        self.expect, self.say = inner.expect, inner.say  # type: ignore[method-assign]
        self.start_bytes = inner.start_bytes  # type: ignore[method-assign]

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a timed sweep; a step without rows is passed on."""
        task = self.inner.start(label, n_rows)
        return _TimedTask(label, n_rows, task, self.steps) if n_rows else task


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
