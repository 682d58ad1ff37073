"""Progress bars on standard error, with rows a second and the time left."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Drawing
from rich.progress import Task as DrawnTask
from rich.text import Text

from biglp._core.course import Course, clock_time
from biglp._core.progress import Progress, StepLines, Task, step_of
from biglp.cli.console import short

WORDS = {"Gram": "Gram sums", "labels": "labels, written", "suggestions": "candidates"}
"""What a sweep is called on the screen, where its own name says too little."""


class Bars(Progress):
    """A bar for the whole run, one for each step, and messages above; as a context manager.

    Parameters
    ----------
    console : Console
        A terminal.
    """

    def __init__(self, console: Console) -> None:
        self._course = Course()
        self._repeated: tuple[str, Any] | None = None
        self._drawing = _Drawing(
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=28),
            TaskProgressColumn(),
            _RateColumn(),
            _TimeColumn(),
            console=console,
        )
        self._handler = _LogHandler(console)

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Begin the bar of the whole run."""
        self._course.expect(seconds)
        self._drawing.follow(self._course)

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a bar; the sweeps of an iteration, which differ by a number, share one."""
        group, words = step_of(label), WORDS.get(label, label)
        self._course.begin(group, n_rows)
        if group == label:
            self._end_iteration()
            bar = self._drawing.add_task(words, total=n_rows)
            return _BarTask(label, n_rows, self, bar)
        if self._repeated is None or self._repeated[0] != group:
            self._end_iteration()
            # How many sweeps there will be is not known: the bar moves, and does not fill.
            self._repeated = (group, self._drawing.add_task(words, total=None))
        bar = self._repeated[1]
        self._drawing.update(bar, description=words)
        return _SweepTask(label, n_rows, self, bar)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a bar that counts bytes."""
        self._end_iteration()
        bar = self._drawing.add_task(label, total=n_bytes, unit="B")
        self._course.begin(label, n_bytes)
        return _BarTask(label, n_bytes, self, bar)

    def start_step(self, label: str) -> Task:
        """Begin a bar that moves and does not fill."""
        self._end_iteration()
        self._course.begin(label)
        return _BarTask(label, 0, self, self._drawing.add_task(label, total=None, unit=None))

    def _end_iteration(self) -> None:
        """Fill the bar of an iteration, which has ended now that something else begins."""
        if self._repeated is not None:
            self.fill(self._repeated[1])
            self._drawing.update(self._repeated[1], description=self._repeated[0])
            self._repeated = None

    def advance(self, bar: Any, rows: int) -> None:
        """Move a bar on."""
        self._course.advance(rows)
        self._drawing.advance(bar, rows)

    def fill(self, bar: Any) -> None:
        """Fill a bar; the number of rows of a text file is a guess until its end."""
        done = self._drawing._tasks[bar].completed
        self._drawing.update(bar, total=max(done, 1), completed=max(done, 1))

    def end(self, bar: Any) -> None:
        """Fill the bar of a step that is over."""
        self._course.end()
        self.fill(bar)

    def say(self, message: str) -> None:
        """Show a message above the bars."""
        self._drawing.console.print(message, style="dim", markup=False)

    def __enter__(self) -> Bars:
        logger = logging.getLogger("biglp")
        logger.addHandler(self._handler)
        logger.setLevel(logging.INFO)
        self._drawing.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_iteration()
        if kind is None:
            self._course.finish()
        self._drawing.stop()
        logging.getLogger("biglp").removeHandler(self._handler)


class Lines(StepLines):
    """A line for each step, where bars cannot be drawn over each other: in a notebook."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def line(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, style="dim", markup=False)


class _BarTask(Task):
    def __init__(self, label: str, n_rows: int, bars: Bars, bar: Any) -> None:
        super().__init__(label, n_rows)
        self._bars, self._bar = bars, bar

    def advance(self, rows: int) -> None:
        self._bars.advance(self._bar, rows)

    def finish(self) -> None:
        self._bars.end(self._bar)


class _SweepTask(_BarTask):
    """A sweep of an iteration, after which another may come."""

    def finish(self) -> None:
        pass


class _Drawing(Drawing):
    """The bars, of which the first is that of the whole run."""

    _course: Course | None = None
    _whole: Any = None

    def follow(self, course: Course) -> None:
        """Draw how far the whole run is."""
        if self._course is None:
            self._whole = self.add_task("whole run", total=1.0, unit=None, course=course)
            self._course = course  # at last: adding draws

    def get_renderables(self) -> Iterable[RenderableType]:
        """Look at the run before all is drawn."""
        if self._course is not None:
            # Not by update, which draws again.
            self._tasks[self._whole].completed = self._course.share()
        yield from super().get_renderables()


class _RateColumn(ProgressColumn):
    """Rows, or bytes, a second."""

    def render(self, task: DrawnTask) -> Text:
        speed = task.speed
        if task.finished and task.finished_time:
            speed = task.completed / task.finished_time
        unit = task.fields.get("unit", " rows")
        shown = speed and unit is not None
        return Text(f"{short(speed or 0)}{unit}/s" if shown else "", style="cyan", justify="right")


class _TimeColumn(ProgressColumn):
    """Time left of a sweep that runs, or of the whole run; time taken of what has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._left = TimeRemainingColumn(compact=True)

    def render(self, task: DrawnTask) -> Text:
        course = task.fields.get("course")
        if course is not None:
            return Text(f"{clock_time(course.left())} left", style="bold")
        if task.finished:
            return Text(f"{task.finished_time or 0:.1f} s", style="green")
        if task.total is None:
            return Text(f"{task.elapsed or 0:.1f} s so far")
        return Text.assemble(self._left.render(task), " left")


class _LogHandler(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), style="dim", markup=False)
