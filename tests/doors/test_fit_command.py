"""``biglp fit`` on small files: what it reads, what it writes and prints, and what it refuses."""

import gzip
import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from biglp import LowRankLabelPropagation
from biglp._fit import Pipeline
from biglp._rows import InputFiles
from cli_tools import done, failed, run
from helpers import blobs, soft_problem
from made_tables import articles, some_labels
from row_files import FEATURES, ROWS, found_labels, write

OTHERS = ("model.biglp", "report.html", "summary.json")
"""What is written beside the labels."""


def summary(folder="out"):
    return json.loads(Path(folder, "summary.json").read_text())


@pytest.mark.parametrize("kind", ["npy", "parquet", "folder", "csv", "libsvm"])
def test_same_labels_from_every_format(here, rows, kind):
    values, shown, truth = rows
    arguments = write(kind, values, shown)
    done("fit", *arguments, "--scaling", "none", "--seed", "3", "-k", "60", "-o", "out")
    model = LowRankLabelPropagation(scaling="none", random_state=3, n_landmarks=60)
    found = found_labels("out")
    np.testing.assert_array_equal(found, model.fit(values, shown).transduction_)
    assert (found == truth).mean() > 0.95
    table = kind in ("parquet", "folder", "csv")
    names = sorted(path.name for path in Path("out").iterdir())
    assert names == ["labels.parquet" if table else "labels.npy", *OTHERS]
    done("predict", "out/model.biglp", arguments[0], "-o", "new.npy")
    np.testing.assert_array_equal(np.load("new.npy"), model.predict(values))


def test_more_than_labels(here, rows):
    values, shown, _ = rows
    arguments = write("npy", values, shown)
    done("fit", *arguments, "-o", "a", "--probabilities", "--confidence")
    probabilities = np.load("a/probabilities.npy")
    assert probabilities.shape == (ROWS, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(np.load("a/confidence.npy"), probabilities.max(axis=1))
    done("fit", *arguments, "-o", "b", "--top", "2", "--output-format", "parquet")
    table = pq.read_table("b/labels.parquet")
    assert table.column_names == ["row", "label", "confidence", "class_1", "p_1", "class_2", "p_2"]
    np.testing.assert_array_equal(table["class_1"].to_numpy(), np.load("a/labels.npy"))
    done("predict", "a/model.biglp", "rows.npy", "-o", "new.npy", "--confidence")
    assert sorted(path.name for path in here.glob("new*")) == ["new.confidence.npy", "new.npy"]
    done("predict", "a/model.biglp", "rows.npy", "-o", "folder", "--top", "1")
    assert {path.name for path in Path("folder").iterdir()} >= {"labels.npy", "top_classes.npy"}


def test_categories_and_missing_values(here, connections):
    common = ("fit", connections, "--label-column", "class", "-o", "out")
    message = failed(3, *common, "--categorical", "error", "--missing", "error")
    assert "'service' (string)" in message
    assert "'bytes' (21)" in message  # all that is wrong, at once
    assert "--categorical auto --missing auto" in message
    assert not Path("out").exists()
    done(*common, "--categorical", "onehot", "--missing", "mean")
    truth = np.array(Path("truth.txt").read_text().split())
    found = pq.read_table("out/labels.parquet")["label"].to_pylist()
    assert (np.array(found) == truth).mean() > 0.9
    assert summary()["features"] == 3 + 4

    # New rows: columns in another order, a category that is not known, a hole elsewhere.
    new = pq.read_table(connections).select(["bytes", "service", "error_rate", "duration"])
    new = new.set_column(1, "service", pa.array(["gopher", *new["service"].to_pylist()[1:]]))
    pq.write_table(new, "new.parquet")
    pyarrow.csv.write_csv(new, "new.csv")
    answers = []
    for name in ("new.parquet", "new.csv"):
        done("predict", "out/model.biglp", name, "-o", f"{name}.labels.parquet")
        answers.append(pq.read_table(f"{name}.labels.parquet")["label"].to_pylist())
    assert (np.array(answers[0]) == truth).mean() > 0.9
    assert answers[1] == answers[0]
    pq.write_table(new.drop(["service"]), "less.parquet")
    told = done("predict", "out/model.biglp", "less.parquet", "-o", "less-labels.parquet").stderr
    assert "less.parquet lacks 1 of the 4 columns" in told
    assert "'service'" in told
    common = ("fit", connections, "--label-column", "class")
    done(*common, "--columns", "duration,error_rate", "-o", "a")
    done(*common, "--drop", "service,bytes", "-o", "b")
    assert Path("a/labels.parquet").read_bytes() == Path("b/labels.parquet").read_bytes()
    assert "no column 'colour'" in failed(2, *common, "--columns", "duration,colour", "-o", "c")


def test_wrong_usage(here, rows):
    values, shown, _ = rows
    arguments = write("npy", values, shown)
    for options, message in (
        ("--alpha 2", "--alpha 2.0 is outside (0, 1)"),
        ("--factor best", "--factor 'best' is not known"),
        ("--memory lots", "--memory 'lots' is not an amount"),
        ("-o out.npy", "must name a folder"),
        ("--resume --overwrite", "contradict"),
        ("--threads 2 --engine serial", "--threads 2 cannot be set"),
    ):
        assert message in failed(2, "fit", *arguments, "-o", "out", *options.split())
    assert "--label-column NAME" in failed(2, "fit", "rows.npy", "-o", "out")
    for options in ("-o out --top 0", "-o out --colour red", "", "-o out --probabilities --top 1"):
        assert run("fit", *arguments, *options.split()).exit_code == 2
    assert not Path("out").exists()


def test_damaged_files(here, rows):
    values, shown, _ = rows
    write("parquet", values, shown)
    write("csv", values, shown)
    write("npy", values, shown)
    content = Path("rows.parquet").read_bytes()
    Path("short.parquet").write_bytes(content[: len(content) // 2])
    middle = bytearray(content)
    middle[len(content) // 3 : len(content) // 3 + 3000] = bytes(3000)
    Path("damaged.parquet").write_bytes(middle)
    lines = Path("rows.csv").read_text().splitlines()
    lines[1234] = "1.0,2.0"
    Path("short.csv").write_text("\n".join(lines) + "\n")
    Path("cut.npy").write_bytes(Path("rows.npy").read_bytes()[:5000])
    np.save("few.npy", shown[:10])
    values = values.copy()
    values[17, 2] = np.nan
    np.save("nan.npy", values)
    for code, command, message in (
        (3, "short.parquet --label-column y", "short.parquet cannot be read as Parquet"),
        (3, "damaged.parquet --label-column y", "damaged.parquet"),
        (3, "short.csv --label-column y", "short.csv, line 1235: 2 fields"),
        (2, "rows.csv --label-column target", "no column 'target'"),
        (3, "cut.npy --labels labels.npy", "cut.npy"),
        (3, "gone.npy --labels x", "there is no file gone.npy"),
        (3, "rows.npy --labels few.npy", "few.npy has 10 labels, but there are 3,000 rows"),
        (3, "nan.npy --labels labels.npy", "in 1 of 3,000 rows of nan.npy (first: rows 17)"),
    ):
        assert message in failed(code, "fit", *command.split(), "-o", "out")
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv", "libsvm"])
@pytest.mark.parametrize("step", ["problem", "answer"])
def test_file_changes_while_it_is_swept(here, rows, monkeypatch, kind, step):
    """Before or after the step's blocks were read; nothing is published."""
    values, shown, _ = rows
    arguments = write(kind, values, shown)
    Path("more.csv").write_text("row,label\n3,1\n")
    changes = "more.csv" if (kind, step) == ("npy", "answer") else arguments[0]
    sweep = getattr(Pipeline, step)

    def changed(*args, **options):
        found = sweep(*args, **options)
        os.utime(changes, ns=(1, 1))
        return found

    monkeypatch.setattr(Pipeline, step, changed)
    more = () if kind == "libsvm" else ("--labels", "more.csv")  # beside its own
    message = failed(3, "fit", *arguments, *more, "-o", "out")
    assert f"{changes} changed while it was being worked on" in message
    assert not list(Path("out").glob("labels*"))


def test_summary(here, rows):
    values, shown, _ = rows
    result = done("fit", *write("npy", values, shown), "-o", "out", "--json", "-k", "30")
    said = json.loads(result.stdout)
    assert said == summary()
    found = np.load("out/labels.npy")
    expected = {
        "rows": ROWS,
        "features": FEATURES,
        "labelled_rows": (shown >= 0).sum(),
        "given": {str(c): int((shown == c).sum()) for c in range(3)},
        "found": {str(c): int((found == c).sum()) for c in range(3)},
        "warnings": [],
    }
    assert said | expected == said
    assert {step["step"] for step in said["steps"]} >= {"k-means", "Gram", "labels"}
    assert all(step["seconds"] > 0 for step in said["steps"])
    assert said["peak_memory"] > 1 << 20
    assert said["files"]["labels"] == "out/labels.npy"
    assert said["versions"]["numpy"] == np.__version__
    assert said["run"]["option"]["n_landmarks"] == said["settings"]["landmarks"] == 30


def test_dry_run(here, rows):
    values, shown, _ = rows
    fit = ("fit", *write("csv", values, shown), "-o", "out", "--dry-run")
    plan = json.loads(done(*fit, "--json").stdout)
    assert plan["rows"] == ROWS
    assert plan["labels"] == {str(c): int((shown == c).sum()) for c in range(3)}
    assert plan["seconds"] > 0
    linear = done(*fit, "--factor", "linear").stdout
    assert "linear; " in linear
    assert "landmarks" not in linear
    assert "nothing was written" in linear
    assert not Path("out").exists()
    assert "0, 1" in failed(2, *fit, "--alpha", "7")


def test_labels_cannot_speak_to_the_terminal(here):
    """Escape sequences and marks of the writing direction are shown, not obeyed."""
    names = ("\x1b[31mred\x1b[0m", "\u202eb\x07lue")
    lines = [f"{i % 2 + i / 90},{i % 7},{names[i % 2] if i < 20 else ''}" for i in range(80)]
    Path("x.csv").write_text("\n".join(["a,b,y", *lines]))
    for command in (("fit", "-o", "out"), ("inspect",)):
        said = done(command[0], "x.csv", "--label-column", "y", *command[1:]).output
        assert "\\x1b[31mred\\x1b[0m" in said
        assert "\\u202eb\\x07lue" in said
        assert not {"\x1b", "\x07", "\u202e"} & {*said}


def test_predict_tells_drift(here):
    frame, topic = articles()
    frame["label"] = some_labels(topic, 40)
    frame.to_parquet("x.parquet")
    done("fit", "x.parquet", "--label-column", "label", "-o", "out", "-q")
    done("predict", "out/model.biglp", "x.parquet", "-o", "same", "-q")
    drift = summary("same")["drift"]
    assert drift["columns"] == {}
    assert drift["far_rows"] < 0.1
    new = frame[["plan", "size"]].copy()  # another order, and a column less that is not used
    new.loc[:99, "plan"] = "gold"
    new.loc[100:199, "plan"] = None
    new["size"] += 100
    new.to_csv("new.csv", index=False)
    said = done("predict", "out/model.biglp", "new.csv", "-o", "new").stderr
    drift = summary("new")["drift"]
    third = {"unknown": 0.333333, "examples": ["gold"], "missing": 0.333333, "missing_before": 0.0}
    assert drift["columns"]["plan"] == third
    assert drift["columns"]["size"]["outside"] == 1
    assert (drift["rows"], drift["far_rows"]) == (300, 1)
    assert "33% have unknown categories in 'plan' ('gold')" in said
    assert "33% have no value in 'plan', where 0% had none" in said
    few = frame[:7].astype({"size": float})
    few.loc[3, "size"] = np.nan  # one cell of seven rows may be chance
    few.to_csv("few.csv", index=False)
    assert "have no value in 'size'" not in done("predict", "out", "few.csv", "-o", "few").stderr


@pytest.mark.parametrize(("header", "own"), [("key,y", "k"), ("y", "")])
def test_a_table_without_a_feature_is_refused_alike_everywhere(here, header, own):
    ids = header.startswith("key")
    lines = [f"{own}{at}," * ids + "ab"[at % 2] for at in range(50)]
    Path("x.csv").write_text("\n".join([header, *lines]) + "\n")
    given = ("x.csv", "--label-column", "y", *(("--id-column", "key") if ids else ()))
    for name, *more in (
        ("fit", "-o", "out"),
        ("fit", "-o", "out", "--dry-run"),
        ("label", "--no-browser"),
        ("inspect",),
        ("suggest",),
    ):
        message = failed(3, name, *given, *more)
        assert "x.csv has no column that can be a feature: all it has" in message
        assert "'y'" in message
        assert "--drop" in message


def test_weights_in_a_table_are_no_feature_and_weigh_the_labels(here):
    X, y, _, weights, _ = soft_problem()
    table = pd.DataFrame(X).add_prefix("x")
    table = table.assign(y=np.where(y < 0, "", y), w=np.where(y < 0, "", weights))
    table.to_csv("rows.csv", index=False)
    common = ("fit", "rows.csv", "--label-column", "y", "-k", "20", "-q")
    fixed = ("--factor", "anchors", "--alpha", "0.9", "--class-balance", "none", "--clamp", "hard")
    written = ("--probabilities", "--output-format", "npy")
    done(*common, *fixed, *written, "--weight-column", "w", "-o", "out")
    parameters = {"factor": "anchors", "alpha": 0.9, "class_balance": "none", "n_landmarks": 20}
    direct = LowRankLabelPropagation(**parameters, clamp="hard", engine="serial")
    direct.fit(X, y, sample_weight=weights)
    found = np.load("out/probabilities.npy")
    np.testing.assert_allclose(found, direct.label_distributions_, atol=1e-6)
    plain = LowRankLabelPropagation(**parameters, engine="serial").fit(X, y)
    assert np.abs(found - plain.label_distributions_).max() > 0.01
    done(*common, "--weight-column", "w", "-o", "a", "--filter", "poisson")
    assert (summary("a")["features"], summary("a")["settings"]["filter"]) == (5, "poisson")
    looked = done("inspect", "rows.csv", "--label-column", "y", "--weight-column", "w")
    assert "× 5 " in looked.output
    # Without the column of weights it is another run, and one more feature.
    assert "weight column was w and is now" in failed(5, *common, "-o", "a", "--resume")


@pytest.mark.parametrize("ending", [".libsvm", ".svml.gz"])
def test_labelled_rows_of_libsvm_files_are_not_suggested(here, ending):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    labels = np.where(np.arange(len(y)) < 30, y[order] + 1, -1)
    text = io.BytesIO()
    dump_svmlight_file(X[order], labels, text, zero_based=False)
    path = here / f"rows{ending}"
    path.write_bytes((gzip.compress if ending.endswith(".gz") else bytes)(text.getvalue()))
    done("fit", path, "-o", "out", "-q")
    done("suggest", path, "--model", "out/model.biglp", "-n", 150, "-o", "next.csv", "-q")
    rows = np.loadtxt("next.csv", delimiter=",", skiprows=1, usecols=0, dtype=int)
    assert sorted(rows) == list(range(30, 150))


def test_a_column_of_labels_beside_a_file_of_labels_is_no_silent_feature(here):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    lines = [f"{rng.normal() + 3 * code:.3f},{'ab'[code]}" for code in codes[:20]]
    lines += [f"{rng.normal() + 3 * code:.3f}," for code in codes[20:]]
    Path("rows.csv").write_text("\n".join(["x,label", *lines]) + "\n")
    given = [f"{row},{'ab'[codes[row]]}" for row in range(100, 110)]
    Path("more.csv").write_text("\n".join(["row,label", *given]) + "\n")
    fit = ("fit", "rows.csv", "--labels", "more.csv", "--overwrite", "-o", "out")
    assert "column 'label', which is taken as a feature" in done(*fit).stderr
    for options in ("--drop label", "--label-column label", "--columns x"):
        assert "taken as a feature" not in done(*fit, *options.split()).stderr


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_one_look_and_one_open_table_serve_a_whole_run(here, monkeypatch, ending):
    X, y, _ = blobs()
    frame = pd.DataFrame(X).add_prefix("f")
    frame["key"] = [f"r{number}" for number in range(len(X))]
    frame["y"] = [None if label < 0 else f"class {label}" for label in y]
    path = f"rows.{ending}"
    getattr(frame, f"to_{ending}")(path, index=False)
    named, opened = [], []

    def counted(calls, function):
        return lambda *args, **options: (calls.append(args[1]), function(*args, **options))[1]

    kind = type(InputFiles(path).format)
    monkeypatch.setattr(kind, "open_files", counted(opened, kind.open_files))
    monkeypatch.setattr(InputFiles, "__init__", counted(named, InputFiles.__init__))
    where = (path, "--label-column", "y", "--id-column", "key")
    for command in (
        ("fit", *where, "-o", "out", "--output-format", "csv", "-q"),
        ("predict", "out/model.biglp", path, "--id-column", "key", "-o", "new.csv", "-q"),
        ("suggest", *where, "--model", "out/model.biglp"),
        ("check", *where),
        ("inspect", *where),
    ):
        named.clear()
        opened.clear()
        done(*command)
        assert named.count(path) == len(opened) == 1, command


@pytest.mark.parametrize("named", [("--id-column", "id"), ()])
def test_a_table_of_ids_alone_has_nothing_to_learn_from(here, named):
    Path("ids.csv").write_text("id\n" + "".join(f"P{row}\n" for row in range(30)))
    Path("labels.csv").write_text("row,label\n0,a\n1,b\n")
    given = ("ids.csv", "--labels", "labels.csv", *named)
    for command in (("fit", *given, "-o", "out"), ("label", *given, "--no-browser")):
        assert "ids.csv has no column that can be a feature" in failed(3, *command)
