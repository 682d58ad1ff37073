"""The block cache: made once, whole or not at all, used again, removed, done without."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import biglp
import biglp._rows.cache as store
from biglp._core.errors import BadRowsError, OutputError
from biglp._core.progress import Progress, Task
from biglp._files.local import IN_USE
from biglp._rows import as_source
from biglp._rows.cache import CachedSource
from biglp._rows.options import ReadOptions
from biglp._tables.encode_columns import make_encoding
from biglp._tables.source import TabularSource


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def parquet(tmp_path) -> Path:
    pq.write_table(
        pa.table({"a": np.arange(50.0) % 40, "b": np.arange(50.0) ** 2}), tmp_path / "x.parquet"
    )
    return tmp_path / "x.parquet"


@pytest.fixture
def csv(tmp_path) -> Path:
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n3,4\n" * 25)
    return tmp_path / "x.csv"


def test_temporary_folder_goes_with_the_source(temporary, parquet):
    source = as_source(parquet)
    assert isinstance(source, CachedSource)
    assert len(list(temporary.iterdir())) == 1
    copy = pickle.loads(pickle.dumps(source))
    del copy  # a copy does not own the folder
    gc.collect()
    assert source.read(0, 50).shape == (50, 2)
    del source
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_temporary_folder_goes_at_the_end_of_python(temporary, parquet):
    code = (
        "import sys; from biglp._rows import as_source; "
        f"s = as_source({str(parquet)!r}); print(s.folder); s.read(0, 5)"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert str(temporary) in done.stdout
    assert list(temporary.iterdir()) == []


def test_folder_of_a_killed_run_is_removed_by_the_next(temporary, parquet, monkeypatch):
    alive = as_source(parquet)
    dead, young = temporary / "biglp-dead", temporary / "biglp-young"
    for folder in (dead, young):
        (folder / "x-0").mkdir(parents=True)
        (folder / IN_USE).touch()
    mine = alive.folder.parent
    for folder in (dead, mine):
        os.utime(folder, (1, 1))
    as_source(parquet)
    assert not dead.exists()
    assert young.exists()
    assert mine.exists()
    alive.read(0, 5)


def test_conversion_is_announced(temporary, parquet, caplog):
    with caplog.at_level(logging.INFO, logger="biglp"):
        as_source(parquet)
    assert "x.parquet: converting to raw rows (800 bytes) in" in caplog.text


def test_kept_folder_is_used_again_until_the_input_changes(tmp_path, csv, monkeypatch):
    folder = tmp_path / "kept"
    first = as_source(csv, cache=folder)
    (entry,) = folder.iterdir()
    made = (entry / "rows.npy").stat().st_mtime_ns
    second = as_source(csv, cache=folder)
    assert second.folder == first.folder == entry
    assert (entry / "rows.npy").stat().st_mtime_ns == made
    as_source(csv, cache=folder, columns=["a"])
    assert len(list(folder.iterdir())) == 2  # other options, other rows
    csv.write_text("a,b\n" + "3,4\n5,6\n" * 25)
    np.testing.assert_array_equal(as_source(csv, cache=folder).read(0, 1), [[3, 4]])
    del first, second
    gc.collect()
    assert len(list(folder.iterdir())) == 3


def opened_by(code: Path, csv: Path, folder: Path) -> str:
    """Have a process that takes biglp from ``code`` read a table; where its converted rows are."""
    program = (
        "import sys; from biglp._rows import as_source; "
        "print(as_source(sys.argv[1], cache=sys.argv[2]).folder)"
    )
    return subprocess.run(
        [sys.executable, "-B", "-c", program, str(csv), str(folder)],
        env={**os.environ, "PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_rows_that_other_code_converted_are_converted_again(tmp_path, csv):
    here, code, kept = Path(biglp.__file__).parent, tmp_path / "code", tmp_path / "kept"
    shutil.copytree(here, code / "biglp", ignore=shutil.ignore_patterns("__pycache__"))
    first = opened_by(code, csv, kept)
    assert opened_by(code, csv, kept) == first
    shutil.make_archive(str(tmp_path / "code"), "zip", code)
    assert opened_by(tmp_path / "code.zip", csv, kept) == first
    rules = next(code.rglob("encode_columns.py"))
    rules.write_text(rules.read_text() + "\n# another rule\n")
    assert opened_by(code, csv, kept) != first
    assert len(list(kept.iterdir())) == 2


def test_code_that_lies_in_no_files_converts_too(tmp_path, csv, monkeypatch):
    def frozen(package):
        raise FileNotFoundError(package)

    monkeypatch.setattr(store, "files", frozen)
    store.code_digest.cache_clear()
    try:
        np.testing.assert_array_equal(as_source(csv, cache=tmp_path / "kept").read(0, 1), [[1, 2]])
    finally:
        store.code_digest.cache_clear()


def test_damaged_entry_is_made_again(tmp_path, csv):
    folder = tmp_path / "kept"
    entry = as_source(csv, cache=folder).folder
    (entry / "meta.json").write_text("{")
    np.testing.assert_array_equal(as_source(csv, cache=folder).read(0, 1), [[1, 2]])


def test_failed_conversion_leaves_nothing(tmp_path, temporary, monkeypatch):
    monkeypatch.setattr("biglp._tables.delimited.BLOCK_BYTES", 256)
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 2000 + "3\n")
    for cache in ("auto", tmp_path / "kept"):
        with pytest.raises(BadRowsError):
            as_source(tmp_path / "x.csv", cache=cache)
    gc.collect()
    assert list(temporary.iterdir()) == []
    assert list((tmp_path / "kept").iterdir()) == []


def test_short_disk_is_known_before_the_work(temporary, parquet, csv, monkeypatch, caplog):
    monkeypatch.setattr(store, "free_space", lambda folder: store.RESERVE_BYTES + 700)
    with caplog.at_level(logging.INFO, logger="biglp"):
        source = as_source(parquet)
    assert isinstance(source, TabularSource)  # decoded again in each sweep instead
    assert "not converted (about 800 bytes are needed in" in caplog.text
    np.testing.assert_array_equal(source.read(3, 5), [[3, 9], [4, 16]])
    with pytest.raises(OutputError, match=r"x\.csv must be converted .* set TMPDIR"):
        as_source(csv)
    (csv.parent / "x.svm").write_text("1 1:1\n" * 500)
    with pytest.raises(OutputError, match=r"x\.svm must be converted"):
        as_source(csv.parent / "x.svm")


def test_disk_that_fills_up_meanwhile(temporary, parquet, csv, monkeypatch):
    def full(self, entries):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.NpyWriter, "append", full)
    assert isinstance(as_source(parquet), TabularSource)
    with pytest.raises(OutputError, match="could not be written: No space left on device"):
        as_source(csv)
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_other_machine_reads_the_original_or_says_what_to_do(temporary, parquet, csv):
    parquet_source, csv_source = as_source(parquet), as_source(csv)
    parquet_copy = pickle.loads(pickle.dumps(parquet_source))
    csv_copy = pickle.loads(pickle.dumps(csv_source))
    for folder in temporary.iterdir():
        shutil.rmtree(folder)
    np.testing.assert_array_equal(parquet_copy.read(3, 5), [[3, 9], [4, 16]])
    with pytest.raises(BadRowsError, match="cannot be seen from this machine; name a folder"):
        csv_copy.read(0, 2)


def test_progress_is_told(temporary, parquet):
    class Counting(Progress):
        def __init__(self):
            self.rows = 0

        def start(self, label, n_rows):
            counter = self
            assert "x.parquet" in label
            assert n_rows == 50

            class CountingTask(Task):
                def advance(self, rows):
                    counter.rows += rows

            return CountingTask(label, n_rows)

    progress = Counting()
    as_source(parquet, progress=progress)
    assert progress.rows == 50


def test_cached_and_direct_rows_are_the_same_bits(parquet):
    direct, cached = as_source(parquet, cache="never"), as_source(parquet)
    assert direct.encoding == cached.encoding == make_encoding(direct._files, _no_options())
    assert direct.dtype == cached.dtype
    np.testing.assert_array_equal(direct.read(7, 33), cached.read(7, 33))


def _no_options():
    from biglp._rows import ReadOptions

    return ReadOptions()


def test_processes_that_share_a_folder_do_not_break_each_other(tmp_path, csv):
    """Whoever comes second takes the rows that the first one has converted and may be reading."""
    folder = tmp_path / "kept"
    first = as_source(csv, cache=folder)
    made = (first.folder / "rows.npy").stat().st_ino
    late = store.CacheStore(str(csv), first.stamps, ReadOptions(cache=folder, dtype=None))
    late.folder, late._facts = (
        first.folder,
        json.loads((first.folder / "meta.json").read_text())["facts"],
    )

    def convert(part):
        raise AssertionError("converted twice")

    assert late.build(convert).names == first.encoding.names  # had looked before the first ended
    assert (first.folder / "rows.npy").stat().st_ino == made
    assert [path.name for path in folder.iterdir()] == [first.folder.name]


def test_a_process_waits_for_another_that_converts(tmp_path, csv):
    folder = tmp_path / "kept"
    program = (
        "import sys, time; from biglp._rows import as_source\n"
        "import biglp._tables.source as c; real = c._write_rows\n"
        "def slow(*a): print('begun', flush=True); time.sleep(1); return real(*a)\n"
        "c._write_rows = slow; as_source(sys.argv[1], cache=sys.argv[2])"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, csv, folder], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "begun\n"
    source = as_source(csv, cache=folder)
    assert other.wait(60) == 0
    other.stdout.close()
    np.testing.assert_array_equal(source.read(0, 1), [[1, 2]])
    assert [path.name for path in folder.iterdir()] == [source.folder.name]
