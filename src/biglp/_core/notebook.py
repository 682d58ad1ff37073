"""Progress in the cell of a notebook: one bar that moves, drawn with what every kernel has."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from biglp._core.course import Course, clock_time
from biglp._core.progress import LogProgress, Progress, Task, step_of

SECONDS_BETWEEN = 0.2
"""A notebook is a page in a browser far away: it need not hear of every block."""


class NotebookBar(Progress):
    """A bar for the whole run, with the step that it is at.

    Parameters
    ----------
    show : callable
        Shows HTML, in the place of what was shown before.
    clock : callable
        Seconds.
    """

    def __init__(
        self, show: Callable[[str], None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._show, self._clock = show, clock
        self._course = Course(clock)
        self._began, self._drawn = clock(), -SECONDS_BETWEEN
        self._step, self._told = "", list[str]()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say which steps are to come."""
        self._course.expect(seconds)

    def start(self, label: str, n_rows: int) -> Task:
        """Begin a sweep."""
        self._begin(step_of(label), n_rows)
        return _NotebookTask(label, n_rows, self)

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        """Begin a download."""
        self._begin(label, n_bytes)
        return _NotebookTask(label, n_bytes, self)

    def start_step(self, label: str) -> Task:
        """Begin a step without rows."""
        self._begin(label, 0)
        return _NotebookTask(label, 0, self)

    def say(self, message: str) -> None:
        """Show a message above the bar."""
        self._told.append(message)
        self._draw()

    def close(self) -> None:
        """Say that the run is over."""
        self._course.finish()
        self._step = f"done in {clock_time(self._clock() - self._began)}"
        self._draw()

    def advance(self, rows: int) -> None:
        """Move the bar on."""
        self._course.advance(rows)
        if self._clock() - self._drawn >= SECONDS_BETWEEN:
            self._draw()

    def _begin(self, step: str, total: int) -> None:
        self._course.begin(step, total)
        self._step = step
        self._draw()

    def _draw(self) -> None:
        self._drawn = self._clock()
        known = self._course.known or self._course.share() == 1.0
        value = f' value="{self._course.share():.3f}"' if known else ""
        left = self._course.left()
        rest = f", {clock_time(left)} left" if known and left else ""
        told = "".join(f"<div>{escape(line)}</div>" for line in self._told)
        bar = f'<progress max="1"{value} aria-label="biglp" style="width: 20em"></progress>'
        self._show(f"{told}<div>{bar} biglp: {escape(self._step)}{rest}</div>")


class _NotebookTask(Task):
    def __init__(self, label: str, n_rows: int, bar: NotebookBar) -> None:
        super().__init__(label, n_rows)
        self._bar = bar

    def advance(self, rows: int) -> None:
        self._bar.advance(rows)


def shown_progress() -> Progress:
    """Progress where the program runs: a bar in a notebook, lines of the log elsewhere."""
    if not type(sys.stdout).__module__.startswith("ipykernel"):
        return LogProgress()
    try:
        return NotebookBar(_in_cell())
    except ImportError:
        return LogProgress()


def _in_cell() -> Callable[[str], None]:
    """A place in the output of the cell that runs now."""
    from IPython.display import HTML, display

    handle: Any = None

    def show(html: str) -> None:
        nonlocal handle
        if handle is None:
            handle = display(HTML(html), display_id=True)
        else:
            handle.update(HTML(html))

    return show
