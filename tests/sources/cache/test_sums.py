"""Converted rows that were changed on disk are noticed, wherever the change is."""

from __future__ import annotations

import gc
import os
import pickle
import weakref
from pathlib import Path

import numpy as np
import pytest

from biglp._core.errors import BadRowsError
from biglp._rows import as_source
from biglp._rows import cache as sums


@pytest.fixture(params=["csv", "libsvm"])
def rows(request, tmp_path) -> Path:
    """A text file that is converted to more than two stretches."""
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
    """Change a bit as a disk does: the file's time stays."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def read_all(source):
    return [source.read(start, min(start + 700, 3000)) for start in range(0, 3000, 700)]


def dense(blocks):
    return np.vstack([b.toarray() if hasattr(b, "toarray") else b for b in blocks])


def test_every_file_of_converted_rows_is_checked(rows, tmp_path):
    """Header, first, middle and last bytes of each array, and of its checksums."""
    reference = dense(read_all(as_source(rows, cache=tmp_path / "kept")))
    (entry,) = (tmp_path / "kept").iterdir()
    files = [path for path in entry.iterdir() if path.suffix in (".npy", ".sums")]
    assert len(files) in (2, 8)
    for path in files:
        size = path.stat().st_size
        for place in {9, size // 2, size - 1}:
            sums.known_sums.cache_clear()  # as a new process
            flip(path, place)
            with pytest.raises(BadRowsError, match=r"damaged.*Run again"):
                read_all(as_source(rows, cache=tmp_path / "kept"))
            again = as_source(rows, cache=tmp_path / "kept")  # converted again
            np.testing.assert_array_equal(dense(read_all(again)), reference)


def test_chosen_rows_are_checked_too(tmp_path):
    np.savetxt(tmp_path / "x.csv", np.arange(40_000.0).reshape(-1, 4) % 977, delimiter=",")
    source = as_source(tmp_path / "x.csv", cache=tmp_path / "kept", header=False)
    flip(source.folder / "rows.npy", 200_000)
    source.take(np.array([1, 2]))  # another stretch
    with pytest.raises(BadRowsError, match="damaged"):
        source.take(np.array([3, 200_000 // 32]))


def test_each_stretch_is_checked_once_in_a_process(tmp_path):
    """Also where work comes in many small parcels, each with its own copy of the source."""
    np.savetxt(tmp_path / "x.csv", np.arange(40_000.0).reshape(-1, 4) % 977, delimiter=",")
    source = as_source(tmp_path / "x.csv", header=False)
    source.read(0, 10_000)
    flip(source.folder / "rows.npy", 200_000)
    for start in range(0, 10_000, 500):  # would be damaged if it was checked again
        pickle.loads(pickle.dumps(source)).read(start, start + 500)
    assert len(pickle.dumps(source)) < 5000


def test_sums_of_files_that_are_read_no_more_are_let_go(tmp_path):
    """A process may read any number of inputs, one after the other."""
    seen = []
    for number in range(sums.KNOWN_FILES + 3):
        path = tmp_path / f"{number}.csv"
        path.write_text("a,b\n" + "1,2\n3,5\n" * 25)
        source = as_source(path)
        source.read(0, 50)
        rows = source.folder / "rows.npy"
        stamp = rows.stat()
        known = sums.known_sums(str(rows), stamp.st_size, stamp.st_mtime_ns)
        seen.append(weakref.ref(known[1]))
    gc.collect()
    assert sum(ref() is not None for ref in seen) == sums.KNOWN_FILES


def test_a_changed_description_is_not_believed(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1,red\n2,blue\n" * 25)
    source = as_source(tmp_path / "x.csv", cache=tmp_path / "kept")
    meta = source.folder / "meta.json"
    before = source.read(0, 50)
    meta.write_text(meta.read_text().replace("red", "rad"))
    again = as_source(tmp_path / "x.csv", cache=tmp_path / "kept")
    np.testing.assert_array_equal(again.read(0, 50), before)
    assert "rad" not in meta.read_text()
