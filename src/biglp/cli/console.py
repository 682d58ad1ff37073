"""What people see: progress and errors on standard error, results on standard output."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from json import dumps, loads
from typing import Any

from rich.console import Console
from rich.markup import escape as escape
from rich.table import Table
from rich.text import Text

from biglp._core.memory import format_bytes as format_bytes
from biglp._core.progress import Progress

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NOTEBOOK = "JPY_PARENT_PID"
"""Variable that is set for all that the kernel of a notebook starts."""


class _Plain(Console):
    """A console on which what comes from files is only text: it cannot speak to the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Draw text with control characters as Python writes them, all but ends of lines, tabs."""
        visible = _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
        return super().render_str(visible, **options)


class _Results(_Plain):
    """Results come last: a reader such as ``head`` that wants no more of them is no failure."""

    def print_json(self, json: str | None = None, **options: Any) -> None:
        """Write JSON; colours are for people, and take seconds for thousands of columns."""
        if self.is_terminal or json is None:
            super().print_json(json, **options)
        else:
            self.out(dumps(loads(json), indent=2, ensure_ascii=False), highlight=False)

    def on_broken_pipe(self) -> None:
        nothing_more_to_print()
        raise SystemExit(0)


def nothing_more_to_print() -> None:
    """Let what is left in the buffer go nowhere: it would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def results_console() -> Console:
    """Standard output; a hundred columns where it is not a terminal."""
    live = sys.stdout.isatty()
    return _Results(file=sys.stdout, highlight=False, width=None if live else 100)


def errors_console() -> Console:
    """Standard error."""
    live = sys.stderr.isatty()
    return _Plain(file=sys.stderr, highlight=False, width=None if live else 200)


def progress_bars(quiet: bool = False) -> Progress:
    """Return a progress bar on standard error; without a terminal nothing is drawn.

    A cell of a notebook (``!biglp fit``) passes for a terminal, but shows bars once for every time
    that they are drawn: it gets the lines alone, one for each step.
    """
    console = errors_console()
    # Not console.is_terminal, which FORCE_COLOR sets: colours are no reason to draw into a pipe.
    if quiet or not console.file.isatty():
        return Progress()
    from biglp._core.progress import Bar, Lines

    return Lines(console) if NOTEBOOK in os.environ else Bar(console)


def show_notes(summary: dict[str, Any]) -> None:
    """Print the warnings of a run, and what it has to say of the labels."""
    console, warn = results_console(), errors_console()
    for message in summary["warnings"]:
        warn.print(f"[bold yellow]warning:[/bold yellow] {escape(message)}", soft_wrap=True)
    for line in summary.get("told", ()):
        console.print(escape(line), soft_wrap=True)


def plain_table(*names: str, right: Sequence[str] = (), space: int = 2) -> Table:
    """Return a table without lines; the columns named in ``right`` are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, space), header_style="bold")
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def seconds(amount: float) -> str:
    """Write a time for people."""
    if amount < 10:
        return f"{amount:.2g} s"
    if amount < 120:
        return f"{amount:.0f} s"
    if amount < 7200:
        return f"{amount / 60:.0f} min"
    return f"{amount / 3600:.1f} h"
