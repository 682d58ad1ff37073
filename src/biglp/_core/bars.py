"""One bar for a whole run, below a line for each step that has ended."""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from biglp._core.progress import StepLines, clock_time, logger

WORDS = {"Gram": "Gram sums", "labels": "labels, written", "suggestions": "candidates"}
"""What a sweep is called on the screen, where its own name says too little."""
SECONDS_BETWEEN = 0.2
"""A notebook is a page in a browser far away: it need not hear of every block."""


def bar_of(progress: StepLines) -> Table:
    """The step, the share of the run (of the step, where no more is known), speed and time left."""
    course, task = progress.course, progress.latest
    share, left = course.share(), course.left()
    step = "" if task is None else WORDS.get(task.label, task.label)
    bar = ProgressBar(1.0, share or 0.0, width=14, pulse=share is None)
    row: list[RenderableType] = [Text(f"{step:<20}"), bar]
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

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def line(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, style="dim", markup=False)


class Bar(Lines):
    """On a terminal; what is logged stands above the bar as well."""

    def __init__(self, console: Console) -> None:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._lines.append(f"done in {clock_time(time.perf_counter() - self._began)}")
            self._draw(ended=True)

    def _draw(self, ended: bool = False) -> None:
        from IPython.display import display

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
