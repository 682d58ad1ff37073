"""The command line as a whole: help, options, progress, and commands that it prints."""

from __future__ import annotations

import csv
import inspect
import io
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from html import unescape
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from biglp._core import BadRowsError, Progress
from biglp._core.parameters import (
    LABELS,
    METHOD,
    PARAMETERS,
    READING,
    column_names,
    named_values,
)
from biglp._core.progress import Bar, Lines, bar_of
from biglp._graph import FACTORS
from biglp.cli import app, console, main
from biglp.cli.fit import fit
from cli_tools import done, failed, run


def test_help_is_quick_and_lists_exit_codes():
    for command in ([], ["fit"], ["predict"], ["simulate"], ["inspect"], ["demo"]):
        text = done(*command, "--help").stdout
        assert "Exit codes" in text
    check = (
        "import sys, biglp.cli; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'pandas'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_quiet_and_versions(here):
    result = done("fit", "sim:2Kx5", "-o", "out", "--factor", "linear", "--quiet")
    assert result.output == ""
    assert done("--version").stdout.startswith("biglp ")


def test_the_version_is_told_before_anything_is_loaded():
    code = """if True:
        import sys
        sys.argv = ["biglp", "--version"]
        from biglp.__main__ import main
        main()
        assert not {"typer", "numpy", "rich"} & set(sys.modules)
    """
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.startswith("biglp ")


def test_letters_that_an_encoding_does_not_have_are_escaped(monkeypatch):
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "argv", ["biglp", "--version"])
    with pytest.raises(SystemExit):
        main()
    print("é → ok", file=stream, flush=True)
    assert printed.getvalue().split()[2:] == [b"\xe9", rb"\u2192", b"ok"]


COMMANDS = ([], ["fit"], ["predict"], ["suggest"], ["label"], ["inspect"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_first_hour_11_switches_have_no_type(command):
    shown = done(*command, "--help").stdout
    assert "--help" in shown
    assert "bool" not in shown.lower()


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["inspect", "sim:200x3"]])
def test_first_hour_5_a_reader_that_leaves_early_is_no_failure(arguments):
    reading, writing = os.pipe()
    os.close(reading)  # as head does when it has its lines
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "biglp", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["predict", "report"])
def test_first_hour_11_arguments_have_no_type(command):
    shown = done(command, "--help").stdout
    assert "<Any>" not in shown
    assert "<list" not in shown


def completed(*words):
    """What a shell offers after some words, the last of which is not finished."""
    asked = {
        "_BIGLP_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("biglp", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return CliRunner().invoke(app, [], prog_name="biglp", env=asked).stdout.split()


def test_first_hour_11_a_shell_completes_values():
    assert completed("fit", "--factor", "") == ["auto", *FACTORS]
    assert completed("fit", "--factor", "gl") == ["glnp", "glnp-mu"]
    assert completed("fit", "--class-balance", "") == ["auto", "mass", "share", "centre", "none"]
    assert completed("suggest", "--format", "l") == ["label-studio"]
    assert completed("predict", "--engine", "m") == ["mpi"]
    assert completed("fit", "--alpha", "") == []


def test_defaults_are_those_of_the_table():
    taken = inspect.signature(fit).parameters
    shared = set(taken) & set(PARAMETERS)
    assert set(LABELS) | set(READING) | set(METHOD) - {"max_iter", "tol"} <= shared
    assert {name: taken[name].default for name in shared} == {
        name: PARAMETERS[name].default for name in shared
    }


def options(command):
    for inner in getattr(command, "commands", {}).values():
        yield from options(inner)
    yield from (param for param in command.params if param.param_type_name == "option")


def test_docs_name_options_that_there_are():
    known = {flag for option in options(typer.main.get_command(app)) for flag in option.opts}
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert len(named) > 40
    assert named - known == {"--help"}


def test_options_have_names_in_small_letters():
    """typer 0.27 took the metavar for the name of an option where both are the same word."""
    found = [*options(typer.main.get_command(app))]
    assert len(found) > 100
    assert [option.opts for option in found if option.opts[0] != option.opts[0].lower()] == []


def test_a_list_of_columns_may_hold_a_name_with_a_comma():
    assert column_names('a, b,"c, d"') == ("a", "b", "c, d")


def test_settings_of_a_factor_are_numbers_switches_or_words():
    found = named_values("max_iter=2000, tol=1e-4,shift=false,start=uniform")
    assert found == {"max_iter": 2000, "tol": 1e-4, "shift": False, "start": "uniform"}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--alpha", "x", "'x' is neither 'auto' nor a number"),
        ("-k", "2.5", "'2.5' is neither 'auto' nor a whole number"),
        ("--class-balance", "0.9,y", "not shares such as 0.9,0.1"),
        ("--factor-params", "max_iter", "'max_iter' is not NAME=VALUE"),
        ("--factor-params", "depth=3", "'depth', which factor='anchors' does not know"),
    ],
)
def test_values_that_cannot_be_read(here, option, value, message):
    result = run("fit", "rows.npy", "-o", "out", option, value)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_probabilities_of_all_classes_or_of_the_likeliest(here):
    assert run("fit", "sim:1Kx3", "-o", "out", "--probabilities", "--top", "1").exit_code == 2
    done("fit", "sim:1Kx3", "-o", "out", "--top", "1", "--confidence", "-q")
    names = {"labels", "confidence", "top_classes", "top_probabilities"}
    assert {path.stem for path in Path("out").glob("*.npy")} == names


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
        with progress.task("learning"):
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
        with progress.task("learning"):
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


ROWS = 240


def printed(text: str) -> list[list[str]]:
    """Commands among what was printed, as words without the first."""
    return [shlex.split(line)[1:] for line in re.findall(r"^ *(biglp .*)$", text, re.M)]


def of_report() -> dict[str, list[str]]:
    """Commands of the report by their names, but for the one that made it."""
    html = Path("out/report.html").read_text(encoding="utf-8")
    html = re.search(r'<section id="next".*?</section>', html, re.S)[0]
    blocks = re.findall(r"<pre>(.*?)</pre>", html, re.S)
    commands = printed("\n".join(unescape(re.sub("<[^>]*>", "", block)) for block in blocks))
    return {words[0]: words for words in commands}


@pytest.fixture
def truth(here) -> np.ndarray:
    """Tables of one file and of five that need options to be read right; the class of each row."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dög"], ROWS)
    centre = np.where(truth == "cat", -2.0, 2.0)
    a, b = centre + rng.normal(size=ROWS), rng.normal(size=ROWS)
    lines = [
        f"k{row}\t{a[row]:.3f}\t{b[row]:.3f}\tnoise {row % 3}\tx{row % 2}\t{1 + row % 5}\t"
        f"{truth[row] if row % 4 == 0 else ''}"
        for row in range(ROWS)
    ]
    header = "key\ta\tb\tthe note, long\tq\tweight\tkind"
    Path("rows.tsv").write_text("\n".join([header, *lines]) + "\n", encoding="cp1252")
    Path("parts").mkdir()
    for part in range(5):
        own = lines[part * ROWS // 5 : (part + 1) * ROWS // 5]
        text = "\n".join([header, *own]) + "\n"
        Path(f"parts/rows-{part}.tsv").write_text(text, encoding="cp1252")
    np.save("rows.npy", np.column_stack([a, b]))
    return truth


HOW_TO_READ = ("--encoding", "cp1252", "--delimiter", "tab", "--drop", '"the note, long",q')
KNOWN = ("--label-column", "kind", "--id-column", "key")


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize(
    "given",
    [
        ("rows.tsv", *HOW_TO_READ, *KNOWN),
        ("parts/*.tsv", *HOW_TO_READ, *KNOWN),
        ("rows.npy", "--metadata", "rows.tsv", *KNOWN),
    ],
)
def test_after_the_first_suggestions(truth, given):
    shown = done("suggest", *given, "-n", "40", "-o", "next.csv").stdout
    with open("next.csv", newline="") as file:
        table = list(csv.DictReader(file))
    with open("next.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows({**line, "label": truth[int(line["row"])]} for line in table)
    fit, suggest = printed(shown)
    assert fit.count("--drop") <= 1
    told = done(*fit).stdout
    assert re.search(r"cat +\d+", told)
    labels = next(Path("out").glob("labels.*"))
    assert labels.exists()
    assert printed(done(*suggest).stdout) == []


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
def test_standard_input(truth):
    rows = Path("rows.tsv").read_text(encoding="cp1252").encode()
    shown = CliRunner().invoke(app, ["suggest", "-", "--label-column", "kind"], input=rows)
    (fit,) = printed(shown.stdout)
    lines = [f"{row},{name}" for row, name in enumerate(truth[:20])]
    Path("next.csv").write_text("\n".join(["row,label", *lines]) + "\n", encoding="utf-8")
    assert CliRunner().invoke(app, fit, input=rows).exit_code == 0
    assert [*of_report()] == ["predict"]  # the other commands would need the rows again


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize(
    "given",
    [
        ("sim:1Kx8",),
        ("sim:1Kx8", "--labels", "more.csv"),
        ("parts/*.tsv", *HOW_TO_READ, *KNOWN),
        ("rows.tsv", *HOW_TO_READ, *KNOWN, "--weight-column", "weight"),
        (*(f"parts/rows-{part}.tsv" for part in range(5)), *HOW_TO_READ, *KNOWN),
        ("rows.npy", "--metadata", "rows.tsv", *KNOWN, "--unlabelled", "?", "--unlabelled", "-"),
    ],
)
def test_the_report_names_commands_that_run(truth, given, monkeypatch):
    session = pytest.importorskip("biglp._labelling.session")
    if "more.csv" in given:
        Path("more.csv").write_text("row,label\n0,0\n1,1\n")
    done("fit", *given, "-o", "out")
    commands = of_report()
    assert set(commands) >= {"suggest", "label", "predict"}
    inputs = [word for word in given if word.startswith(("sim:", "parts/"))] or [given[0]]
    assert commands["label"][1 : 1 + len(inputs)] == inputs
    opened = []

    def serve(wanted, *_):
        labelling = session.Session(wanted)
        source = labelling.source
        opened.append((source.n_rows, source.n_features))
        labelling.close()
        return 0

    monkeypatch.setattr("biglp._labelling.server.serve", serve)
    done(*commands["label"], "--no-browser")
    summary = json.loads(Path("out/summary.json").read_text(encoding="utf-8"))
    assert opened == [(summary["rows"], summary["features"])]
    done(*commands["suggest"])
    assert Path("next.csv").exists()
    done("report", "out")
    assert of_report()["label"] == commands["label"]


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("fit", "-", "--label-column", "kind", "-o", "new"), "standard input is gone"),
        (("predict", "out/model.biglp", "-", "-o", "new.csv"), "standard input is gone"),
        (("predict", "out/model.biglp", "rows.tsv", "--encoding", "cp1252", "-o", "-"), None),
    ],
)
def test_no_resuming_of_streams(truth, monkeypatch, given, told):
    done("fit", "rows.tsv", "--encoding", "cp1252", *KNOWN, "-o", "out", "--no-report")

    def refuse(*args, **options):
        raise BadRowsError("bad rows")

    monkeypatch.setattr("sys.argv", ["biglp", *given])
    monkeypatch.setattr("biglp._jobs.fit.Pipeline.prepare", refuse)
    monkeypatch.setattr("biglp._fit.model.Model.graph", refuse)
    rows = Path("rows.tsv").read_text(encoding="cp1252").encode()
    message = CliRunner().invoke(app, given, input=rows).stderr
    assert "bad rows" in message
    assert "--resume" not in message
    assert (told or "bad rows") in message
    assert told or "Kept" not in message
    assert not told or "start afresh with --overwrite" in message


def test_simulate(here):
    done("simulate", "2.5K", "7", "-o", "sim.npy", "--classes", "4", "--labels-per-class", "5")
    assert np.load("sim.npy").shape == (2500, 7)
    shown, truth = np.load("sim.labels.npy"), np.load("sim.truth.npy")
    assert np.bincount(shown[shown >= 0]).tolist() == [5, 5, 5, 5]
    assert (truth[shown >= 0] == shown[shown >= 0]).all()
    done("fit", "sim.npy", "--labels", "sim.labels.npy", "-o", "a")
    done("fit", "sim:2.5Kx7,classes=4,labels=5", "-o", "b")
    np.testing.assert_array_equal(np.load("a/labels.npy"), np.load("b/labels.npy"))
    assert "--overwrite" in failed(2, "simulate", "10", "2", "-o", "sim.npy")
    assert "must end in .npy" in failed(2, "simulate", "10", "2", "-o", "sim.csv")
    assert "whole number" in failed(2, "simulate", "1.5", "2", "-o", "x.npy")
    assert "are free there" in failed(4, "simulate", "100G", "1000", "-o", "x.npy")


def test_demo(here):
    result = done("demo")
    assert "scikit-learn LabelSpreading" in result.stdout
    facts = json.loads(done("demo", "--json").stdout)
    assert facts["methods"][0]["accuracy"] > 0.9
    assert Path("demo-out/result/labels.parquet").exists()
