"""Commands that biglp prints: they run as they are printed."""

from __future__ import annotations

import csv
import json
import re
import shlex
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from biglp._core.errors import BadRowsError
from biglp.cli import app
from cli_tools import done

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
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


READING = ("--encoding", "cp1252", "--delimiter", "tab", "--drop", '"the note, long",q')
KNOWN = ("--label-column", "kind", "--id-column", "key")


@pytest.mark.parametrize(
    "given",
    [
        ("rows.tsv", *READING, *KNOWN),
        ("parts/*.tsv", *READING, *KNOWN),
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


def test_standard_input(truth):
    rows = Path("rows.tsv").read_text(encoding="cp1252").encode()
    shown = CliRunner().invoke(app, ["suggest", "-", "--label-column", "kind"], input=rows)
    (fit,) = printed(shown.stdout)
    lines = [f"{row},{name}" for row, name in enumerate(truth[:20])]
    Path("next.csv").write_text("\n".join(["row,label", *lines]) + "\n", encoding="utf-8")
    assert CliRunner().invoke(app, fit, input=rows).exit_code == 0
    assert [*of_report()] == ["predict"]  # the other commands would need the rows again


@pytest.mark.parametrize(
    "given",
    [
        ("sim:1Kx8",),
        ("sim:1Kx8", "--labels", "more.csv"),
        ("parts/*.tsv", *READING, *KNOWN),
        ("rows.tsv", *READING, *KNOWN, "--weight-column", "weight"),
        (*(f"parts/rows-{part}.tsv" for part in range(5)), *READING, *KNOWN),
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
