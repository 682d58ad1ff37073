"""Progress bars on a terminal, and nothing where there is none."""

import io
import logging
import re
from importlib import import_module

import pytest
from rich.console import Console

from biglp._core.bars import Bar, Lines, bar_of
from biglp._core.progress import Progress
from biglp.cli import console
from cli_tools import done


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on standard error; what it shows is in its file."""
    import_module("biglp.cli.summary")  # before they could take this terminal for theirs
    import_module("biglp.cli.running")
    screen = io.StringIO()
    screen.isatty = lambda: True
    made = Console(file=screen, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(console, "errors_console", lambda: made)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setattr(logging.getLogger("biglp"), "level", logging.INFO)
    return made


def test_messages_and_steps_that_have_ended_stand_above_the_bar(terminal):
    with console.progress_bars() as progress:
        assert isinstance(progress, Bar)
        with progress.task("Gram", 2000) as task:
            task.advance(1000)
            progress._live.refresh()
            task.advance(1000)
        progress.start_bytes("fetching x.gz", 10).finish()
        with progress.step("learning"):
            pass
        progress.say("a message [with brackets]")
        logging.getLogger("biglp").info("a line of the log")
    shown = terminal.file.getvalue()
    for words in (
        "Gram sums",
        "50%",
        " rows/s",
        "Gram: 2,000 rows in ",
        "fetching x.gz: 10 bytes in ",
    ):
        assert words in shown
    assert re.search(r"learning: \d+\.\d\d s", shown)
    for words in ("a message [with brackets]", "a line of the log"):
        assert words in shown
    assert logging.getLogger("biglp").handlers == []


def test_first_hour_9_one_bar_for_the_whole_run(terminal):
    with console.progress_bars() as progress:
        with progress.task("converting rows.csv", 10):
            assert drawn(progress).split() == ["converting", "rows.csv", "0%"]
        progress.expect({"report": 1.0})
        progress.expect({"k-means": 1.0, "Gram": 1.0, "learning": 1.0})
        for step in range(3):
            with progress.task(f"k-means {step}", 10) as task:
                task.advance(10)
                assert drawn(progress).startswith(f"k-means {step}")
        with progress.task("Gram", 10) as task:
            task.advance(10)
        with progress.step("learning"):
            assert re.search(r"\d+% of the run .*left", drawn(progress))
        assert 0 < progress.course.share() < 1  # the report is still to come
    assert progress.course.share() == 1
    assert "k-means: 10 rows, 3 times, in " in terminal.file.getvalue()


def test_a_step_whose_sweeps_nobody_counts_has_no_share(terminal):
    with console.progress_bars() as progress:
        for step in range(2):
            progress.start(f"k-means {step}", 10).finish()
        assert "%" not in drawn(progress)


def test_an_estimate_of_the_rows_is_corrected_at_the_end(terminal):
    with console.progress_bars() as progress:
        task = progress.start("reading", 1000)
        task.advance(70)
        task.finish()
    assert "reading: 70 rows in " in terminal.file.getvalue()


def drawn(progress):
    """What the bar says now, without the bar itself."""
    screen = Console(file=io.StringIO(), width=100, color_system=None)
    screen.print(bar_of(progress))
    return re.sub("[━╸╺ ]+", " ", screen.file.getvalue()).strip()


def test_nothing_is_drawn_quietly_or_without_a_terminal(terminal):
    with console.progress_bars(quiet=True) as progress:
        assert type(progress) is Progress
    terminal.file.isatty = lambda: False  # though FORCE_COLOR may have made it a terminal for rich
    assert terminal.is_terminal
    with console.progress_bars() as progress:
        assert type(progress) is Progress


def test_first_hour_9_a_notebook_gets_one_line_a_step(terminal, monkeypatch):
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    monkeypatch.setattr("biglp._core.progress.LineTask.SECONDS_BETWEEN_LINES", 0.0)
    with console.progress_bars() as progress:
        assert isinstance(progress, Lines)
        for step in range(60):
            with progress.task(f"k-means {step}", 2000) as task:
                for _ in range(20):
                    task.advance(100)
        with progress.task("Gram", 2000) as task:
            task.advance(1000)
            task.advance(1000)
        with progress.task("labels", 10) as task:
            task.advance(10)
        progress.start_bytes("kddcup99", 10).finish()
        progress.say("a message [with brackets]")
    first, second, _, fetched, last = terminal.file.getvalue().splitlines()
    assert re.fullmatch(r"k-means: 2,000 rows, 60 times, in \d+\.\d\d s", first)
    assert re.fullmatch(r"Gram: 2,000 rows in \d+\.\d\d s", second)
    assert fetched.startswith("kddcup99: 10 bytes in ")
    assert last == "a message [with brackets]"


def test_first_hour_9_no_progress_is_apart_from_quiet(here, terminal):
    common = ("--factor", "linear", "--overwrite")
    drawn = done("fit", "sim:2Kx5", "-o", "out", *common)
    assert "Gram: 2,000 rows in " in terminal.file.getvalue()
    terminal.file.truncate(0)
    plain = done("fit", "sim:2Kx5", "-o", "out", "--no-progress", *common)
    assert terminal.file.getvalue() == ""
    assert "2,000 rows labelled" in plain.stdout
    assert "2,000 rows labelled" in drawn.stdout
    for command in ("predict", "suggest", "check", "inspect", "simulate"):
        assert "--no-progress" in done(command, "--help").stdout
