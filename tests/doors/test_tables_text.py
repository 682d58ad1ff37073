"""Tables as text, CSV and JSON lines: how they are laid out and written, and what can be wrong."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, ParameterError
from biglp._rows import InputFiles, ReadOptions, as_source
from cli_tools import done
from label_files import read_labels

BLOCK = 300_000
"""Short lines that are more text than is parsed at once."""


@pytest.fixture
def csv(tmp_path):
    def write(text: str, **options):
        (tmp_path / "x.csv").write_bytes(text.encode())
        return as_source(tmp_path / "x.csv", **options)

    return write


@pytest.mark.parametrize("before", [40, BLOCK])
def test_wrong_lines_are_named_and_fractions_may_come_late(csv, before):
    for line, message in (
        ("7", r"x\.csv, line {line}: 1 fields where there should be 2 \('7'\)"),
        ("1,2,3", r"line {line}: 3 fields where there should be 2"),
        # Found while parsing, or before that among the rows that types are guessed from.
        ("1,x7", r"line {line}: 'x7' in column 'b' is not a num|'b' \(.*'x7' in line {line}\)"),
    ):
        text = "a,b\n" + "1,2\n" * before + f"{line}\n" + "1,2\n" * 40
        with pytest.raises(BadRowsError, match=message.replace("{line}", str(before + 2))):
            csv(text, columns=["b"], header=True, categorical="error")
    source = csv("a,b\n" + "1,2\n" * before + "1.5,2e-3\n")
    np.testing.assert_array_equal(source.read(before, before + 1), [[1.5, 2e-3]])


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiters_and_headers(csv, mark):
    rows = [[1.0, -2.0, 3.5], [4.0, 5.0, 6.0]]
    lines = "\n".join(mark.join(map(str, row)) for row in rows)
    named = csv(mark.join(["a", "b c", '"d,;\t|"']) + "\n" + lines + "\n")
    assert named.feature_names == ("a", "b c", "d,;\t|")
    np.testing.assert_array_equal(named.read(0, 2), rows)
    bare = csv(lines)
    assert bare.feature_names == ("f0", "f1", "f2")
    np.testing.assert_array_equal(bare.read(0, 2), rows)
    assert csv(mark.join("012") + "\n" + lines + "\n").feature_names == ("0", "1", "2")


def test_quotes_marks_missing_and_truth_values(csv):
    source = csv('\ufeffa,b\n"1","2"\n3,\n,?\n5,NA\n', missing="mean")
    assert source.feature_names == ("a", "b")
    np.testing.assert_array_equal(source.read(0, 4), [[1, 2], [3, 2], [3, 2], [5, 2]])
    np.testing.assert_array_equal(csv("a\ntrue\nfalse\n").read(0, 2), [[1], [0]])
    with pytest.raises(BadRowsError, match=r"1 missing values.*first in rows 1 "):
        csv("a\n1\n\n3\n", missing="error")  # the empty line of a single column


def test_files_with_nothing_in_them_and_numbers_as_wide_as_is_wanted(csv):
    for text, message in (
        ("", "is empty"),
        ("a,b\n", "column names but no rows"),
        ("a,a\n1,2\n", "more than one column named 'a'"),
    ):
        with pytest.raises(BadRowsError, match=message):
            csv(text)
    assert csv("a\n0.1\n", dtype="float32").read(0, 1)[0, 0] == np.float32(0.1)
    assert csv("a\n0.1\n").read(0, 1)[0, 0] == 0.1
    with pytest.raises(ParameterError, match="cache='never' cannot be used"):
        csv("a\n1\n", cache="never")


# JSON lines: fields are columns, arrays are embeddings --------------------------------------------


def write(path, lines):
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "n"), [("x.jsonl", 200), ("x.ndjson", 50_000), ("x.jsonl.gz", 50_000)]
)
def test_fields_and_lists(tmp_path, name, n):
    lists = np.random.default_rng(0).normal(size=(n, 3))
    lines = [
        {"id": 2**60 + i, "emb": numbers, "age": i, "y": "ab"[i % 2]}
        for i, numbers in enumerate(lists.tolist())
    ]
    path = write(tmp_path / name, lines)
    source = as_source(path, columns=["emb", "age"])
    assert source.feature_names == ("emb[0]", "emb[1]", "emb[2]", "age")
    np.testing.assert_array_equal(source.read(0, n), np.column_stack([lists, np.arange(n)]))
    assert read_labels(path, n, column="y").tolist() == [line["y"] for line in lines]
    table = InputFiles(path).tables(ReadOptions())[0].as_written("id")
    ids = [value for batch in table.batches(["id"]) for value in batch["id"].to_pylist()]
    assert ids == [line["id"] for line in lines]  # whole, though features are float64
    assert InputFiles(path).peek().columns["emb"].startswith("list")


def test_fields_that_are_missing_or_of_several_kinds(tmp_path):
    path = write(tmp_path / "x.jsonl", [{"a": 1, "b": 1}, {"a": 2}, {"a": 3, "b": None}])
    with pytest.raises(BadRowsError, match=r"2 missing values, in 'b' \(2\); first in rows 1, 2"):
        as_source(path, missing="error")
    np.testing.assert_array_equal(as_source(path, missing="mean").read(0, 3)[:, 1], [1, 1, 1])
    titles = ["Alien", 1776, None, "Big"] * 5
    write(path, [{"title": title, "x": i % 7} for i, title in enumerate(titles)])
    with pytest.raises(BadRowsError, match=r"line 2: 1776 in field 'title' is numbers.*--drop"):
        as_source(path, columns=["title", "x"])
    rows = as_source(path, drop=["title"]).read(0, 20)
    assert rows.ravel().tolist() == [i % 7 for i in range(20)]
    classes = [2**60 + i % 3 for i in range(6)]  # floating-point numbers would round them
    write(path, [{"x": 1.5, "y": label} for label in classes])
    assert read_labels(path, 6, column="y").tolist() == classes


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"a": 1}\n', '{"a": \n'], "line 2: .* is not JSON"),
        (['{"a": 1}\n', "[1, 2]\n"], "line 2: .* is not an object with named fields"),
        (['{"a": 1}\n', "\n", '{"a": "q"}\n'], "line 3: \"q\" in field 'a' is text"),
        (['{"a": [1]}\n', '{"a": 2}\n'], "line 2: 2 in field 'a' is numbers"),
        (['{"a": {"b": 1}}\n'], "neither numbers nor text"),
        (["\n"], "is empty"),
        (['{"a": [1, 2]}\n', '{"a": [1]}\n'], "'a' has lists of 1 .* first in rows 1 "),
        (['{"a": [1, 2]}\n', '{"a": [1, null]}\n'], "lists with missing .* first in rows 1 "),
        (['{"a": [1, 2]}\n', '{"b": 1}\n'], "'a' has no list .* first in rows 1 "),
    ],
)
def test_wrong_fields_are_named(tmp_path, lines, message):
    path = write(tmp_path / "x.jsonl", lines)
    with pytest.raises(BadRowsError, match=message):
        as_source(path, drop=["b"] if "no list" in message else [])


# Numbers, clocks and dates as people write them ---------------------------------------------------


def test_written_numbers_are_as_good_as_clean_ones(tmp_path):
    n, rng = 600, np.random.default_rng(0)
    truth = rng.integers(0, 3, n)
    price = np.round(np.exp(rng.normal(6 + 0.8 * truth, 0.4)), 2)
    metres = np.round(rng.uniform(200, 4000, n) * (1 + (truth == 1))).astype(int)
    minutes = np.clip(rng.normal(600 + 150 * (truth == 2), 90), 0, 1439).astype(int)
    share = np.round(rng.normal(40 + 15 * truth, 8), 1)
    clean = np.column_stack([price, metres, minutes, share])
    written = pd.DataFrame(
        {
            "price": [f"${value:,.2f}" for value in price],
            "distance": [f"{m} m" if m < 1000 else f"{m / 1000:.3f} km" for m in metres],
            "starts": [f"{m // 60}:{m % 60:02}" for m in minutes],
            "share": [f"{value}%" for value in share],
        }
    )
    y = np.where(np.arange(n) < 60, truth, -1)
    right = [
        (LowRankLabelPropagation(random_state=0).fit(X, y).transduction_ == truth)[60:].mean()
        for X in (pd.DataFrame(clean, columns=written.columns), written)
    ]
    assert right[0] > 0.7
    assert abs(right[0] - right[1]) < 0.01
    rows, out, new = (tmp_path / name for name in ("rows.csv", "out", "new.csv"))
    written.assign(kind=np.where(y < 0, "", truth.astype(str))).to_csv(rows, index=False)
    shown = done("inspect", rows, "--label-column", "kind").stdout
    assert all(f"written as text (in {unit})" in shown for unit in ("$", "%", "km"))
    done("fit", rows, "--label-column", "kind", "-o", out)
    written.loc[0, "price"] = "on request"  # one that is no number is a missing one
    written.head(50).to_csv(new, index=False)
    done("predict", out / "model.biglp", new, "-o", tmp_path / "labels.csv")
    assert len(pd.read_csv(tmp_path / "labels.csv")) == 50
