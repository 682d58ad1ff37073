"""Files of a store, copied once and checked."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import numpy as np
import pytest

from biglp._core.errors import BadRowsError, OutputError, StoreError
from biglp._files import copies
from biglp._files.copies import Copies, copying_to
from biglp._files.uri import StorePath
from biglp._rows import as_source
from store_server import FAULTS

DATA = np.random.default_rng(0).integers(256, size=200_000).astype(np.uint8).tobytes()


@pytest.fixture
def small_parts(monkeypatch):
    """Some ten parts a file."""
    monkeypatch.setattr(copies, "LEAST_PART", 20_000)
    monkeypatch.setattr(copies, "MOST_PART", 20_000)


def gets(store) -> int:
    return sum(request.startswith("GET /bucket/") for request in store.asked)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_copy_in_parts_is_the_file_whatever_happens_on_the_way(
    store, tmp_path, small_parts, fault
):
    name = store.put("dir/x.bin", DATA)
    store.faults = ["", fault, "", "", fault]
    (local,) = Copies(tmp_path).local([name])
    assert store.faults == []
    assert Path(local).read_bytes() == DATA
    assert Path(local).name == "x.bin"
    assert not list(tmp_path.rglob("*.part"))


def test_copies_are_called_by_their_names_in_the_store_as_long_as_they_are_there(store, tmp_path):
    name = store.put("x.bin", DATA)
    first, second = Copies(tmp_path / "first"), Copies(tmp_path / "second")
    (one,), (two,) = first.local([name]), second.local([name])
    assert copies.origin(f"{one} and {two}") == f"{name} and {name}"
    del second
    gc.collect()
    assert copies.origin(f"{one} and {two}") == f"{name} and {two}"


def test_a_copy_is_used_again_while_the_file_is_the_same(store, tmp_path):
    name = store.put("x.bin", DATA)
    (local,) = Copies(tmp_path).local([name])
    store.asked.clear()
    assert Copies(tmp_path).local([name, "other"]) == (local, "other")
    assert gets(store) == 0
    store.put("x.bin", DATA[::-1])
    assert Copies(tmp_path).local([name]) == (local,)
    assert Path(local).read_bytes() == DATA[::-1]
    Path(local).write_bytes(DATA[:10])
    Copies(tmp_path).local([name])
    assert Path(local).read_bytes() == DATA[::-1]


def test_an_interrupted_copy_goes_on_where_it_stopped(store, tmp_path, small_parts):
    names = [store.put(f"{number}.bin", DATA) for number in range(2)]
    store.faults = [*[""] * 14, *["503"] * 500]
    with pytest.raises(StoreError, match=r"1\.bin could not be read"):
        Copies(tmp_path).local(names)
    store.faults, store.asked = [], []
    for local in Copies(tmp_path).local(names):
        assert Path(local).read_bytes() == DATA
    assert 0 < gets(store) < 10


def test_a_file_that_changes_while_it_is_copied(store, tmp_path, monkeypatch):
    name = store.put("x.bin", DATA)
    read = StorePath.read_part

    def read_and_change(self, start, stop):
        data = read(self, start, stop)
        store.put("x.bin", DATA + b"more")
        return data

    monkeypatch.setattr(StorePath, "read_part", read_and_change)
    with pytest.raises(BadRowsError, match=r"x\.bin changed while it was being copied"):
        Copies(tmp_path).local([name])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_file_that_never_arrives_as_it_is_stored(store, tmp_path):
    name = store.put("x.bin", DATA)
    store.faults = ["corrupt"] * 100
    with pytest.raises(StoreError, match="4 copies differ"):
        Copies(tmp_path).local([name])
    assert not list(tmp_path.rglob("x.bin"))


def test_a_tag_that_looks_like_an_md5_and_is_none(store, tmp_path, monkeypatch):
    """Where a store encrypts files with keys of its own."""
    names = [store.put(f"{number}.bin", DATA) for number in range(2)]
    stamp = StorePath.stamp
    monkeypatch.setattr(StorePath, "stamp", lambda self: stamp(self)._replace(tag="0" * 32))
    made = Copies(tmp_path)
    for local in made.local(names):
        assert Path(local).read_bytes() == DATA
    assert gets(store) == 4  # the first file twice, the second time in two parts


def test_room_is_looked_for_first(store, tmp_path, monkeypatch):
    name = store.put("x.bin", DATA)
    monkeypatch.setattr(copies, "free_space", lambda folder: 1000)
    store.asked.clear()
    with pytest.raises(OutputError, match=r"takes 195 KB; 1000 bytes are free in .*--cache"):
        Copies(tmp_path).local([name])
    assert gets(store) == 0


def test_a_store_is_asked_once_in_a_run(store, tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.arange(12.0).reshape(4, 3))
    name = store.put("x.npy", buffer.getvalue())
    with copying_to(tmp_path):
        as_source(name)
        store.asked.clear()
        assert as_source(name).n_rows == 4
    assert store.asked == []


def test_temporary_copies_go_with_the_source(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    buffer = io.BytesIO()
    np.save(buffer, np.arange(12.0).reshape(4, 3))
    source = as_source(store.put("x.npy", buffer.getvalue()))
    assert source.name == "s3://bucket/x.npy"
    assert source.read(1, 3).tolist() == [[3, 4, 5], [6, 7, 8]]
    assert list(tmp_path.rglob("x.npy"))
    del source
    gc.collect()
    assert not list(tmp_path.rglob("x.npy"))


def test_messages_name_the_file_as_the_store_does(store):
    store.put("x.parquet", b"nonsense")
    with pytest.raises(BadRowsError, match=r"^s3://bucket/x\.parquet cannot be read as Parquet"):
        as_source("s3://bucket/x.parquet")
