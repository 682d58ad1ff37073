"""JSON lines: fields are columns, arrays are embeddings."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from biglp._core.errors import BadRowsError
from biglp._rows import InputFiles, ReadOptions, as_source
from biglp._tables import jsonlines as module
from label_files import read_labels


def write(path, lines):
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def lines():
    rng = np.random.default_rng(0)
    return [
        {"id": 2**60 + i, "emb": rng.normal(size=3).tolist(), "age": i, "y": "ab"[i % 2]}
        for i in range(200)
    ]


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.jsonl.gz"])
@pytest.mark.parametrize("piece", [50, 1 << 20])
def test_fields_and_lists(tmp_path, lines, name, piece, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", piece)  # shorter than a line, or longer than all
    path = write(tmp_path / name, lines)
    source = as_source(path, columns=["emb", "age"])
    expected = np.array([[*line["emb"], line["age"]] for line in lines])
    assert source.feature_names == ("emb[0]", "emb[1]", "emb[2]", "age")
    np.testing.assert_array_equal(source.read(0, 200), expected)
    assert read_labels(path, 200, column="y").tolist() == [line["y"] for line in lines]
    assert InputFiles(path).peek().columns["emb"].startswith("list")


def test_whole_numbers_stay_whole_where_they_are_no_features(tmp_path, lines):
    table = module.JsonLinesTable(str(write(tmp_path / "x.jsonl", lines)), ReadOptions())
    table = table.as_written("id")
    found = [value for batch in table.batches(["id"]) for value in batch["id"].to_pylist()]
    assert found == [line["id"] for line in lines]


def test_fractions_may_come_later(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 8)
    path = write(tmp_path / "x.jsonl", [{"a": 1}, {"a": 2.5, "b": 3}, "\n", {"a": -1}])
    np.testing.assert_array_equal(as_source(path).read(0, 3), [[1], [2.5], [-1]])


def test_a_field_that_is_missing(tmp_path):
    path = write(tmp_path / "x.jsonl", [{"a": 1, "b": 1}, {"a": 2}, {"a": 3, "b": None}])
    with pytest.raises(BadRowsError, match=r"2 missing values, in 'b' \(2\); first in rows 1, 2"):
        as_source(path, missing="error")
    np.testing.assert_array_equal(as_source(path, missing="mean").read(0, 3)[:, 1], [1, 1, 1])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"a": 1}\n', '{"a": \n'], "line 2: .* is not JSON"),
        (['{"a": 1}\n', "[1, 2]\n"], "line 2: .* is not an object with named fields"),
        (['{"a": 1}\n', "\n", '{"a": "q"}\n'], "line 3: \"q\" in field 'a' is text"),
        (['{"a": [1]}\n', '{"a": 2}\n'], "line 2: 2 in field 'a' is numbers"),
        (['{"a": {"b": 1}}\n'], "neither numbers nor text"),
        (["\n"], "is empty"),
        (
            ['{"a": [1, 2]}\n', '{"a": [1]}\n'],
            "'a' has lists of 1 numbers where .* first in rows 1 ",
        ),
        (
            ['{"a": [1, 2]}\n', '{"a": [1, null]}\n'],
            "lists with missing numbers .* first in rows 1 ",
        ),
        (['{"a": [1, 2]}\n', '{"b": 1}\n'], "'a' has no list .* first in rows 1 "),
    ],
)
def test_what_is_wrong_is_named(tmp_path, lines, message):
    path = write(tmp_path / "x.jsonl", lines)
    with pytest.raises(BadRowsError, match=message):
        as_source(path, drop=["b"] if "no list" in message else [])


def test_a_field_of_several_kinds_is_refused_until_it_is_left_out(tmp_path):
    lines = [
        {"title": title, "x": i % 7} for i, title in enumerate(["Alien", 1776, None, "Big"] * 5)
    ]
    path = write(tmp_path / "x.jsonl", lines)
    with pytest.raises(BadRowsError, match=r"line 2: 1776 in field 'title' is numbers.*--drop"):
        as_source(path, columns=["title", "x"])
    assert as_source(path, drop=["title"]).read(0, 20).ravel().tolist() == [
        i % 7 for i in range(20)
    ]
