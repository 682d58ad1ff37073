"""Progress bars on standard error, with rows a second and the time left."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

from rich.console import Console
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

from biglp._core.progress import Progress, StepLines, Task, step_of
from biglp.cli.console import short

WORDS = {"Gram": "Gram sums", "labels": "labels, written", "suggestions": "candidates"}
"""What a sweep is called on the screen, where its own name says too little."""


class Bars(Progress):
    """One bar a sweep, and messages above them, as a context manager.

    Parameters
    ----------
    console : Console
        A terminal.
    """

    def __init__(self, console: Console) -> None:
        self._last: tuple[str, Any] | None = None
        self._drawing = Drawing(
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=28),
            TaskProgressColumn(),
            _RateColumn(),
            _TimeColumn(),
            console=console,
        )
        self._handler = _LogHandler(console)

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a bar; the sweeps of an iteration, which differ by a number, share one."""
        group, words = step_of(label), WORDS.get(label, label)
        if group != label and self._last is not None and self._last[0] == group:
            bar = self._last[1]
            self._drawing.reset(bar, total=n_rows, description=words)
        else:
            bar = self._drawing.add_task(words, total=n_rows)
        self._last = (group, bar)
        return _BarTask(label, n_rows, self._drawing, bar)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a bar that counts bytes."""
        self._last = None
        bar = self._drawing.add_task(label, total=n_bytes, unit="B")
        return _BarTask(label, n_bytes, self._drawing, bar)

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
    def __init__(self, label: str, n_rows: int, drawing: Drawing, bar: Any) -> None:
        super().__init__(label, n_rows)
        self._drawing, self._bar = drawing, bar

    def advance(self, rows: int) -> None:
        self._drawing.advance(self._bar, rows)

    def finish(self) -> None:
        # The number of rows of a text file is a guess until its end.
        done = self._drawing._tasks[self._bar].completed
        self._drawing.update(self._bar, total=max(done, 1), completed=max(done, 1))


class _RateColumn(ProgressColumn):
    """Rows, or bytes, a second."""

    def render(self, task: DrawnTask) -> Text:
        speed = task.speed
        if task.finished and task.finished_time:
            speed = task.completed / task.finished_time
        unit = task.fields.get("unit", " rows")
        return Text(f"{short(speed)}{unit}/s" if speed else "", style="cyan", justify="right")


class _TimeColumn(ProgressColumn):
    """Time left of a sweep that runs, time taken of one that has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._left = TimeRemainingColumn(compact=True)

    def render(self, task: DrawnTask) -> Text:
        if task.finished:
            return Text(f"{task.finished_time or 0:.1f} s", style="green")
        return Text.assemble(self._left.render(task), " left")


class _LogHandler(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), style="dim", markup=False)
