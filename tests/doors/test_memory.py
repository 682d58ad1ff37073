"""``--memory`` is kept: measured from outside, at the smallest budget that is not refused.

What counts is what only this process can give back: anonymous and shared pages. Clean pages of
files are the system's, which takes them when it needs them.
"""

import inspect
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cli_tools import done, failed, watched

MB = 1 << 20
ROWS, FEATURES = 250_000, 60
WRITER = inspect.signature(pq.ParquetWriter).parameters
METHODS = {
    "random": ("--factor", "nystrom", "--landmarks", "random", "-k", "20"),
    "anchors": ("--factor", "anchors", "-k", "150"),
    "many anchors": ("--factor", "anchors", "--landmarks", "random", "-k", "1500"),
    "default": ("-k", "60", "--probabilities"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    done("simulate", ROWS, FEATURES, "-o", folder / "rows.npy", "-q")
    rows, labels = np.load(folder / "rows.npy"), np.load(folder / "rows.labels.npy")
    # The sums of many landmarks need most of the memory, and each row much time.
    np.save(folder / "few.npy", rows[:60_000])
    np.save(folder / "few.labels.npy", labels[:60_000])
    columns = {f"x{i}": pa.array(rows[:, i]) for i in range(FEATURES)}
    table = pa.table(columns | {"y": pa.array(labels, mask=labels < 0)})
    # Pages of 1 MB, as pyarrow before 22 and other writers cut them.
    whole = {"max_rows_per_page": ROWS} if "max_rows_per_page" in WRITER else {}
    pq.write_table(table, folder / "rows.parquet", use_dictionary=False, **whole)
    pyarrow.csv.write_csv(table.slice(0, 40_000), folder / "rows.csv")
    return folder


def named(data, kind: str) -> tuple[object, ...]:
    if kind in ("npy", "few"):
        name = "rows" if kind == "npy" else kind
        return data / f"{name}.npy", "--labels", data / f"{name}.labels.npy"
    return data / f"rows.{kind}", "--label-column", "y"


def peak_of(folder, *arguments: object) -> int:
    start = [sys.executable, "-c", "from biglp.cli import main; main()"]
    code, peak, said = watched([*start, *arguments], folder)
    assert code == 0, said
    return peak


def smallest_budget(*arguments: object) -> int:
    message = failed(4, *arguments, "--memory", "20MB")
    assert "is too little" in message
    found = re.search(r"--memory (\d+)MB\)", message)
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("npy", "random"),
        ("npy", "anchors"),
        ("few", "many anchors"),
        ("npy", "default"),
        ("parquet", "random"),
        ("csv", "random"),
    ],
)
def test_memory_is_kept(data, tmp_path, kind, method):
    fit = ("fit", *named(data, kind), *METHODS[method], "-o", tmp_path / "out", "-q")
    budget = smallest_budget(*fit)
    assert peak_of(tmp_path, *fit, "--memory", f"{budget}MB") <= budget * MB
    assert kind == "csv" or budget < 300


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_wide_sparse_rows_are_refused_or_kept_within_memory(tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for row in range(3000):
        columns = np.unique((17_607 * rng.random(60) ** (1 + row % 2)).astype(int) + 1)
        entries = " ".join(f"{column}:1" for column in columns)
        lines.append(f"{row % 2 if row < 60 else -1} {entries}")
    (tmp_path / "words.svm").write_text("\n".join(lines) + "\n")
    fit = ("fit", tmp_path / "words.svm", "-k", 200, "-o", tmp_path / "out", "-q")
    budget = smallest_budget(*fit)
    peak = peak_of(tmp_path, *fit, "--resume", "--memory", f"{budget}MB")
    assert peak <= budget * MB


def test_refused_before_anything_is_converted(data, tmp_path, monkeypatch):
    def converted(*args, **options):
        raise AssertionError("the table was converted first")

    monkeypatch.setattr("biglp._tables.source._write_rows", converted)
    failed(4, "fit", *named(data, "parquet"), "-o", tmp_path / "out", "--memory", "30MB")
    assert not (tmp_path / "out").exists()


def test_predict_keeps_memory_too(data, tmp_path):
    done("fit", "sim:3Kx60", *METHODS["anchors"], "-o", tmp_path / "model", "-q")
    predict = ("predict", tmp_path / "model" / "model.biglp", data / "rows.npy", "-q")
    predict += ("-o", tmp_path / "new.npy", "--probabilities")
    budget = smallest_budget(*predict)
    assert peak_of(tmp_path, *predict, "--memory", f"{budget}MB") <= budget * MB
