"""``biglp suggest``: from a finished fit to a table of rows to label, and back."""

import csv

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from cli_tools import done, failed
from helpers import blobs

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with rows, a few labels and a finished fit."""
    monkeypatch.chdir(tmp_path)
    X, y, truth = blobs(n=2000, labelled=9, dtype=np.float32)
    np.save("rows.npy", X)
    known = np.flatnonzero(y >= 0)
    lines = ["row,label", *(f"{row},{y[row]}" for row in known)]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    done("fit", "rows.npy", "--labels", "labels.csv", "-o", "out", "-k", "60", "--quiet")
    return known, truth


def test_round_trip(folder, tmp_path):
    known, truth = folder
    shown = done("suggest", "out", "-n", "6").stdout
    named = ("rows.npy", "--model", "out/model.biglp", "--labels", "labels.csv")
    done("suggest", *named, "-n", "6", "-o", "next.csv", "--quiet")
    with open("next.csv", newline="") as file:
        table = list(csv.DictReader(file))
    rows = [int(line["row"]) for line in table]
    assert len(set(rows)) == 6
    assert not set(rows) & set(known)
    assert all(str(row) in shown for row in rows)
    with open("next.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows({**line, "label": truth[int(line["row"])]} for line in table)
    more = "".join(f"{row},{truth[row]}\n" for row in rows)
    labels = tmp_path / "labels.csv"
    labels.write_text(labels.read_text() + more)
    done("fit", "rows.npy", "--labels", "labels.csv", "-o", "out", "-k", "60", "-q", "--overwrite")
    done("fit", "rows.npy", "--labels", "next.csv", "-o", "alone", "-k", "60", "-q")
    assert not set(rows) & {
        int(line.split()[0]) for line in done("suggest", "out", "-n", "6").stdout.splitlines()[2:]
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "alone",
        "labels.csv",
        "next.csv",
        "out",
        "rows.npy",
    ]


def test_same_as_the_estimator(folder):
    found = LowRankLabelPropagation.load("out/model.biglp")
    lines = done("suggest", "rows.npy", "--model", "out/model.biglp", "-n", "5").stdout.splitlines()
    expected = found.suggest(5, np.load("rows.npy"))
    assert [int(line.split()[0]) for line in lines[2:]] == expected.tolist()


def test_from_zero_labels_to_the_next_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, _, truth = blobs(n=600, spread=0.5)
    columns = [f"x{number}" for number in range(X.shape[1])]
    lines = [",".join([*columns, "colour", "y"])]
    lines += [",".join([*(f"{v:.3f}" for v in row), "rg"[i % 2], ""]) for i, row in enumerate(X)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    reading = ("--categorical", "onehot", "--label-column", "y", "-n", "12")
    shown = done("suggest", "rows.csv", *reading, "-o", "next.csv").stdout
    assert "biglp fit rows.csv --labels next.csv --categorical onehot --drop y -o out/" in shown
    with open("next.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [*table[0]] == ["row", "label"]
    rows = [int(line["row"]) for line in table]
    assert len(set(rows)) == 12
    assert set(truth[rows]) == {0, 1, 2}
    filled = "".join(f"{row},{truth[row]}\n" for row in rows)
    (tmp_path / "next.csv").write_text("row,label\n" + filled)
    fit = ("--labels", "next.csv", "--categorical", "onehot", "--drop", "y", "-o", "out", "-q")
    done("fit", "rows.csv", *fit)
    again = done("suggest", "out", "-n", "6").stdout.splitlines()[2:]
    assert not {int(line.split()[0]) for line in again} & set(rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["next.csv", "out", "rows.csv"]


def test_first_rows_are_those_of_the_estimator(folder):
    shown = done("suggest", "rows.npy", "-n", "5", "--seed", "3", "--memory", "600MB").stdout
    found = LowRankLabelPropagation(random_state=3).suggest_first(np.load("rows.npy"), 5)
    assert [int(line) for line in shown.splitlines()[2:7]] == found.tolist()


def test_what_is_refused(folder, tmp_path):
    assert "biglp fit" in failed(2, "suggest", "rows.npy", "--labels", "labels.csv")
    assert "--scaling" in failed(2, "suggest", "out", "--scaling", "none")
    assert "--columns" in failed(2, "suggest", "out", "--columns", "a,b")
    (tmp_path / "empty").mkdir()
    assert "finished biglp fit" in failed(2, "suggest", "empty")
    (tmp_path / "next.csv").write_text("mine")
    assert "--overwrite" in failed(2, "suggest", "out", "-o", "next.csv")
    np.save("rows.npy", np.zeros((10, 5), dtype=np.float32))
    assert "changed" in failed(2, "suggest", "out")
