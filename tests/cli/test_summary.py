"""What is printed about a run: the summary, its warnings, and the plan of a dry run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from cli_tools import done, failed
from row_files import FEATURES, ROWS, write


def test_summary(here, rows):
    values, shown, _ = rows
    result = done("fit", *write("npy", values, shown), "-o", "out", "--json", "-k", "30")
    summary = json.loads(result.stdout)
    assert summary == json.loads(Path("out/summary.json").read_text())
    assert summary["rows"] == ROWS
    assert summary["features"] == FEATURES
    assert summary["labelled_rows"] == (shown >= 0).sum()
    assert summary["given"] == {str(c): int((shown == c).sum()) for c in range(3)}
    found = np.load("out/labels.npy")
    assert summary["found"] == {str(c): int((found == c).sum()) for c in range(3)}
    assert {step["step"] for step in summary["steps"]} >= {"k-means", "Gram", "labels"}
    assert all(step["seconds"] > 0 for step in summary["steps"])
    assert summary["settings"]["landmarks"] == 30
    assert summary["peak_memory"] > 1 << 20
    assert summary["files"]["labels"] == "out/labels.npy"
    assert summary["command"].startswith("biglp")
    assert summary["versions"]["numpy"] == np.__version__
    assert summary["warnings"] == []
    assert summary["run"]["option"]["n_landmarks"] == 30


def test_kinds_of_columns_are_told(here):
    rng = np.random.default_rng(0)
    kinds = (rng.normal(5, 2, 300), np.exp(3 * rng.normal(size=300)), np.full(300, 7.0))
    values = np.column_stack([*kinds, np.eye(3)[rng.integers(0, 3, 300)]])
    shown = np.where(np.arange(300) < 30, np.arange(300) % 2, -1)
    result = done("fit", *write("npy", values, shown), "-o", "out", "--projection", "2")
    told = "scaling table (1 number, 1 with long tails, 3 of 0/1 in 1 groups, 1 constant), 2 dir"
    assert told in " ".join(result.stdout.split())


def test_first_hour_3_held_out_labels_stand_beside_the_simplest_answer(here):
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(400) < 0.15, "leave", "stay")
    table = "\n".join(
        f"{x:.3f},{y:.3f},{label if row < 60 else ''}"
        for row, (x, y, label) in enumerate(zip(*rng.normal(size=(2, 400)), truth, strict=True))
    )
    Path("t.csv").write_text(f"x,y,state\n{table}\n")
    share = (truth[:60] == "stay").mean()
    shown = done("fit", "t.csv", "--label-column", "state", "-o", "out", "--factor", "anchors")
    said = " ".join(shown.stdout.split())
    assert f"of held-out labels found (always saying stay finds {share:.1%})" in said
    shown = done("fit", "t.csv", "--label-column", "state", "-o", "whole")
    assert "always saying stay would be" in " ".join(shown.stdout.split())


def test_how_many_rows_are_right(here):
    rng = np.random.default_rng(0)
    truth = (rng.random(600) < 0.2).astype(int)
    values = rng.standard_normal((600, 2)) + 3.0 * truth[:, None]
    arguments = write("npy", values, np.where(np.arange(600) < 80, truth, -1))
    result = done("fit", *arguments, "-o", "out")
    found = json.loads(Path("out/summary.json").read_text())["settings"]["estimated_accuracy"]
    low, high = (round(100 * share) for share in found["interval"])
    said = " ".join(result.stdout.split())
    assert f"About {found['accuracy']:.0%} of the unlabelled rows are right" in said
    assert f"interval {low} to {high}); always saying 0 would be {found['base_rate']:.0%}" in said
    assert "50 more labels would add about" in said
    assert 0.75 < found["base_rate"] < 0.85


def test_rows_that_say_the_same_without_the_graph(here):
    values = np.repeat([[0.0, 0.0], [9.0, 9.0]], 200, axis=0)
    values += 0.1 * np.random.default_rng(0).standard_normal(values.shape)
    shown = np.where(np.arange(400) % 8 == 0, np.arange(400) // 200, -1)
    said = " ".join(done("fit", *write("npy", values, shown), "-o", "out").stdout.split())
    assert "100.0% without the graph: no clear difference" in said


def test_warnings_reach_the_user(here):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((400, 2))
    shown = np.where(np.arange(400) < 30, np.arange(400) % 2, -1)
    arguments = write("npy", values, shown)
    fit = ("fit", *arguments, "-o", "out", "--factor", "nystrom", "-k", "5", "--bandwidth", "0.05")
    result = done(*fit)
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["warnings"]
    assert f"warning: {summary['warnings'][0][:40]}" in result.stderr


def test_dry_run(here, rows):
    values, shown, _ = rows
    arguments = write("csv", values, shown)
    plan = json.loads(done("fit", *arguments, "-o", "out", "--dry-run", "--json").stdout)
    assert plan["rows"] == ROWS
    assert plan["labels"] == {str(c): int((shown == c).sum()) for c in range(3)}
    assert plan["seconds"] > 0
    assert "nothing was written" in done("fit", *arguments, "-o", "out", "--dry-run").stdout
    linear = done("fit", *arguments, "-o", "out", "--dry-run", "--factor", "linear").stdout
    assert "linear; " in linear
    assert "landmarks" not in linear
    assert not Path("out").exists()
    assert "0, 1" in failed(2, "fit", *arguments, "-o", "out", "--dry-run", "--alpha", "7")


def test_labels_cannot_speak_to_the_terminal(here):
    """Escape sequences and marks of the writing direction are shown, not obeyed."""
    names = ("\x1b[31mred\x1b[0m", "\u202eb\x07lue")
    lines = [f"{i % 2 + i / 90},{i % 7},{names[i % 2] if i < 20 else ''}" for i in range(80)]
    Path("x.csv").write_text("\n".join(["a,b,y", *lines]))
    for command in (("fit", "-o", "out"), ("inspect",)):
        printed = done(command[0], "x.csv", "--label-column", "y", *command[1:]).output
        assert "\\x1b[31mred\\x1b[0m" in printed
        assert "\\u202eb\\x07lue" in printed
        assert not {"\x1b", "\x07", "\u202e"} & {*printed}
