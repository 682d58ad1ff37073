"""IDs from the table of the rows to every result, and back with the answers."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from biglp._jobs import FinishedFit
from cli_tools import done, failed
from helpers import blobs

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")

NAMES = np.array(["ant", "bee", "cow"])
OPTIONS = ("--id-column", "key", "--label-column", "kind", "--drop", "note", "-k", "60", "--quiet")


@pytest.fixture
def truth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, truth = blobs(n=900, labelled=12, dtype=np.float32)
    frame = pd.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])])
    frame.insert(0, "key", [f"K{number}" for number in range(900)])
    frame["kind"] = np.where(y < 0, None, NAMES[y])
    frame["note"] = [f"note {number}" for number in range(900)]
    frame.to_parquet("rows.parquet", row_group_size=100)
    return NAMES[truth]


def test_results_carry_ids(truth, monkeypatch):
    monkeypatch.setattr("biglp._output.table.TABLE_ROWS", 130)
    done("fit", "rows.parquet", *OPTIONS, "-o", "out")
    table = pq.read_table("out/labels.parquet")
    assert table.column_names == ["key", "row", "label", "confidence"]
    assert table["key"].to_pylist() == [f"K{row}" for row in table["row"].to_pylist()]
    done("predict", "out", "rows.parquet", "-o", "new.parquet")  # the model knows the column
    again = pq.read_table("new.parquet")
    assert again.column_names == table.column_names
    assert again["key"].to_pylist() == table["key"].to_pylist()
    pq.write_table(pq.read_table("rows.parquet").drop(["key"]), "nameless.parquet")
    done("predict", "out", "nameless.parquet", "-o", "by-row.parquet")
    assert pq.read_table("by-row.parquet").column_names == ["row", "label", "confidence"]
    other = ("--id-column", "note", "-o", "by-note.csv")
    done("predict", "out", "rows.parquet", *other)
    assert Path("by-note.csv").read_text().splitlines()[0] == "note,row,label,confidence"
    named = ("out/model.biglp", "rows.parquet", "--id-column", "key", "-o", "new.npy")
    assert "IDs are not written" in done("predict", *named).stdout
    lines = done("check", "out", "--least", "0").stdout.splitlines()
    named = next(line for line in lines if line.lstrip().startswith("row"))
    assert named.split()[:2] == ["row", "key"]


def test_suggestions_go_straight_back(truth):
    done("fit", "rows.parquet", *OPTIONS, "-o", "out")
    done("suggest", "out", "-n", "5", "-o", "next.csv", "--show", "note", "-q")
    table = pd.read_csv("next.csv")
    assert [*table.columns][:3] == ["key", "row", "label"]
    assert table["key"].tolist() == [f"K{row}" for row in table["row"]]
    assert table["note"].tolist() == [f"note {row}" for row in table["row"]]
    table["label"] = truth[table["row"]]
    table[::-1].to_csv("next.csv", index=False)
    told = done("fit", "rows.parquet", *OPTIONS[:-1], "--labels", "next.csv", "-o", "more").stdout
    assert "next.csv: 5 labelled rows, none of them labelled before." in told
    summary = json.loads(Path("more/summary.json").read_text())
    assert summary["labelled_rows"] == 17
    assert summary["features"] == 5
    # The folder remembers column and file.
    fit = FinishedFit.in_folder(Path("more"), instead="", changed="")
    assert (fit.label_column, fit.id_column, len(fit.labels)) == ("kind", "key", 1)
    rows = {*table["row"]}
    again = done("suggest", "more", "-n", "9").stdout.splitlines()[4:]
    firsts = {line.split()[0] for line in again if line.strip()}
    numbers = {int(first) for first in firsts if first.isdecimal()}
    assert numbers
    assert not rows & numbers
    done("check", "more", "-q")


def test_first_suggestions_and_errors_name_ids(truth):
    options = ("--id-column", "key", "--label-column", "kind", "--drop", "note")
    shown = done("suggest", "rows.parquet", *options, "-n", "6", "-o", "first.csv").stdout
    assert "--id-column key" in shown
    table = pd.read_csv("first.csv")
    assert [*table.columns] == ["key", "row", "label"]
    assert table["key"].tolist() == [f"K{row}" for row in table["row"]]
    frame = pd.read_parquet("rows.parquet")
    frame.loc[[17, 500], "x1"] = np.nan
    frame.to_parquet("rows.parquet")
    message = failed(3, "fit", "rows.parquet", *OPTIONS, "--missing", "error", "-o", "out")
    assert "In column 'key' these rows are 'K17', 'K500'." in message
    named = ("--id-column", "nix", *OPTIONS[2:], "-o", "o")
    assert "'nix'" in failed(2, "fit", "rows.parquet", *named)
    np.save("rows.npy", np.eye(3))
    np.save("y.npy", np.array([0, 1, -1]))
    named = ("rows.npy", "--labels", "y.npy", "--id-column", "key", "-o", "out")
    assert "--id-column 'key' means nothing" in failed(2, "fit", *named)
    Path("rows.csv").write_text("id,x\n" + "".join(f"P{i},{i % 7}\n" for i in range(60)))
    Path("labels.csv").write_text("id,label\nP1,a\nQ2,b\nQ3,b\n")
    message = failed(3, "fit", "rows.csv", "--id-column", "id", "--labels", "labels.csv", "-o", "o")
    assert "only one class" in message
    assert "'Q2'" in message
    fit = ("fit", "rows.csv", "--id-column", "id", "--labels", "labels.csv")
    message = failed(3, *fit, "-o", "o", "--strict")
    assert "2 IDs are those of no row, and their labels were left out: 'Q2', 'Q3'" in message
    # Rows whose labels differ are named as they are known.
    Path("labels.csv").write_text("id,label\nP1,a\nP2,b\nP9,a\nP9,b\n")
    Path("more.csv").write_text("id,label\nP1,a\nP2,a\n")
    told = done(*fit, "--labels", "more.csv", "-o", "o").stdout
    assert "where they differ: in 1 row ('P9')" in told
    assert "replaced, 1 row ('P2') by another one" in told
