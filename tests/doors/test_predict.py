"""``biglp predict``: new rows labelled with a model file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from cli_tools import done, failed, run, run_python
from row_files import write


def test_whole_numbers_then_fractions(here):
    """A model of whole-number columns must not cut off the fractions of new rows."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (500, 2)) * 10
    shown = np.where(np.arange(500) < 40, values[:, 0] // 10, -1)
    table = {"a": values[:, 0], "b": values[:, 1], "y": shown}
    pq.write_table(pa.table(table), "whole.parquet")
    done("fit", "whole.parquet", "--label-column", "y", "-o", "out", "-k", "4")
    pq.write_table(pa.table({"a": [0.4, 9.7], "b": [0.0, 0.0]}), "new.parquet")
    done("predict", "out/model.biglp", "new.parquet", "-o", "n.npy", "--probabilities")
    pq.write_table(pa.table({"a": [0.0, 9.0], "b": [0.0, 0.0]}), "cut.parquet")
    done("predict", "out/model.biglp", "cut.parquet", "-o", "c.npy", "--probabilities")
    assert (np.load("n.probabilities.npy") != np.load("c.probabilities.npy")).any()


def test_model_files(here, rows):
    values, shown, _ = rows
    done("fit", *write("npy", values, shown), "-o", "out")
    Path("not.biglp").write_bytes(b"nothing")
    predict = ("rows.npy", "-o", "new.npy")
    assert "not.biglp is not a whole biglp model" in failed(5, "predict", "not.biglp", *predict)
    assert "no model file gone.biglp" in failed(5, "predict", "gone.biglp", *predict)
    done("predict", "out/model.biglp", "rows.npy", "-o", "by-file.npy")
    by_file = np.load("by-file.npy")
    done("predict", "out", "rows.npy", "-o", "again.npy")  # the folder of the fit will do
    assert (np.load("again.npy") == by_file).all()
    np.save("narrow.npy", values[:, :4])
    message = failed(3, "predict", "out/model.biglp", "narrow.npy", "-o", "new.npy")
    assert "narrow.npy has 4 features" in message
    assert not Path("new.npy").exists()
    done("predict", "out/model.biglp", *predict)
    assert "already holds results" in failed(2, "predict", "out/model.biglp", *predict)
    done("predict", "out/model.biglp", *predict, "--overwrite")


def test_new_rows_whose_numbers_are_written_in_another_way(here):
    """The first line is at fault as much as the others: the model knows the column as numbers."""
    lines = [f"{i % 7},{i % 5},{'ab'[i % 2] if i < 40 else ''}" for i in range(200)]
    Path("rows.csv").write_text("\n".join(["x,z,y", *lines]) + "\n")
    done("fit", "rows.csv", "--label-column", "y", "-o", "out")
    Path("new.csv").write_text("x,z\n3 kg,1\n4 kg,2\n")
    message = failed(3, "predict", "out/model.biglp", "new.csv", "-o", "n.csv")
    assert "line 2: '3 kg' in column 'x' is not a number, as that column was in the rows" in message
    assert "--drop" not in message  # predict has no such option


def test_drift_is_told_where_it_is_written(here):
    """A file of answers has no summary beside it; more columns drift than are named."""
    names = [f"x{i}" for i in range(8)]
    rng = np.random.default_rng(0)
    known = rng.normal(size=(200, 8)).round(3)
    lines = [",".join(map(str, row)) for row in known]
    shown = [f"{line},{'ab'[i % 2] if i < 40 else ''}" for i, line in enumerate(lines)]
    Path("rows.csv").write_text("\n".join([",".join([*names, "y"]), *shown]) + "\n")
    done("fit", "rows.csv", "--label-column", "y", "-o", "out")
    moved = [",".join(map(str, row)) for row in known + 1000.0]
    Path("new.csv").write_text("\n".join([",".join(names), *moved]) + "\n")
    to_folder = run("predict", "out/model.biglp", "new.csv", "-o", "found").stderr
    to_file = run("predict", "out/model.biglp", "new.csv", "-o", "found.csv").stderr
    assert "more (drift in summary.json)" in to_folder
    assert "more. Labels of such rows" in to_file


def test_what_only_a_fit_needs_is_not_loaded():
    code = "import sys; from biglp._jobs import PredictJob; print('biglp._report' in sys.modules)"
    assert run_python(code).stdout == "False\n"
