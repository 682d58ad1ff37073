"""Converted and projected rows: made once, whole or not at all, checked, used again, removed."""

import gc
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
from biglp._core import BadRowsError, OutputError
from biglp._files import IN_USE
from biglp._rows import as_source
from biglp._rows import cache as store


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


def test_temporary_folder_goes_with_the_source_and_at_the_end_of_python(temporary, parquet):
    source = as_source(parquet)
    assert len(list(temporary.iterdir())) == 1
    copy = pickle.loads(pickle.dumps(source))
    del copy  # a copy does not own the folder
    gc.collect()
    assert source.read(0, 50).shape == (50, 2)
    del source
    gc.collect()
    assert list(temporary.iterdir()) == []
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


def test_folder_of_a_killed_run_is_removed_by_the_next(temporary, parquet):
    alive = as_source(parquet)
    dead, young = temporary / "biglp-dead", temporary / "biglp-young"
    for folder in (dead, young):
        (folder / "x-0").mkdir(parents=True)
        (folder / IN_USE).touch()
    mine = alive.folder.parent
    for folder in (dead, mine):
        os.utime(folder, (1, 1))
    as_source(parquet)
    assert [folder.exists() for folder in (dead, young, mine)] == [False, True, True]
    alive.read(0, 5)


def test_kept_folder_is_used_again_until_the_input_changes(tmp_path, csv):
    folder = tmp_path / "kept"
    first = as_source(csv, cache=folder)
    (entry,) = folder.iterdir()
    made = (entry / "rows.npy").stat().st_mtime_ns
    second = as_source(csv, cache=folder)
    assert second.folder == first.folder == entry
    assert (entry / "rows.npy").stat().st_mtime_ns == made
    as_source(csv, cache=folder, columns=["a"])
    assert len(list(folder.iterdir())) == 2  # other options, other rows
    (entry / "meta.json").write_text("{")  # a damaged entry is made again
    np.testing.assert_array_equal(as_source(csv, cache=folder).read(0, 1), [[1, 2]])
    csv.write_text("a,b\n" + "3,4\n5,6\n" * 25)
    np.testing.assert_array_equal(as_source(csv, cache=folder).read(0, 1), [[3, 4]])
    del first, second
    gc.collect()
    assert len(list(folder.iterdir())) == 3


def test_rows_that_other_code_converted_are_converted_again(tmp_path, csv):
    here, code, kept = Path(biglp.__file__).parent, tmp_path / "code", tmp_path / "kept"
    shutil.copytree(here, code / "biglp", ignore=shutil.ignore_patterns("__pycache__"))
    program = "import sys; from biglp._rows import as_source; "
    program += "print(as_source(sys.argv[1], cache=sys.argv[2]).folder)"

    def opened_by(place):
        command = [sys.executable, "-B", "-c", program, str(csv), str(kept)]
        environment = {**os.environ, "PYTHONPATH": str(place)}
        return subprocess.run(command, env=environment, capture_output=True, check=True).stdout

    first = opened_by(code)
    shutil.make_archive(str(code), "zip", code)
    assert opened_by(tmp_path / "code.zip") == first
    rules = next(code.rglob("encode_columns.py"))
    rules.write_text(rules.read_text() + "\n# another rule\n")
    assert opened_by(code) != first
    assert len(list(kept.iterdir())) == 2


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
    assert not hasattr(source, "folder")  # decoded again in each sweep instead
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
    assert not hasattr(as_source(parquet), "folder")
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


@pytest.fixture(params=["csv", "libsvm"])
def text_rows(request, tmp_path) -> Path:
    values = np.random.default_rng(0).normal(size=(3000, 5)).round(3)
    path = tmp_path / f"x.{request.param}"
    if request.param == "csv":
        lines = [",".join(map(str, row)) for row in values]
        path.write_text("a,b,c,d,e\n" + "\n".join(lines))
    else:
        entries = [" ".join(f"{i + 1}:{v}" for i, v in enumerate(row)) for row in values]
        path.write_text("\n".join(f"1 {entry}" for entry in entries))
    return path


def flip(path: Path, place: int) -> None:
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def read_all(source):
    return [source.read(start, min(start + 700, 3000)) for start in range(0, 3000, 700)]


def dense(blocks):
    return np.vstack([b.toarray() if hasattr(b, "toarray") else b for b in blocks])


def test_every_file_of_converted_rows_is_checked(text_rows, tmp_path):
    """Header, first, middle and last bytes of each array, and of its checksums."""
    reference = dense(read_all(as_source(text_rows, cache=tmp_path / "kept")))
    (entry,) = (tmp_path / "kept").iterdir()
    files = [path for path in entry.iterdir() if path.suffix in (".npy", ".sums")]
    assert len(files) in (2, 8)
    for path in files:
        size = path.stat().st_size
        for place in {9, size // 2, size - 1}:
            store.known_sums.cache_clear()  # as a new process
            flip(path, place)
            with pytest.raises(BadRowsError, match=r"damaged.*Run again"):
                read_all(as_source(text_rows, cache=tmp_path / "kept"))
            again = as_source(text_rows, cache=tmp_path / "kept")  # converted again
            np.testing.assert_array_equal(dense(read_all(again)), reference)


def test_a_changed_description_is_not_believed(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1,red\n2,blue\n" * 25)
    source = as_source(tmp_path / "x.csv", cache=tmp_path / "kept")
    meta = source.folder / "meta.json"
    before = source.read(0, 50)
    meta.write_text(meta.read_text().replace("red", "rad"))
    again = as_source(tmp_path / "x.csv", cache=tmp_path / "kept")
    np.testing.assert_array_equal(again.read(0, 50), before)
    assert "rad" not in meta.read_text()


# Prepared rows, kept as they are projected --------------------------------------------------------
