"""``biglp predict``: new rows labelled with a model file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cli_tools import done, failed, run, run_python
from row_files import write


def test_whole_numbers_then_fractions(here):
    """A model of whole-number columns must not cut off the fractions of new rows."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (500, 2)) * 10
    shown = np.where(np.arange(500) < 40, values[:, 0] // 10, -1)
    pq.write_table(pa.table({"a": values[:, 0], "b": values[:, 1], "y": shown}), "whole.parquet")
    done("fit", "whole.parquet", "--label-column", "y", "-o", "out", "-k", "4")
    for name, numbers in (("new", [0.4, 9.7]), ("cut", [0.0, 9.0])):
        pq.write_table(pa.table({"a": numbers, "b": [0.0, 0.0]}), f"{name}.parquet")
        done("predict", "out", f"{name}.parquet", "-o", f"{name}.npy", "--probabilities")
    assert (np.load("new.probabilities.npy") != np.load("cut.probabilities.npy")).any()


def test_model_files(here, rows):
    values, shown, _ = rows
    done("fit", *write("npy", values, shown), "-o", "out")
    Path("not.biglp").write_bytes(b"nothing")
    predict = ("rows.npy", "-o", "new.npy")
    assert "not.biglp is not a whole biglp model" in failed(5, "predict", "not.biglp", *predict)
    assert "no model file gone.biglp" in failed(5, "predict", "gone.biglp", *predict)
    done("predict", "out/model.biglp", "rows.npy", "-o", "by-file.npy")
    done("predict", "out", "rows.npy", "-o", "again.npy")  # the folder of the fit will do
    assert (np.load("again.npy") == np.load("by-file.npy")).all()
    np.save("narrow.npy", values[:, :4])
    message = failed(3, "predict", "out/model.biglp", "narrow.npy", "-o", "new.npy")
    assert "narrow.npy has 4 features" in message
    assert not Path("new.npy").exists()
    done("predict", "out/model.biglp", *predict)
    assert "already holds results" in failed(2, "predict", "out/model.biglp", *predict)
    done("predict", "out/model.biglp", *predict, "--overwrite")


def test_new_rows_that_are_written_in_another_way_or_drift(here):
    rng = np.random.default_rng(0)
    known = pd.DataFrame(rng.normal(size=(200, 8)).round(3), columns=[f"x{i}" for i in range(8)])
    shown = ["ab"[i % 2] if i < 40 else "" for i in range(200)]
    known.assign(y=shown).to_csv("rows.csv", index=False)
    done("fit", "rows.csv", "--label-column", "y", "-o", "out")
    # The first line is at fault as much as the others: the model knows the column as numbers.
    known[:2].assign(x0=["3 kg", "4 kg"]).to_csv("new.csv", index=False)
    message = failed(3, "predict", "out/model.biglp", "new.csv", "-o", "n.csv")
    assert "line 2: '3 kg' in column 'x0' is not a number, as that column was in the" in message
    assert "--drop" not in message  # predict has no such option
    # More columns drift than are named; a file of answers has no summary beside it.
    (known + 1000.0).to_csv("new.csv", index=False)
    to_folder = run("predict", "out/model.biglp", "new.csv", "-o", "found").stderr
    to_file = run("predict", "out/model.biglp", "new.csv", "-o", "found.csv").stderr
    assert "more (drift in summary.json)" in to_folder
    assert "more. Labels of such rows" in to_file


def test_what_only_a_fit_needs_is_not_loaded():
    code = "import sys; from biglp._jobs import PredictJob; print('biglp._report' in sys.modules)"
    assert run_python(code).stdout == "False\n"
