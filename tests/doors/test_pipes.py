"""``-`` as input and output."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from biglp.cli import app
from cli_tools import done, failed


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
    assert pd.read_csv("out/labels.csv").columns.tolist() == ["row", "label"]
    expected = np.load("expected.npy").tolist()
    for name in ("july.csv", "july.csv.gz", "july.jsonl"):
        done("predict", "out/model.biglp", "new.csv", "-o", name, "--confidence")
        assert Path(name).is_file()
        found = pd.read_json(name, lines=True) if "json" in name else pd.read_csv(name)
        assert found.columns.tolist() == ["row", "label", "confidence"]
        assert found["label"].tolist() == expected
        assert "already holds" in failed(2, "predict", "out/model.biglp", "new.csv", "-o", name)
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
