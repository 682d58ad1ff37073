"""Where labels are, known from the format; labels and weights in files."""

from __future__ import annotations

import bz2
import gzip
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from biglp._core.errors import LabelError, ParameterError
from biglp._jobs.identity import label_identity
from biglp._labels.reading import LabelInput
from biglp._rows import InputFiles, ReadOptions
from cli_tools import done, failed
from helpers import blobs, soft_problem, write_weighted_table

TEXT = b"0 1:1 2:2\n1 1:3\n-1 2:5\n"


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("ending", [".libsvm", ".svm", ".svmlight", ".svml", ".SVM"])
def test_every_libsvm_file_holds_labels(tmp_path, ending, packing):
    path = tmp_path / f"x{ending}{packing}"
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packing]
    path.write_bytes(pack(TEXT))
    inputs = InputFiles(str(path))
    assert inputs.format.holds_labels
    assert not inputs.is_table
    labels = LabelInput(str(path)).read(None)
    assert (labels.n_rows, labels.rows.tolist(), labels.classes.tolist()) == (3, [0, 1], [0, 1])


def test_other_inputs(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert InputFiles("sim:100x3").format.holds_labels
    for name in ("x.npy", "x.csv"):
        inputs = InputFiles(str(tmp_path / name))
        assert not inputs.format.holds_labels
        with pytest.raises(ParameterError, match="nothing says where the labels"):
            label_identity(LabelInput(inputs.paths))
    assert InputFiles(str(tmp_path / "x.csv")).is_table


def test_labels_are_read_once(tmp_path, monkeypatch):
    import biglp._rows.libsvm as libsvm

    (tmp_path / "x.svm").write_bytes(TEXT)
    opened, plain = [], libsvm.open_text
    monkeypatch.setattr(libsvm, "open_text", lambda path: opened.append(path) or plain(path))
    LabelInput(str(tmp_path / "x.svm")).read(None)
    assert len(opened) == 1


@pytest.mark.parametrize("names", ["row,label,weight\n", "Weight,row,y\n", ""])
def test_a_file_of_rows_labels_and_weights(tmp_path, names):
    lines = ["3,cat,0.5", "1,dog,2", "5,,9", "3,dog,1.5", "6,dog,0"]
    if names.startswith("Weight"):
        lines = [",".join([line.split(",")[2], *line.split(",")[:2]]) for line in lines]
    path = tmp_path / "labels.csv"
    path.write_text(names + "\n".join(lines) + "\n")
    labels = LabelInput(None, (path,)).read(8)
    assert labels.classes.tolist() == ["cat", "dog"]
    assert labels.rows.tolist() == [1, 3]
    np.testing.assert_allclose(labels.distribution, [[0, 1], [0.25, 0.75]])
    np.testing.assert_allclose(labels.weights, [2, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,label,weight\n1,a,-1\n2,b,1\n", r"label of row 1 has weight -1"),
        ("row,label,weight\n1,a,\n2,b,1\n", r"label of row 1 has weight nan"),
        ("row,label,weight\n1,a,much\n2,b,1\n", r"column 'weight' must hold weights"),
    ],
)
def test_files_of_weights_that_cannot_be_used_are_refused(tmp_path, text, message):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(LabelError, match=message):
        LabelInput(None, (path,)).read(8)


def test_a_weight_column_that_is_not_there_is_refused(tmp_path):
    X, y, _, weights, _ = soft_problem()
    write_weighted_table(tmp_path / "rows.csv", X, y, weights)
    source = LabelInput(str(tmp_path / "rows.csv"), label_column="y", weight_column="v")
    with pytest.raises(ParameterError, match=r"weight column: .* no column 'v'; it has"):
        source.read(len(X))


WRITERS = {
    "parquet": pd.DataFrame.to_parquet,
    "feather": pd.DataFrame.to_feather,
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}


def write_table(folder, ending):
    """Rows with IDs and labels in a file of some format."""
    X, y, _ = blobs()
    frame = pd.DataFrame(X).add_prefix("f")
    frame["key"] = [f"r{number}" for number in range(len(X))]
    frame["y"] = [None if label < 0 else f"class {label}" for label in y]
    WRITERS[ending](frame, folder / f"rows.{ending}")
    return str(folder / f"rows.{ending}")


@pytest.mark.parametrize("ending", WRITERS)
def test_one_look_and_one_open_table_serve_a_whole_run(tmp_path, monkeypatch, ending):
    path, named, opened = write_table(tmp_path, ending), [], []

    def counted(calls, function):
        return lambda *args, **options: (calls.append(args[1]), function(*args, **options))[1]

    kind = type(InputFiles(path).format)
    monkeypatch.setattr(kind, "open_files", counted(opened, kind.open_files))
    monkeypatch.setattr(InputFiles, "__init__", counted(named, InputFiles.__init__))
    where = (path, "--label-column", "y", "--id-column", "key")
    out, model = tmp_path / "out", tmp_path / "out" / "model.biglp"
    commands = [
        ("fit", *where, "-o", out, "--output-format", "csv", "-q"),
        ("predict", model, path, "--id-column", "key", "-o", tmp_path / "new.csv", "-q"),
        ("suggest", *where, "--model", model),
        ("check", *where),
        ("inspect", *where),
    ]
    for command in commands:
        named.clear()
        opened.clear()
        done(*command)
        assert named.count(path) == len(opened) == 1, command


def test_open_tables_stay_behind_when_files_are_sent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path, "parquet")
    files = InputFiles("rows.parquet")
    (table,) = files.tables(ReadOptions())
    assert files.tables(ReadOptions()) == [table]
    facts = files.facts
    sent, sent_table = pickle.loads(pickle.dumps((files, table)))
    assert (sent.facts, sent.names) == (facts, files.names)
    monkeypatch.chdir("/")  # another process may have another working folder
    assert sent_table.read_part(0, ["key"]).num_rows == 200


@pytest.mark.parametrize("changed", ["rows.parquet", "labels.csv"])
def test_nothing_is_published_of_files_that_changed(tmp_path, monkeypatch, changed):
    """Labels are read once, before the first sweep, and rows are converted before it."""
    from biglp._fit.pipeline import Pipeline

    path, answer = write_table(tmp_path, "parquet"), Pipeline.answer
    (tmp_path / "labels.csv").write_text("row,label\n3,class 1\n")

    def change(*args, **options):
        os.utime(tmp_path / changed, ns=(1, 1))
        return answer(*args, **options)

    monkeypatch.setattr(Pipeline, "answer", change)
    named = (path, "--label-column", "y", "--labels", tmp_path / "labels.csv")
    message = failed(3, "fit", *named, "-o", tmp_path / "out", "-q")
    assert f"{changed} changed while it was being worked on" in message
    assert not (tmp_path / "out" / "labels.parquet").exists()
