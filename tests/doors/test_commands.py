"""The command line as a whole: help, options, progress, and commands that it prints."""

from __future__ import annotations

import csv
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
from biglp._graph import FACTORS
from biglp.cli import app, console, main
from cli_tools import done, failed, run, run_python

QUIETLY = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


def test_help_lists_exit_codes():
    for command in ([], ["fit"], ["predict"], ["simulate"], ["inspect"], ["demo"]):
        assert "Exit codes" in done(*command, "--help").stdout


FIT = "numpy as np; X = np.random.default_rng(0).normal(size=(60, 2)); "
FIT += "biglp.LowRankLabelPropagation().fit(X, np.arange(60) % 3 - 1).predict(X)"


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import biglp.cli", "numpy scipy sklearn pyarrow pandas"),
        ("import biglp.__main__ as m; sys.argv = ['biglp', '--version']; m.main()", "typer numpy"),
        (f"import biglp.plot, {FIT}", "torch dask distributed mpi4py matplotlib starlette"),
        ("from biglp.cli import app; app(['fit', 'sim:2Kx5', '-o', OUT, '--factor', 'anchors'])",
         "sklearn pandas matplotlib torch dask"),
        ("from biglp.cli import app; app(['inspect', 'sim:2Kx5'])", "pandas sklearn torch dask"),
    ],
    ids=["help", "version", "import", "fit", "inspect"],
)  # fmt: skip
def test_no_library_is_loaded_for_nothing(tmp_path, program, heavy):
    """scikit-learn and pandas take seconds to load and 70 MB, torch ten times that."""
    code = f"import sys; OUT = {str(tmp_path / 'out')!r}\ntry: exec({program!r})\n"
    code += "except SystemExit as end: assert not end.code\n"
    found = run_python(code + f"print([x for x in {heavy.split()} if x in sys.modules])")
    assert found.stdout.endswith("[]\n"), found.stdout


def test_quiet_and_versions(here):
    result = done("fit", "sim:2Kx5", "-o", "out", "--factor", "linear", "--quiet")
    assert result.output == ""
    assert done("--version").stdout.startswith("biglp ")


def test_letters_that_an_encoding_does_not_have_are_escaped(monkeypatch):
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "argv", ["biglp", "--version"])
    with pytest.raises(SystemExit):
        main()
    print("é → ok", file=stream, flush=True)
    assert printed.getvalue().split()[2:] == [b"\xe9", rb"\u2192", b"ok"]


@pytest.mark.parametrize("arguments", [["--help"], ["inspect", "sim:200x3"]])
def test_a_reader_that_leaves_early_is_no_failure(arguments):
    reading, writing = os.pipe()
    os.close(reading)  # as head does when it has its lines
    try:
        command = [sys.executable, "-m", "biglp", *arguments]
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=120)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("fit --factor ", ["auto", *FACTORS]),
        ("fit --factor gl", ["glnp", "glnp-mu"]),
        ("fit --class-balance ", ["auto", "mass", "share", "centre", "none"]),
        ("suggest --format l", ["label-studio"]),
        ("predict --engine m", ["mpi"]),
        ("fit --alpha ", []),
    ],
)
def test_a_shell_completes_values(words, offered):
    asked = {"_BIGLP_COMPLETE": "complete_bash", "COMP_WORDS": f"biglp {words}", "COMP_CWORD": "3"}
    assert CliRunner().invoke(app, [], prog_name="biglp", env=asked).stdout.split() == offered


def options(command):
    for inner in getattr(command, "commands", {}).values():
        yield from options(inner)
    yield from (param for param in command.params if param.param_type_name == "option")


def test_docs_name_options_that_there_are():
    found = [*options(typer.main.get_command(app))]
    known = {flag for option in found for flag in (*option.opts, *option.secondary_opts)}
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert len(named) > 40
    assert named - known == {"--help"}
    # typer 0.27 took the metavar for the name of an option where both are the same word.
    assert [option.opts for option in found if option.opts[0] != option.opts[0].lower()] == []


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


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on standard error; what it shows is in its file."""
    import_module("biglp.cli.running")
    screen = io.StringIO()
    screen.isatty = lambda: True
    made = Console(file=screen, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(console, "errors_console", lambda: made)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setattr(logging.getLogger("biglp"), "level", logging.INFO)
    return made


@pytest.mark.parametrize("notebook", [False, True])
def test_one_bar_for_the_whole_run_with_messages_above_it(terminal, monkeypatch, notebook):
    if notebook:  # a line a step
        monkeypatch.setenv("JPY_PARENT_PID", "1")
        monkeypatch.setattr("biglp._core.progress.LineTask.SECONDS_BETWEEN_LINES", 0.0)
    with console.progress_bars() as progress:
        progress.expect({"report": 1.0})
        progress.expect({"k-means": 1.0, "Gram": 1.0, "learning": 1.0})
        for step in range(3):
            with progress.task(f"k-means {step}", 2000) as task:
                task.advance(2000)
        with progress.task("Gram", 2000) as task:
            task.advance(1000)
            if not notebook:
                progress._live.refresh()
            task.advance(1000)
        progress.start_bytes("fetching x.gz", 10).finish()
        task = progress.start("reading", 1000)  # an estimate of the rows
        task.advance(70)
        task.finish()
        with progress.task("learning"):
            pass
        progress.say("a message [with brackets]")
        logging.getLogger("biglp").info("a line of the log")
        assert 0 < progress.course.share() < 1  # the report is still to come
    assert progress.course.share() == 1
    shown = terminal.file.getvalue()
    every = ["k-means: 2,000 rows, 3 times, in ", "Gram: 2,000 rows in ", "reading: 70 rows in "]
    every += ["fetching x.gz: 10 bytes in ", "a message [with brackets]"]
    if not notebook:
        every += ["Gram sums", " rows/s", "% of the run", "learning: 0.", "a line of the log"]
    assert [words for words in every if words not in shown] == []
    assert logging.getLogger("biglp").handlers == []


def test_nothing_is_drawn_quietly_or_without_a_terminal(here, terminal):
    with console.progress_bars(quiet=True) as progress:
        assert type(progress) is Progress
    common = ("fit", "sim:2Kx5", "-o", "out", "--factor", "linear", "--overwrite")
    assert "2,000 rows labelled" in done(*common).stdout
    assert "Gram: 2,000 rows in " in terminal.file.getvalue()
    terminal.file.truncate(0)
    assert "2,000 rows labelled" in done(*common, "--no-progress").stdout
    assert terminal.file.getvalue() == ""
    terminal.file.isatty = lambda: False  # though FORCE_COLOR may have made it a terminal for rich
    with console.progress_bars() as progress:
        assert type(progress) is Progress


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


@QUIETLY
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
    assert re.search(r"cat +\d+", done(*fit).stdout)
    assert next(Path("out").glob("labels.*")).exists()
    assert printed(done(*suggest).stdout) == []


@QUIETLY
def test_standard_input(truth):
    rows = Path("rows.tsv").read_text(encoding="cp1252").encode()
    shown = CliRunner().invoke(app, ["suggest", "-", "--label-column", "kind"], input=rows)
    (fit,) = printed(shown.stdout)
    lines = [f"{row},{name}" for row, name in enumerate(truth[:20])]
    Path("next.csv").write_text("\n".join(["row,label", *lines]) + "\n", encoding="utf-8")
    assert CliRunner().invoke(app, fit, input=rows).exit_code == 0
    assert [*of_report()] == ["predict"]  # the other commands would need the rows again


@QUIETLY
@pytest.mark.parametrize(
    "given",
    [
        ("sim:1Kx8",),
        ("sim:1Kx8", "--labels", "more.csv"),
        ("rows.tsv", *HOW_TO_READ, *KNOWN, "--weight-column", "weight"),
        (*(f"parts/rows-{part}.tsv" for part in range(5)), *HOW_TO_READ, *KNOWN),
        ("rows.npy", "--metadata", "rows.tsv", *KNOWN, "--unlabelled", "?", "--unlabelled", "-"),
    ],
)
def test_the_report_names_commands_that_run(truth, given, monkeypatch):
    Session = import_module("biglp._labelling").Session
    Path("more.csv").write_text("row,label\n0,0\n1,1\n")
    done("fit", *given, "-o", "out")
    commands = of_report()
    assert set(commands) >= {"suggest", "label", "predict"}
    inputs = [word for word in given if word.startswith(("sim:", "parts/"))] or [given[0]]
    assert commands["label"][1 : 1 + len(inputs)] == inputs
    opened = []

    def serve(wanted, *_):
        labelling = Session(wanted)
        opened.append((labelling.source.n_rows, labelling.source.n_features))
        labelling.close()
        return 0

    monkeypatch.setattr("biglp._labelling.app.serve", serve)
    done(*commands["label"], "--no-browser")
    summary = json.loads(Path("out/summary.json").read_text(encoding="utf-8"))
    assert opened == [(summary["rows"], summary["features"])]
    done(*commands["suggest"])
    assert Path("next.csv").exists()
    done("report", "out")
    assert of_report()["label"] == commands["label"]


@QUIETLY
@pytest.mark.parametrize(
    "given", ["fit - --label-column kind -o new", "predict MODEL - -o new.csv"]
)
def test_no_resuming_of_streams(truth, monkeypatch, given):
    done("fit", "rows.tsv", "--encoding", "cp1252", *KNOWN, "-o", "out", "--no-report")

    def refuse(*args, **options):
        raise BadRowsError("bad rows")

    words = given.replace("MODEL", "out/model.biglp").split()
    monkeypatch.setattr("sys.argv", ["biglp", *words])
    monkeypatch.setattr("biglp._fit.pipeline.Pipeline.prepare", refuse)
    monkeypatch.setattr("biglp._fit.model.Model.graph", refuse)
    rows = Path("rows.tsv").read_text(encoding="cp1252").encode()
    message = CliRunner().invoke(app, words, input=rows).stderr
    for said in ("bad rows", "standard input is gone", "start afresh with --overwrite"):
        assert said in message
    assert "--resume" not in message


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
