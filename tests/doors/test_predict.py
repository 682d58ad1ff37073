"""``biglp predict``: new rows labelled with a model file; ``-`` as input and output."""

import gzip
import io
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError
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
    known.assign(x0="n/k").to_csv("new.csv", index=False)
    message = failed(3, "predict", "out/model.biglp", "new.csv", "-o", "n.csv")
    assert "column 'x0' holds text (such as 'n/k') where the model has numbers" in message
    known[:2].assign(x0=["n/k", "4"]).to_csv("few.csv", index=False)
    told = done("predict", "out/model.biglp", "few.csv", "-o", "n.csv").stderr
    assert "1 value of 'x0' is no number ('n/k' in row 0)" in told
    # More columns drift than are named; a file of answers has no summary beside it.
    (known + 1000.0).to_csv("new.csv", index=False)
    to_folder = run("predict", "out/model.biglp", "new.csv", "-o", "found").stderr
    to_file = run("predict", "out/model.biglp", "new.csv", "-o", "found.csv").stderr
    assert "more (drift in summary.json)" in to_folder
    assert "more. Labels of such rows" in to_file


# New tables that are not as the first was: each line of the table in docs/tables.md, as "change:
# the usual table with the same labels, what is told, what --strict says".
OTHER_TABLES = {
    "a category never seen": (
        lambda new: new.assign(city=new.city.mask(new.index < 9, "Paris")),
        lambda new: new.assign(city=new.city.mask(new.index < 9)),
        "unknown categories in 'city' ('Paris')",
        None,
    ),
    "a further column": (lambda new: new.assign(more=1.5), None, None, "does not know 'more'"),
    "another order": (lambda new: new[new.columns[::-1]], None, None, None),
    "another type": (lambda new: new.assign(age=new.age.astype(str) + " "), None, None, None),
    "a missing column": (
        lambda new: new.drop(columns="age"),
        lambda new: new.assign(age=np.nan),
        "lacks 1 of the 3 columns that the model was fitted on: 'age'. They count as missing",
        "lacks 1 of the 3 columns",
    ),
    "a bad cell": (
        lambda new: new.assign(age=new.age.astype(str).mask(new.index == 7, "n/k")),
        lambda new: new.assign(age=new.age.mask(new.index == 7)),
        "1 value of 'age' is no number ('n/k' in row 7). They count as missing.",
        "1 value of 'age' is no number ('n/k' in row 7)",
    ),
    "a bad date": (
        lambda new: new.assign(day=new.day.mask(new.index == 7, "soon")),
        lambda new: new.assign(day=new.day.mask(new.index == 7)),
        "1 value of 'day' is no date or time ('soon' in row 7)",
        "1 value of 'day' is no date or time ('soon' in row 7)",
    ),
    "a missing value": (
        lambda new: new.assign(city=new.city.mask(new.index == 7)),
        lambda new: new.assign(city=new.city.mask(new.index == 7, "Paris")),
        None,
        "'city' has no value in 1 rows (first 7)",
    ),
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model of a table, and further rows of the kind."""
    folder, rng = tmp_path_factory.mktemp("fitted"), np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    frame = pd.DataFrame(
        {
            "age": (rng.normal(40, 9, 400) + 20 * truth).round(1),
            "city": rng.choice(["Oslo", "Rome"], 400),
            "day": pd.date_range("2024-01-01", periods=400).strftime("%Y-%m-%d"),
        }
    )
    frame.assign(y=np.where(np.arange(400) % 4, None, np.array(["a", "b"])[truth])).to_csv(
        folder / "rows.csv", index=False
    )
    done("fit", folder / "rows.csv", "--label-column", "y", "-o", folder / "out", "-k", "20", "-q")
    return folder / "out" / "model.biglp", frame[100:160].reset_index(drop=True)


@pytest.mark.parametrize("case", OTHER_TABLES)
@pytest.mark.parametrize("door", ["csv", "parquet", "python"])
def test_tables_that_are_not_as_the_first_was(fitted, here, case, door):
    (model, usual), (change, same, told, refused) = fitted, OTHER_TABLES[case]
    estimator = LowRankLabelPropagation.load(model)

    def found(frame, strict=False):
        """Probabilities and what was said, by one door."""
        if door == "python":
            estimator.strict = strict
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                return estimator.predict_proba(frame), " ".join(str(w.message) for w in caught)
        getattr(frame, f"to_{door}")(f"new.{door}", index=False)
        options = ["--strict"] * strict + ["--probabilities", "--overwrite", "--no-progress"]
        ended = done("predict", model, f"new.{door}", "-o", "found.npy", *options)
        assert ("does not know 'more'; left out" in ended.stdout) == ("more" in frame)
        return np.load("found.probabilities.npy"), " ".join(ended.stderr.split())

    answers, said = found(change(usual))
    assert told in said if told else "warning" not in said
    np.testing.assert_array_equal(answers, found((same or (lambda new: new))(usual))[0])
    if refused is None:
        found(change(usual), strict=True)
    elif door == "python":
        with pytest.raises(BadRowsError, match=re.escape(refused)):
            found(change(usual), strict=True)
    else:
        options = ("-o", "found.npy", "--strict", "--overwrite")
        getattr(change(usual), f"to_{door}")(f"new.{door}", index=False)
        assert refused in failed(3, "predict", model, f"new.{door}", *options)


def test_one_rule_of_strict_for_fit_predict_and_label(fitted, here):
    """A fit that leaves nothing out and fills nothing in, or is refused with all that it would."""
    _, rows = fitted
    Path("labels.csv").write_text("row,label\n0,a\n1,b\n")
    given = ("rows.csv", "--labels", "labels.csv")
    rows.assign(age=rows.age.astype(str).mask(rows.index == 7, "n/k")).to_csv("rows.csv")
    for command in (("fit", *given, "-o", "out"), ("label", *given, "--no-browser")):
        message = failed(3, *command, "--strict")
        assert "'age' is no number ('n/k' in row 7)" in message
        assert "is left out (it counts the rows)" in message
    assert "'age' is no number" in done("fit", *given, "-o", "out", "-k", "9").stdout
    rows.to_csv("rows.csv", index=False)
    done("fit", *given, "-o", "whole", "-k", "9", "--strict", "-q")


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
