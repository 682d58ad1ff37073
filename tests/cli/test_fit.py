"""``biglp fit`` on small files: what it writes, and what it refuses."""

from __future__ import annotations

import ctypes
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

from cli_tools import Process, done, failed, run
from helpers import rows_in_a_block
from row_files import ROWS, found_labels, write

OTHERS = ("model.biglp", "report.html", "summary.json")
"""What is written beside the labels."""


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


def test_unreadable_file(here, rows, monkeypatch):
    values, shown, _ = rows
    arguments = write("npy", values, shown)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and mode != os.R_OK)
    assert "rows.npy may not be read" in failed(3, "fit", *arguments, "-o", "out")


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv", "libsvm"])
@pytest.mark.parametrize("step", ["problem", "answer"])
def test_file_changes_while_it_is_swept(here, rows, monkeypatch, kind, step):
    """Before or after the step's blocks were read; nothing is published."""
    from biglp._fit.pipeline import Pipeline

    values, shown, _ = rows
    arguments = write(kind, values, shown)
    sweep = getattr(Pipeline, step)

    def changed(*args, **options):
        found = sweep(*args, **options)
        os.utime(arguments[0], ns=(1, 1))
        return found

    monkeypatch.setattr(Pipeline, step, changed)
    message = failed(3, "fit", *arguments, "-o", "out")
    assert f"{arguments[0]} changed while it was being worked on" in message
    assert not list(Path("out").glob("labels*"))


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="needs the GNU C library",
)
@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_blocks_have_the_memory_of_blocks_before_whoever_starts_the_command(here, engine):
    """Programs that have used Dask pass its setting on, by which all is handed back at once."""
    values = np.random.default_rng(0).normal(size=(300_000, 16)).astype(np.float16)
    np.save("rows.npy", values)
    np.save("labels.npy", np.where(np.arange(300_000) < 50, values[:, 0] > 0, -1))
    options = ["--engine", engine, "--factor", "nystrom", "--landmarks", "random", "-k", "20"]
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


def looks(rows, n_rows, monkeypatch):
    """How often a fit looks at its file, with so many rows in a block."""
    from biglp._files.local import FileStamp

    seen, look = [], FileStamp.check
    with monkeypatch.context() as patched, rows_in_a_block(n_rows):
        patched.setattr(FileStamp, "check", lambda self: (seen.append(self.path), look(self)))
        done("fit", *rows, "-o", f"out-{n_rows}")
    return seen.count(rows[0])


def test_the_original_is_not_looked_at_for_every_block(here, rows, monkeypatch):
    values, shown, _ = rows
    arguments = write("csv", values, shown)
    few, many = (looks(arguments, n_rows, monkeypatch) for n_rows in (len(values), 100))
    assert 0 < few == many


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


def test_fit_loads_no_more_than_it_needs(here):
    """scikit-learn and pandas take seconds to load and 70 MB."""
    check = (
        "import sys; from biglp._jobs.fit import FitJob; from pathlib import Path; "
        "FitJob(('sim:2Kx5',), Path('out'), parameters={'factor': 'anchors'}).run(); "
        "heavy = {'sklearn', 'pandas', 'matplotlib', 'torch', 'dask'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_options_are_refused_before_anything_is_converted(here, rows, monkeypatch):
    def converted(*args, **options):
        raise AssertionError("the table was converted first")

    monkeypatch.setattr("biglp._rows.cache.CacheStore.build", converted)
    values, shown, _ = rows
    arguments = write("csv", values, shown)
    message = failed(2, "fit", *arguments, "-o", "out", "--scaling", "robust")
    assert "--scaling 'robust' is not known; use one of auto, none" in message
