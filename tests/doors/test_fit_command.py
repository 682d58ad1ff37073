"""``biglp fit`` on small files: what it reads, what it writes and prints, and what it refuses."""

from __future__ import annotations

import ctypes
import gzip
import io
import json
import os
import subprocess
import sys
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
from biglp._jobs import FitJob
from biglp._labels import LabelInput
from biglp._rows import InputFiles
from cli_tools import Process, done, failed, run
from helpers import blobs, soft_problem, write_weighted_table
from made_tables import articles, some_labels
from row_files import FEATURES, ROWS, found_labels, write

OTHERS = ("model.biglp", "report.html", "summary.json")
"""What is written beside the labels."""


@pytest.mark.parametrize("kind", ["npy", "parquet", "folder", "csv", "libsvm"])
def test_same_labels_from_every_format(here, rows, kind):
    values, shown, truth = rows
    arguments = write(kind, values, shown)
    options = ("--scaling", "none", "--seed", "3", "-k", "60")
    done("fit", *arguments, *options, "-o", "out")
    model = LowRankLabelPropagation(scaling="none", random_state=3, n_landmarks=60)
    expected = model.fit(values, shown).transduction_
    found = found_labels("out")
    np.testing.assert_array_equal(found, expected)
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
    assert table.column_names == ["row", "label", "class_1", "p_1", "class_2", "p_2"]
    np.testing.assert_array_equal(table["class_1"].to_numpy(), np.load("a/labels.npy"))
    done("predict", "a/model.biglp", "rows.npy", "-o", "new.npy", "--confidence")
    assert sorted(path.name for path in here.glob("new*")) == ["new.confidence.npy", "new.npy"]
    done("predict", "a/model.biglp", "rows.npy", "-o", "folder", "--top", "1")
    assert {path.name for path in Path("folder").iterdir()} >= {"labels.npy", "top_classes.npy"}


def test_labels_in_other_forms(here, rows):
    values, shown, truth = rows
    np.save("rows.npy", values)
    names = np.array(["ant", "bee", "cat"])
    known = np.flatnonzero(shown >= 0)
    pairs = [f"{row},{names[shown[row]]}" for row in known]
    Path("pairs.csv").write_text("\n".join(["row,label", *pairs]) + "\n")
    done("fit", "rows.npy", "--labels", "pairs.csv", "-o", "a")
    lines = [names[label] if label >= 0 else "" for label in shown]
    Path("lines.txt").write_text("\n".join(lines) + "\n")
    done("fit", "rows.npy", "--labels", "lines.txt", "-o", "b")
    np.testing.assert_array_equal(np.load("a/labels.npy"), np.load("b/labels.npy"))
    assert (np.load("a/labels.npy") == names[truth]).mean() > 0.95
    np.save("zero.npy", np.where(shown < 0, 9, shown))
    done("fit", "rows.npy", "--labels", "zero.npy", "--unlabelled", "9", "-o", "c")
    np.testing.assert_array_equal(names[np.load("c/labels.npy")], np.load("a/labels.npy"))


def test_categories_and_missing_values(here, connections):
    common = ("fit", connections, "--label-column", "class", "-o", "out")
    strict = ("--missing", "error")
    message = failed(3, *common, "--categorical", "error", *strict)
    assert "'service' (string)" in message
    assert "'bytes' (21)" in message  # all that is wrong, at once
    assert "--categorical auto --missing auto" in message
    assert not Path("out").exists()
    message = failed(3, *common, "--categorical", "onehot", *strict)
    assert "'bytes' (21)" in message
    assert "--missing auto" in message
    done(*common, "--categorical", "onehot", "--missing", "mean")
    table = pq.read_table("out/labels.parquet")
    truth = np.array(Path("truth.txt").read_text().split())
    assert (np.array(table["label"].to_pylist()) == truth).mean() > 0.9
    assert json.loads(Path("out/summary.json").read_text())["features"] == 3 + 4

    # New rows: columns in another order, a category that is not known, a hole elsewhere.
    new = pq.read_table(connections).select(["bytes", "service", "error_rate", "duration"])
    service = ["gopher", *new["service"].to_pylist()[1:]]
    new = new.set_column(1, "service", pa.array(service))
    pq.write_table(new, "new.parquet")
    done("predict", "out/model.biglp", "new.parquet", "-o", "new-labels.parquet")
    again = pq.read_table("new-labels.parquet")["label"].to_pylist()
    assert (np.array(again) == truth).mean() > 0.9
    pyarrow.csv.write_csv(new, "new.csv")
    done("predict", "out/model.biglp", "new.csv", "-o", "csv-labels.parquet")
    assert pq.read_table("csv-labels.parquet")["label"].to_pylist() == again
    pq.write_table(new.drop(["service"]), "less.parquet")
    message = failed(3, "predict", "out/model.biglp", "less.parquet", "-o", "less-labels.parquet")
    assert "less.parquet lacks 1 of the 4 columns" in message
    assert "'service'" in message


def test_columns_are_chosen(here, connections):
    common = ("fit", connections, "--label-column", "class")
    done(*common, "--columns", "duration,error_rate", "-o", "a")
    done(*common, "--drop", "service,bytes", "-o", "b")
    assert Path("a/labels.parquet").read_bytes() == Path("b/labels.parquet").read_bytes()
    message = failed(2, *common, "--columns", "duration,colour", "-o", "c")
    assert "no column 'colour'" in message


def test_wrong_usage(here, rows):
    values, shown, _ = rows
    arguments = write("npy", values, shown)
    fit = ("fit", *arguments, "-o", "out")
    assert "--alpha 2.0 is outside (0, 1)" in failed(2, *fit, "--alpha", "2")
    assert "--factor 'best' is not known" in failed(2, *fit, "--factor", "best")
    assert "--landmarks 'all' is not known" in failed(2, *fit, "--landmarks", "all")
    assert "--memory 'lots' is not an amount" in failed(2, *fit, "--memory", "lots")
    assert "--label-column NAME" in failed(2, "fit", "rows.npy", "-o", "out")
    assert "must name a folder" in failed(2, "fit", *arguments, "-o", "out.npy")
    assert "contradict" in failed(2, *fit, "--resume", "--overwrite")
    assert "--threads 2 cannot be set" in failed(2, *fit, "--threads", "2", "--engine", "serial")
    assert run(*fit, "--alpha", "x").exit_code == 2
    assert run(*fit, "--top", "0").exit_code == 2
    assert run(*fit, "--colour", "red").exit_code == 2
    assert run("fit", *arguments).exit_code == 2
    assert not Path("out").exists()


def test_damaged_files(here, rows):
    values, shown, _ = rows
    write("parquet", values, shown)
    content = Path("rows.parquet").read_bytes()
    Path("short.parquet").write_bytes(content[: len(content) // 2])
    label = ("--label-column", "y", "-o", "out")
    assert "short.parquet cannot be read as Parquet" in failed(3, "fit", "short.parquet", *label)
    middle = bytearray(content)
    middle[len(content) // 3 : len(content) // 3 + 3000] = bytes(3000)
    Path("damaged.parquet").write_bytes(middle)
    message = failed(3, "fit", "damaged.parquet", *label)
    assert "damaged.parquet" in message
    write("csv", values, shown)
    lines = Path("rows.csv").read_text().splitlines()
    lines[1234] = "1.0,2.0"
    Path("short.csv").write_text("\n".join(lines) + "\n")
    assert "short.csv, line 1235: 2 fields" in failed(3, "fit", "short.csv", *label)
    message = failed(2, "fit", "rows.csv", "--label-column", "target", "-o", "out")
    assert "no column 'target'" in message
    np.save("rows.npy", values)
    Path("cut.npy").write_bytes(Path("rows.npy").read_bytes()[:5000])
    np.save("labels.npy", shown)
    assert "cut.npy" in failed(3, "fit", "cut.npy", "--labels", "labels.npy", "-o", "out")
    assert "there is no file gone.npy" in failed(3, "fit", "gone.npy", "--labels", "x", "-o", "out")
    np.save("few.npy", shown[:10])
    message = failed(3, "fit", "rows.npy", "--labels", "few.npy", "-o", "out")
    assert "few.npy has 10 labels, but there are 3,000 rows" in message
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


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="needs the GNU C library",
)
def test_blocks_have_the_memory_of_blocks_before_whoever_starts_the_command(here):
    """Programs that have used Dask pass its setting on, by which all is handed back at once."""
    values = np.random.default_rng(0).normal(size=(300_000, 16)).astype(np.float16)
    np.save("rows.npy", values)
    np.save("labels.npy", np.where(np.arange(300_000) < 50, values[:, 0] > 0, -1))
    options = ["--engine", "threads", "--factor", "nystrom", "--landmarks", "random", "-k", "20"]
    program = (
        "import resource, sys\n"
        "from biglp.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)"
    )
    command = [sys.executable, "-c", program, "fit", "rows.npy", "--labels", "labels.npy"]
    command += [*options, "-q", "--no-report", "--memory", "150MB", "-o"]
    plain = {key: value for key, value in os.environ.items() if key != "MALLOC_TRIM_THRESHOLD_"}
    new_pages = [
        int(subprocess.check_output([*command, f"out-{number}"], env=plain | more))
        for number, more in enumerate(({}, {"MALLOC_TRIM_THRESHOLD_": "65536"}))
    ]
    assert new_pages[1] < 1.3 * new_pages[0]


def test_full_disk(here, rows):
    values, shown, _ = rows
    arguments = write("npy", values, shown)
    fit = ("fit", *arguments, "-o", "out", "--probabilities")
    process = Process(here, *fit, file_size=30_000)
    assert process.wait(60) == 4, process.stderr
    assert "probabilities.npy could not be written" in process.stderr
    assert "Traceback" not in process.stderr
    assert not list(Path("out").glob("*.npy"))
    done(*fit, "--overwrite")


def test_summary(here, rows):
    values, shown, _ = rows
    result = done("fit", *write("npy", values, shown), "-o", "out", "--json", "-k", "30")
    summary = json.loads(result.stdout)
    assert summary == json.loads(Path("out/summary.json").read_text())
    assert summary["rows"] == ROWS
    assert summary["features"] == FEATURES
    assert summary["labelled_rows"] == (shown >= 0).sum()
    assert summary["given"] == {str(c): int((shown == c).sum()) for c in range(3)}
    found = np.load("out/labels.npy")
    assert summary["found"] == {str(c): int((found == c).sum()) for c in range(3)}
    assert {step["step"] for step in summary["steps"]} >= {"k-means", "Gram", "labels"}
    assert all(step["seconds"] > 0 for step in summary["steps"])
    assert summary["settings"]["landmarks"] == 30
    assert summary["peak_memory"] > 1 << 20
    assert summary["files"]["labels"] == "out/labels.npy"
    assert summary["command"].startswith("biglp")
    assert summary["versions"]["numpy"] == np.__version__
    assert summary["warnings"] == []
    assert summary["run"]["option"]["n_landmarks"] == 30


def test_how_many_rows_are_right_stands_beside_the_simplest_answer(here):
    rng = np.random.default_rng(0)
    truth = (rng.random(600) < 0.2).astype(int)
    values = rng.standard_normal((600, 2)) + 3.0 * truth[:, None]
    arguments = write("npy", values, np.where(np.arange(600) < 80, truth, -1))
    said = " ".join(done("fit", *arguments, "-o", "out").stdout.split())
    found = json.loads(Path("out/summary.json").read_text())["settings"]["estimated_accuracy"]
    low, high = (round(100 * share) for share in found["interval"])
    assert f"About {found['accuracy']:.0%} of the unlabelled rows are right" in said
    assert f"interval {low} to {high}); always saying 0 would be {found['base_rate']:.0%}" in said
    assert "50 more labels would add about" in said
    assert 0.75 < found["base_rate"] < 0.85
    share = (truth[:80] == 0).mean()
    shown = done("fit", *arguments, "-o", "graph", "--factor", "anchors").stdout
    assert f"of held-out labels found (always saying 0 finds {share:.1%})" in " ".join(
        shown.split()
    )


def test_warnings_reach_the_user(here):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((400, 2))
    shown = np.where(np.arange(400) < 30, np.arange(400) % 2, -1)
    arguments = write("npy", values, shown)
    fit = ("fit", *arguments, "-o", "out", "--factor", "nystrom", "-k", "5", "--bandwidth", "0.05")
    result = done(*fit)
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["warnings"]
    assert f"warning: {summary['warnings'][0][:40]}" in result.stderr


def test_dry_run(here, rows):
    values, shown, _ = rows
    arguments = write("csv", values, shown)
    plan = json.loads(done("fit", *arguments, "-o", "out", "--dry-run", "--json").stdout)
    assert plan["rows"] == ROWS
    assert plan["labels"] == {str(c): int((shown == c).sum()) for c in range(3)}
    assert plan["seconds"] > 0
    assert "nothing was written" in done("fit", *arguments, "-o", "out", "--dry-run").stdout
    linear = done("fit", *arguments, "-o", "out", "--dry-run", "--factor", "linear").stdout
    assert "linear; " in linear
    assert "landmarks" not in linear
    assert not Path("out").exists()
    assert "0, 1" in failed(2, "fit", *arguments, "-o", "out", "--dry-run", "--alpha", "7")


def test_labels_cannot_speak_to_the_terminal(here):
    """Escape sequences and marks of the writing direction are shown, not obeyed."""
    names = ("\x1b[31mred\x1b[0m", "\u202eb\x07lue")
    lines = [f"{i % 2 + i / 90},{i % 7},{names[i % 2] if i < 20 else ''}" for i in range(80)]
    Path("x.csv").write_text("\n".join(["a,b,y", *lines]))
    for command in (("fit", "-o", "out"), ("inspect",)):
        printed = done(command[0], "x.csv", "--label-column", "y", *command[1:]).output
        assert "\\x1b[31mred\\x1b[0m" in printed
        assert "\\u202eb\\x07lue" in printed
        assert not {"\x1b", "\x07", "\u202e"} & {*printed}


def test_predict_tells_drift(here):
    frame, topic = articles()
    frame["label"] = some_labels(topic, 40)
    frame.to_parquet("x.parquet")
    done("fit", "x.parquet", "--label-column", "label", "-o", "out", "-q")
    done("predict", "out/model.biglp", "x.parquet", "-o", "same", "-q")
    drift = json.loads(Path("same/summary.json").read_text())["drift"]
    assert drift["columns"] == {}
    assert drift["far_rows"] < 0.1
    new = frame[["plan", "size"]].copy()  # another order, and a column less that is not used
    new.loc[:99, "plan"] = "gold"
    new.loc[100:199, "plan"] = None
    new["size"] += 100
    new.to_csv("new.csv", index=False)
    shown = done("predict", "out/model.biglp", "new.csv", "-o", "new")
    drift = json.loads(Path("new/summary.json").read_text())["drift"]
    assert drift["rows"] == 300
    assert drift["columns"]["plan"] == {
        "unknown": 0.333333,
        "examples": ["gold"],
        "missing": 0.333333,
        "missing_before": 0.0,
    }
    assert drift["columns"]["size"]["outside"] == 1
    assert drift["far_rows"] == 1
    assert "33% have unknown categories in 'plan' ('gold')" in shown.stderr


@pytest.mark.parametrize(("header", "own"), [("key,y", "k"), ("y", "")])
def test_a_table_without_a_feature_is_refused_alike_everywhere(here, header, own):
    ids = header.startswith("key")
    lines = [f"{own}{at}," * ids + "ab"[at % 2] for at in range(50)]
    Path("x.csv").write_text("\n".join([header, *lines]) + "\n")
    given = ("x.csv", "--label-column", "y", *(("--id-column", "key") if ids else ()))
    for command in (
        ("fit", *given, "-o", "out"),
        ("fit", *given, "-o", "out", "--dry-run"),
        ("label", *given, "--no-browser"),
        ("inspect", *given),
        ("suggest", *given),
    ):
        message = failed(3, *command)
        assert "x.csv has no column that can be a feature: all it has" in message
        assert "'y'" in message
        assert "--drop" in message


def test_weights_in_a_table_are_no_feature_and_weigh_the_labels(tmp_path):
    X, y, _, weights, _ = soft_problem()
    write_weighted_table(tmp_path / "rows.csv", X, y, weights)
    parameters = {"factor": "anchors", "alpha": 0.9, "class_balance": "none", "n_landmarks": 20}
    parameters["clamp"] = "hard"
    job = FitJob(
        (str(tmp_path / "rows.csv"),),
        tmp_path / "out",
        outputs=("label", "probabilities"),
        output_format="npy",
        label_column="y",
        weight_column="w",
        parameters=parameters,
    )
    assert job.run()["features"] == 5
    direct = LowRankLabelPropagation(**parameters, engine="serial")
    direct.fit(X, y, sample_weight=weights)
    found = np.load(tmp_path / "out" / "probabilities.npy")
    np.testing.assert_allclose(found, direct.label_distributions_, atol=1e-6)
    plain = LowRankLabelPropagation(**parameters, engine="serial").fit(X, y)
    assert np.abs(found - plain.label_distributions_).max() > 0.01
    common = ["fit", tmp_path / "rows.csv", "--label-column", "y", "-k", 20, "-q"]
    done(*common, "--weight-column", "w", "-o", tmp_path / "a", "--filter", "poisson")
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert (summary["features"], summary["settings"]["filter"]) == (5, "poisson")
    looked = done("inspect", tmp_path / "rows.csv", "--label-column", "y", "--weight-column", "w")
    assert "× 5 " in looked.output
    # Without the column of weights it is another run, and one more feature.
    message = failed(5, *common, "-o", tmp_path / "a", "--resume")
    assert "weight column was w and is now" in message


@pytest.mark.parametrize("ending", [".libsvm", ".svml.gz"])
def test_labelled_rows_of_libsvm_files_are_not_suggested(tmp_path, ending):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    labels = np.where(np.arange(len(y)) < 30, y[order] + 1, -1)
    path = tmp_path / f"rows{ending}"
    text = io.BytesIO()
    dump_svmlight_file(X[order], labels, text, zero_based=False)
    path.write_bytes((gzip.compress if ending.endswith(".gz") else bytes)(text.getvalue()))
    done("fit", path, "-o", tmp_path / "out", "-q")
    model = tmp_path / "out" / "model.biglp"
    done("suggest", path, "--model", model, "-n", 150, "-o", tmp_path / "next.csv", "-q")
    rows = np.loadtxt(tmp_path / "next.csv", delimiter=",", skiprows=1, usecols=0, dtype=int)
    assert sorted(rows) == list(range(30, 150))


def test_a_column_of_labels_beside_a_file_of_labels_is_no_silent_feature(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    lines = [
        f"{rng.normal() + 3 * code:.3f},{'ab'[code] if row < 20 else ''}"
        for row, code in enumerate(codes)
    ]
    path, more = tmp_path / "rows.csv", tmp_path / "more.csv"
    path.write_text("\n".join(["x,label", *lines]) + "\n")
    given = [f"{row},{'ab'[codes[row]]}" for row in range(100, 110)]
    more.write_text("\n".join(["row,label", *given]) + "\n")

    def said(*options):
        out = tmp_path / f"out{len(options)}{options[:1]}"
        result = run("fit", path, "--labels", more, *options, "-o", out)
        assert result.exit_code == 0, result.stderr
        return result.stderr

    assert "column 'label', which is taken as a feature" in said()
    for options in (("--drop", "label"), ("--label-column", "label"), ("--columns", "x")):
        assert "taken as a feature" not in said(*options)


@pytest.mark.parametrize("names", ["row,label,weight\n", "Weight,row,y\n", ""])
def test_a_file_of_rows_labels_and_weights(tmp_path, names):
    lines = ["3,cat,0.5", "1,dog,2", "5,,9", "3,dog,1.5", "6,dog,0"]
    if names.startswith("Weight"):
        lines = [",".join([line.split(",")[2], *line.split(",")[:2]]) for line in lines]
    path = tmp_path / "labels.csv"
    path.write_text(names + "\n".join(lines) + "\n")
    labels = LabelInput(None, (path,)).gather(8).labels
    assert labels.classes.tolist() == ["cat", "dog"]
    assert labels.rows.tolist() == [1, 3]
    np.testing.assert_allclose(labels.distribution, [[0, 1], [0.25, 0.75]])
    np.testing.assert_allclose(labels.weights, [2, 2])


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
