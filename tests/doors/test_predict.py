"""``biglp predict``: new rows labelled with a model file; ``-`` as input and output."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from biglp.cli import app
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


# ``-`` as input and output ------------------------------------------------------------------------


def fed(data: bytes, *args: object):
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=data)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def model(here, rows):
    """A model, and a frame of the rows it was fitted on."""
    values, shown, _ = rows
    frame = pd.DataFrame(values, columns=[f"c{j}" for j in range(values.shape[1])])
    frame.assign(y=shown).to_csv("train.csv", index=False)
    options = ("-k", "20", "--output-format", "csv")
    done("fit", "train.csv", "--label-column", "y", "-o", "out", *options)
    frame.to_csv("new.csv", index=False)
    done("predict", "out/model.biglp", "new.csv", "-o", "expected.npy")
    return frame


def test_answers_as_text(model):
    expected = np.load("expected.npy").tolist()
    for name in ("july.csv", "july.csv.gz", "july.jsonl"):
        done("predict", "out/model.biglp", "new.csv", "-o", name)
        assert Path(name).is_file()
        found = pd.read_json(name, lines=True) if "json" in name else pd.read_csv(name)
        assert found.columns.tolist() == ["row", "label", "confidence"]
        assert found["label"].tolist() == expected
        assert "already holds" in failed(2, "predict", "out/model.biglp", "new.csv", "-o", name)
    assert pd.read_csv("out/labels.csv").columns.tolist() == ["row", "label", "confidence"]
    done("predict", "out", "new.csv", "-o", "bare.csv", "--no-confidence")
    assert pd.read_csv("bare.csv").columns.tolist() == ["row", "label"]
    assert "name a folder" in failed(2, "fit", "train.csv", "--label-column", "y", "-o", "x.csv")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "npy", "parquet", "named"])
def test_from_standard_input_to_standard_output(kind, model):
    buffer, more = io.BytesIO(), []
    if kind == "npy":
        np.save(buffer, model.to_numpy())
    elif kind == "parquet":
        model.to_parquet(buffer)
    else:
        text = model.to_csv(index=False).encode("utf-16")
        buffer.write(gzip.compress(text) if kind == "csv.gz" else text)
        more = ["--input-format", "csv"] if kind == "named" else []
    result = fed(buffer.getvalue(), "predict", "out/model.biglp", "-", "-o", "-", *more)
    found = pd.read_csv(io.StringIO(result.stdout))
    assert found["label"].tolist() == np.load("expected.npy").tolist()
    assert "rows labelled" in result.stderr


def test_other_formats_and_commands(model):
    text = Path("new.csv").read_bytes()
    to_lines = ("-o", "-", "--output-format", "jsonl", "-q")
    lines = fed(text, "predict", "out/model.biglp", "-", *to_lines).stdout.splitlines()
    assert [json.loads(line)["label"] for line in lines] == np.load("expected.npy").tolist()
    train = Path("train.csv").read_bytes()
    fed(train, "fit", "-", "--label-column", "y", "-o", "again", "-k", "20")
    assert Path("again/labels.parquet").exists()
    assert "stdin.csv: CSV" in fed(train, "inspect", "-", "--label-column", "y").stdout
    table = fed(text, "suggest", "-", "--model", "out/model.biglp", "-n", "3", "-o", "-").stdout
    assert table.startswith("row,label,current_label,confidence,doubt\n")
    assert len(table.splitlines()) == 4


def test_what_cannot_work(here):
    for words, line in {
        "standard input (-) can be read once": "predict m - - -o x.npy",
        "name a folder": "fit x.npy -o -",
        "--resume needs files": "predict m - -o x.npy --resume",
        "share files only": "predict m x.npy -o - --engine mpi",
        "for rows from standard input": "predict m x.npy -o x --input-format csv",
        "is empty": "predict m - -o x.npy",
    }.items():
        assert words in failed(2, *line.split())
    unknown = CliRunner().invoke(app, ["inspect", "-"], input=b"\xff\xff\xff\xff\0\1\2")
    assert (unknown.exit_code, "name it: --input-format" in unknown.stderr) == (2, True)
    assert not list(Path().iterdir())
