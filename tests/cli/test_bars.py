"""Progress bars on a terminal, and nothing where there is none."""

import io
import logging

import pytest
from rich.console import Console

from biglp._core.progress import Progress
from biglp.cli import console
from biglp.cli.bars import Bars


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on standard error; what it shows is in its file."""
    made = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(console, "errors_console", lambda: made)
    monkeypatch.setattr(logging.getLogger("biglp"), "level", logging.INFO)
    return made


def test_a_bar_shows_rows_a_second_and_messages_stand_above(terminal):
    with console.progress_bars() as progress:
        assert isinstance(progress, Bars)
        with progress.task("Gram", 2000) as task:
            task.advance(2000)
        progress.start_bytes("fetching x.gz", 10).advance(10)
        progress.say("a message [with brackets]")
        logging.getLogger("biglp").info("a line of the log")
    shown = terminal.file.getvalue()
    for words in ("Gram sums", "100%", " rows/s", "B/s", "a message [with brackets]", "of the log"):
        assert words in shown
    assert logging.getLogger("biglp").handlers == []


def test_the_sweeps_of_an_iteration_share_a_bar(terminal):
    with console.progress_bars() as progress:
        for step in range(3):
            progress.start(f"k-means {step}", 10).finish()
        progress.start("labels", 10).finish()
        assert len(progress._drawing.tasks) == 2


def test_an_estimate_of_the_rows_is_corrected_at_the_end(terminal):
    with console.progress_bars() as progress:
        task = progress.start("reading", 1000)
        task.advance(70)
        task.finish()
        (drawn,) = progress._drawing.tasks
        assert (drawn.total, drawn.completed) == (70, 70)


def test_nothing_is_drawn_quietly_or_without_a_terminal(terminal):
    with console.progress_bars(quiet=True) as progress:
        assert type(progress) is Progress
    terminal._force_terminal = False
    with console.progress_bars() as progress:
        assert type(progress) is Progress
