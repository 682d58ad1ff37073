"""The command line on small files: what it writes, what it says, and how it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import dump_svmlight_file

from cli_tools import Process, done, failed, run

ROWS, FEATURES = 3000, 6


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels with -1 where there is none, and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=ROWS)
    centres = 4.0 * rng.standard_normal((3, FEATURES))
    values = centres[truth] + rng.standard_normal((ROWS, FEATURES))
    shown = np.where(rng.random(ROWS) < 0.02, truth, -1)
    return values, shown, truth


def write(kind: str, values: np.ndarray, shown: np.ndarray) -> tuple[str, ...]:
    """Write rows and labels in a format; return the arguments that name them."""
    if kind == "npy":
        np.save("rows.npy", values)
        np.save("labels.npy", shown)
        return "rows.npy", "--labels", "labels.npy"
    if kind == "libsvm":
        dump_svmlight_file(values, shown, "rows.libsvm", zero_based=False)
        return ("rows.libsvm",)
    columns = {f"x{i}": pa.array(values[:, i]) for i in range(values.shape[1])}
    table = pa.table(columns | {"y": pa.array(shown, mask=shown < 0)})
    if kind == "parquet":
        pq.write_table(table, "rows.parquet", row_group_size=700)
        return "rows.parquet", "--label-column", "y"
    if kind == "folder":
        Path("rows").mkdir()
        for part, start in enumerate(range(0, ROWS, 1000)):
            pq.write_table(table.slice(start, 1000), f"rows/part-{part}.parquet")
        return "rows", "--label-column", "y"
    if kind == "csv":
        pyarrow.csv.write_csv(table, "rows.csv")
        return "rows.csv", "--label-column", "y"
    raise AssertionError(kind)


def found_labels(folder: str) -> np.ndarray:
    if Path(folder, "labels.npy").exists():
        return np.load(Path(folder, "labels.npy"))
    return pq.read_table(Path(folder, "labels.parquet"))["label"].to_numpy()


# --- files in, files out ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npy", "parquet", "folder", "csv", "libsvm"])
def test_same_labels_from_every_format(here, rows, kind):
    from biglp import LowRankLabelPropagation

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
    assert names == ["labels.parquet" if table else "labels.npy", "model.biglp", "summary.json"]
    done("predict", "out/model.biglp", arguments[0], "-o", "new.npy")
    np.testing.assert_array_equal(np.load("new.npy"), model.predict(values))


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


@pytest.mark.parametrize("factor", ["anchors", "nystrom", "linear", "glnp"])
def test_every_factor(here, rows, factor):
    values, shown, truth = rows
    done("fit", *write("npy", values, shown), "-o", "out", "--factor", factor, "-k", "20")
    assert (np.load("out/labels.npy") == truth).mean() > 0.8


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


def test_simulate(here):
    done("simulate", "2.5K", "7", "-o", "sim.npy", "--classes", "4", "--labels-per-class", "5")
    assert np.load("sim.npy").shape == (2500, 7)
    shown, truth = np.load("sim.labels.npy"), np.load("sim.truth.npy")
    assert np.bincount(shown[shown >= 0]).tolist() == [5, 5, 5, 5]
    assert (truth[shown >= 0] == shown[shown >= 0]).all()
    done("fit", "sim.npy", "--labels", "sim.labels.npy", "-o", "a")
    done("fit", "sim:2.5Kx7,classes=4,labels=5", "-o", "b")
    np.testing.assert_array_equal(np.load("a/labels.npy"), np.load("b/labels.npy"))
    assert "--overwrite" in failed(2, "simulate", "10", "2", "-o", "sim.npy")
    assert "must end in .npy" in failed(2, "simulate", "10", "2", "-o", "sim.csv")
    assert "whole number" in failed(2, "simulate", "1.5", "2", "-o", "x.npy")
    assert "are free there" in failed(4, "simulate", "100G", "1000", "-o", "x.npy")


# --- tables with text and holes --------------------------------------------------------------


@pytest.fixture
def connections(here) -> Path:
    """A small table like KDD Cup 99: unequal columns, categories, text classes, duplicates."""
    rng = np.random.default_rng(1)
    n = 2000
    truth = rng.choice(["normal.", "smurf.", "neptune."], n, p=[0.2, 0.6, 0.2])
    service = np.where(truth == "smurf.", "ecr_i", rng.choice(["http", "smtp", "ftp"], n))
    size = np.where(truth == "smurf.", 1032.0, rng.lognormal(6, 2, n).round())
    rate = np.where(truth == "neptune.", 1.0, 0.0)
    size[::97] = np.nan
    shown = np.where(rng.random(n) < 0.03, truth, None)
    columns = {
        "duration": pa.array(rng.integers(0, 50, n)),
        "service": pa.array(service.tolist()),
        "bytes": pa.array(size, from_pandas=True),
        "error_rate": pa.array(rate),
        "class": pa.array(shown.tolist(), pa.string()),
    }
    pq.write_table(pa.table(columns), "connections.parquet")
    Path("truth.txt").write_text("\n".join(truth))
    return Path("connections.parquet")


def test_categories_and_missing_values(here, connections):
    message = failed(3, "fit", connections, "--label-column", "class", "-o", "out")
    assert "'service' (string)" in message
    assert "--categorical onehot" in message
    assert not Path("out").exists()
    onehot = ("--categorical", "onehot")
    message = failed(3, "fit", connections, "--label-column", "class", *onehot, "-o", "out")
    assert "'bytes' (21)" in message
    assert "--missing mean" in message
    fit = ("fit", connections, "--label-column", "class", *onehot, "--missing", "mean")
    done(*fit, "-o", "out")
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


def test_whole_numbers_then_fractions(here):
    """A model of whole-number columns must not cut off the fractions of new rows."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (500, 2)) * 10
    shown = np.where(np.arange(500) < 40, values[:, 0] // 10, -1)
    table = {"a": values[:, 0], "b": values[:, 1], "y": shown}
    pq.write_table(pa.table(table), "whole.parquet")
    done("fit", "whole.parquet", "--label-column", "y", "-o", "out", "-k", "4")
    pq.write_table(pa.table({"a": [0.4, 9.7], "b": [0.0, 0.0]}), "new.parquet")
    done("predict", "out/model.biglp", "new.parquet", "-o", "n.npy", "--probabilities")
    pq.write_table(pa.table({"a": [0.0, 9.0], "b": [0.0, 0.0]}), "cut.parquet")
    done("predict", "out/model.biglp", "cut.parquet", "-o", "c.npy", "--probabilities")
    assert (np.load("n.probabilities.npy") != np.load("c.probabilities.npy")).any()


# --- what goes wrong -------------------------------------------------------------------------


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
    assert "--threads 2 goes with" in failed(2, *fit, "--threads", "2", "--engine", "serial")
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


def test_unreadable_file(here, rows, monkeypatch):
    values, shown, _ = rows
    arguments = write("npy", values, shown)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and mode != os.R_OK)
    assert "rows.npy may not be read" in failed(3, "fit", *arguments, "-o", "out")


def test_file_changes_between_sweeps(here, rows, monkeypatch):
    import biglp._fit.pipeline as running

    values, shown, _ = rows
    arguments = write("npy", values, shown)
    sweep = running.sweep_labels

    def changed(*args, **options):
        np.save("rows.npy", values + 1)
        return sweep(*args, **options)

    monkeypatch.setattr(running, "sweep_labels", changed)
    message = failed(3, "fit", *arguments, "-o", "out")
    assert "rows.npy changed while it was being worked on" in message
    assert not Path("out/labels.npy").exists()


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


def test_bad_rows_are_named(here, rows):
    values, shown, _ = rows
    values = values.copy()
    values[17, 2] = np.nan
    message = failed(3, "fit", *write("npy", values, shown), "-o", "out")
    assert "NaN or infinity in 1 of 3,000 rows of rows.npy (first: rows 17)" in message


def test_model_files(here, rows):
    values, shown, _ = rows
    done("fit", *write("npy", values, shown), "-o", "out")
    Path("not.biglp").write_bytes(b"nothing")
    predict = ("rows.npy", "-o", "new.npy")
    assert "not.biglp is not a whole biglp model" in failed(5, "predict", "not.biglp", *predict)
    assert "no model file gone.biglp" in failed(5, "predict", "gone.biglp", *predict)
    np.save("narrow.npy", values[:, :4])
    message = failed(3, "predict", "out/model.biglp", "narrow.npy", "-o", "new.npy")
    assert "narrow.npy has 4 features" in message
    assert not Path("new.npy").exists()
    done("predict", "out/model.biglp", *predict)
    assert "already holds results" in failed(2, "predict", "out/model.biglp", *predict)
    done("predict", "out/model.biglp", *predict, "--overwrite")


def test_missing_extra(here, rows, monkeypatch):
    values, shown, _ = rows
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    message = failed(6, "fit", *write("npy", values, shown), "-o", "out", "--engine", "mpi")
    assert 'pip install "biglp[mpich]"' in message


def test_unexpected_errors_say_so(here, rows, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("a bug")

    values, shown, _ = rows
    arguments = write("npy", values, shown)
    monkeypatch.setattr("biglp._jobs.fit.fit_model", broken)
    message = failed(1, "fit", *arguments, "-o", "out")
    assert "unexpected RuntimeError: a bug. Please report it" in message
    result = run("fit", *arguments, "-o", "out", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


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


# --- looking before running ------------------------------------------------------------------


def test_dry_run(here, rows):
    values, shown, _ = rows
    arguments = write("csv", values, shown)
    plan = json.loads(done("fit", *arguments, "-o", "out", "--dry-run", "--json").stdout)
    assert plan["rows"] == ROWS
    assert plan["labels"] == {str(c): int((shown == c).sum()) for c in range(3)}
    assert plan["seconds"] > 0
    assert "nothing was written" in done("fit", *arguments, "-o", "out", "--dry-run").stdout
    assert not Path("out").exists()
    assert "0, 1" in failed(2, "fit", *arguments, "-o", "out", "--dry-run", "--alpha", "7")


def test_inspect_table(here, connections):
    facts = json.loads(done("inspect", connections, "--label-column", "class", "--json").stdout)
    assert facts["format"] == "Parquet"
    assert facts["rows"] == 2000
    assert facts["columns"]["service"]["categories"] == 4
    assert facts["columns"]["bytes"]["missing"] == 21
    assert set(facts["labels"]) == {"normal.", "smurf.", "neptune."}
    text = done("inspect", connections, "--label-column", "class").stdout
    assert "--categorical onehot" in text
    assert "--missing mean" in text
    assert "2,000 rows × 7 features" in text


@pytest.mark.parametrize("kind", ["npy", "csv", "libsvm"])
def test_inspect_other_formats(here, rows, kind):
    values, shown, _ = rows
    facts = json.loads(done("inspect", *write(kind, values, shown), "--json").stdout)
    assert facts["rows"] == ROWS
    assert facts["features"] == FEATURES
    assert sum(facts["labels"].values()) == (shown >= 0).sum()
    assert all(method["seconds"] > 0 for method in facts["methods"])


def test_estimates_are_near(here):
    """Loosely, because other programs may be at work on this machine."""
    done("simulate", "200K", "20", "-o", "sim.npy", "-q")
    arguments = ("sim.npy", "--labels", "sim.labels.npy", "-k", "60")
    facts = json.loads(done("inspect", *arguments, "--json").stdout)
    estimates = {method["options"]: method for method in facts["methods"]}
    for options in ("--factor anchors", "--factor nystrom"):
        summary = json.loads(
            done("fit", *arguments, *options.split(), "-o", options, "--json").stdout
        )
        ratio = estimates[options]["seconds"] / summary["seconds"]
        assert 0.15 < ratio < 7


def test_demo(here):
    result = done("demo")
    assert "scikit-learn LabelSpreading" in result.stdout
    facts = json.loads(done("demo", "--json").stdout)
    assert facts["methods"][0]["accuracy"] > 0.9
    assert Path("demo-out/result/labels.parquet").exists()


# --- the shell around it ---------------------------------------------------------------------


def test_help_is_quick_and_lists_exit_codes():
    for command in ([], ["fit"], ["predict"], ["simulate"], ["inspect"], ["demo"]):
        text = done(*command, "--help").stdout
        assert "Exit codes" in text
    check = (
        "import sys, biglp.cli; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'pandas'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_fit_loads_no_more_than_it_needs(here):
    """scikit-learn and pandas take seconds to load and 70 MB."""
    check = (
        "import sys; from biglp._jobs.fit import FitJob; from pathlib import Path; "
        "FitJob(('sim:2Kx5',), Path('out'), parameters={'factor': 'anchors'}).run(); "
        "heavy = {'sklearn', 'pandas', 'matplotlib', 'torch', 'dask'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_quiet_and_versions(here):
    result = done("fit", "sim:2Kx5", "-o", "out", "--factor", "linear", "--quiet")
    assert result.output == ""
    assert done("--version").stdout.startswith("biglp ")
    assert run().exit_code in (0, 2)


def test_defaults_are_the_estimators():
    import inspect

    from biglp import LowRankLabelPropagation
    from biglp._jobs.fit import DEFAULTS
    from biglp.cli.fit import fit

    parameters = LowRankLabelPropagation().get_params()
    assert DEFAULTS.items() <= parameters.items()
    assert set(parameters) - set(DEFAULTS) == {"engine", "verbose"}
    options = inspect.signature(fit).parameters
    for name in set(DEFAULTS) & set(options) - {"random_state"}:  # --seed is fixed: same answers
        assert options[name].default == DEFAULTS[name]
