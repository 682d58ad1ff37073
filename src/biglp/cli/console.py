"""What people see: progress bars on standard error, results on standard output."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.progress import Task as Bar
from rich.table import Table
from rich.text import Text

from biglp._core.progress import Progress, Task

WORDS = {
    "Gram": "Gram sums",
    "labels": "labels, written",
    "degrees": "degrees",
    "labelled rows": "labelled rows",
    "suggestions": "candidates",
}

VERDICTS = {True: "[green]shown[/green]", False: "[red]not shown[/red]", None: "cannot be said"}
"""Words for whether an experiment showed what it was to show."""


def results_console() -> Console:
    """Standard output; a hundred columns where nobody looks at it live."""
    live = sys.stdout.isatty()
    return Console(file=sys.stdout, highlight=False, width=None if live else 100)


def errors_console() -> Console:
    """Standard error."""
    live = sys.stderr.isatty()
    return Console(file=sys.stderr, highlight=False, width=None if live else 200)


def plain_table(*names: str, right: Sequence[str] = (), space: int = 2) -> Table:
    """Return a table without lines; the columns named in ``right`` are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, space), header_style="bold")
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


class ConsoleProgress(Progress):
    """Bars with rows a second and the time left, as a context manager; nothing without a terminal.

    Parameters
    ----------
    quiet : bool
        Draw nothing anyhow.
    """

    def __init__(self, quiet: bool = False) -> None:
        console = errors_console()
        self._drawn = console.is_terminal and not quiet
        self._group: tuple[str, Any] | None = None
        self._bars = Bars(
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=28),
            TaskProgressColumn(),
            RateColumn(),
            _TimeColumn(),
            console=console,
            disable=not self._drawn,
        )
        self._handler = _LogHandler(self._bars.console)

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a bar; the sweeps of an iteration share one."""
        if not self._drawn:
            return Task(label, n_rows)
        group = re.sub(r"\s*\d+$", "", label)
        words = WORDS.get(label, label)
        if group != label and self._group is not None and self._group[0] == group:
            bar = self._group[1]
            self._bars.reset(bar, total=n_rows, description=words)
        else:
            bar = self._bars.add_task(words, total=n_rows)
        self._group = (group, bar)
        return _BarTask(label, n_rows, self._bars, bar)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a bar that counts bytes."""
        if not self._drawn:
            return Task(label, n_bytes)
        self._group = None
        bar = self._bars.add_task(label, total=n_bytes, unit="B")
        return _BarTask(label, n_bytes, self._bars, bar)

    def say(self, message: str) -> None:
        """Show a message above the bars."""
        if self._drawn:
            self._bars.console.print(message, style="dim", markup=False)

    def __enter__(self) -> ConsoleProgress:
        if self._drawn:
            logger = logging.getLogger("biglp")
            logger.addHandler(self._handler)
            logger.setLevel(logging.INFO)
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
        logging.getLogger("biglp").removeHandler(self._handler)


class _BarTask(Task):
    def __init__(self, label: str, n_rows: int, bars: Bars, bar: Any) -> None:
        super().__init__(label, n_rows)
        self._bars, self._bar = bars, bar

    def advance(self, rows: int) -> None:
        self._bars.advance(self._bar, rows)

    def finish(self) -> None:
        # The number of rows of a text file is a guess until its end.
        done = self._bars._tasks[self._bar].completed
        self._bars.update(self._bar, total=max(done, 1), completed=max(done, 1))


class RateColumn(ProgressColumn):
    """Rows, or bytes, a second."""

    def render(self, task: Bar) -> Text:
        """Write the rate of a task."""
        speed = task.speed
        if task.finished and task.finished_time:
            speed = task.completed / task.finished_time
        unit = task.fields.get("unit", " rows")
        return Text(f"{short(speed)}{unit}/s" if speed else "", style="cyan", justify="right")


class _TimeColumn(ProgressColumn):
    """Time left of a sweep that runs, time taken of one that has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._left, self._taken = TimeRemainingColumn(compact=True), TimeElapsedColumn()

    def render(self, task: Bar) -> Text:
        if task.finished:
            return Text(f"{task.finished_time or 0:.1f} s", style="green")
        return Text.assemble(self._left.render(task), " left")


class _LogHandler(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), style="dim", markup=False)


def short(number: float) -> str:
    """Write a number with three digits and a letter: 1.23 M."""
    for unit, size in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def seconds(amount: float) -> str:
    """Write a time for people."""
    if amount < 10:
        return f"{amount:.2g} s"
    if amount < 120:
        return f"{amount:.0f} s"
    if amount < 7200:
        return f"{amount / 60:.0f} min"
    return f"{amount / 3600:.1f} h"
