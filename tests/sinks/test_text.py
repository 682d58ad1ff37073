"""Answers as CSV and as JSON lines."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

import biglp._output.table as table_sink
from biglp._output import file_sink, table_ending
from sink_tools import ALL, N, answers, broken, fill

ENDINGS = (".csv", ".csv.gz", ".jsonl", ".ndjson", ".jsonl.gz")


def read(path) -> pd.DataFrame:
    if ".csv" in path.name:
        return pd.read_csv(path)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return pd.DataFrame([json.loads(line) for line in file])


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_back(ending, tmp_path, classes, monkeypatch):
    monkeypatch.setattr(table_sink, "TABLE_ROWS", 300)
    given, path = answers(len(classes)), tmp_path / f"july{ending}"
    with file_sink(path, N, classes, ALL) as sink:
        fill(sink, given)
        assert not path.exists()
    assert [path.name for path in tmp_path.iterdir()] == [path.name]
    table = read(path)
    assert list(table.columns) == ["row", "label", "confidence", *(f"p_{c}" for c in classes)]
    assert table["row"].tolist() == list(range(N))
    assert table["label"].tolist() == classes[given.argmax(axis=1)].tolist()
    found = table[[f"p_{c}" for c in classes]].to_numpy().astype(np.float32)
    np.testing.assert_array_equal(found, given)  # every digit of the float32 numbers


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_classes_with_marks(ending, tmp_path):
    classes = np.array(['a,"b"', "new\nline", "ö"], dtype=object)
    with file_sink(tmp_path / f"x{ending}", N, classes, ("label",), None) as sink:
        fill(sink, answers(3))
    expected = classes[answers(3).argmax(axis=1)].tolist()
    assert read(tmp_path / f"x{ending}")["label"].tolist() == expected


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failure_leaves_nothing(ending, tmp_path):
    with pytest.raises(ZeroDivisionError):
        broken(file_sink(tmp_path / f"x{ending}", N, [0, 1]), answers(2))
    assert not list(tmp_path.iterdir())


def test_the_same_answers_are_the_same_bytes(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        with file_sink(tmp_path / name, N, [0, 1], ALL, top=None) as sink:
            fill(sink, answers(2))
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_plain_files_read_as_people_write_them(tmp_path):
    with file_sink(tmp_path / "x.csv", 2, ["cat", "dog"], ("label", "confidence")) as sink:
        sink.write(0, np.array([[0.9, 0.1], [0.25, 0.75]], dtype=np.float32))
    text = (tmp_path / "x.csv").read_text()
    assert text == "row,label,confidence\n0,cat,0.9\n1,dog,0.75\n"
    with file_sink(tmp_path / "x.jsonl", 1, ["cat", "dog"], ALL, top=1) as sink:
        sink.write(0, np.array([[0.9, 0.1]], dtype=np.float32))
    line = (tmp_path / "x.jsonl").read_text()
    assert line == '{"row": 0, "label": "cat", "confidence": 0.9, "class_1": "cat", "p_1": 0.9}\n'


def test_endings():
    assert table_ending("a.b/July.CSV.gz") == ".csv.gz"
    assert table_ending("july.parquet") == ".parquet"
    assert table_ending("july.gz") is None
    assert table_ending("july") is None
