"""Files in stores: names, requests to an S3 server that breaks some of them, copies and rows."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core import BadRowsError, OutputError, ParameterError, StoreError
from biglp._files import Copies, StorePath, as_place, atomic_write, copies, copying_to
from biglp._files import uri as stores
from biglp._rows import InputFiles, as_source
from store_server import FAULTS

# --------------------------------------------------------------------------------------------------
# Requests to a real S3 server through a proxy that breaks some of them.


def find_files(paths):
    return list(InputFiles(paths).names)


SMALL, LARGE = bytes(range(256)), bytes(range(256)) * (48 << 10)
"""One request, and several parts."""


@pytest.mark.parametrize("fault", FAULTS[:-1])
def test_reading_again_after_a_fault(store, fault):
    place = as_place(store.put("x.bin", SMALL))
    store.faults = [fault]
    assert bytes(place.read_part(10, 200)) == SMALL[10:200]
    assert store.faults == []


@pytest.mark.parametrize(
    ("data", "faults"),
    [(SMALL, [fault]) for fault in FAULTS[:-1]] + [(LARGE, ["", "drop", "503"])],
)
def test_writing_again_after_a_fault(store, tmp_path, data, faults):
    local = tmp_path / "x.bin"
    local.write_bytes(data)
    store.faults, store.methods = [*faults], ("PUT", "POST")
    as_place(store.uri("dir/x.bin")).upload(local)
    assert store.faults == []
    assert store.get("dir/x.bin") == data


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_a_store_that_stays_away_gets_one_message_and_no_half_file(store, tmp_path, data):
    place = as_place(store.put("x.bin", data))
    store.faults = ["503"] * 100
    with pytest.raises(
        StoreError, match=r"x\.bin could not be read: .*503.*tried 3 times.*--resume"
    ):
        place.read_part(0, 10)
    local = tmp_path / "y.bin"
    local.write_bytes(data)
    store.faults, store.methods = ["", *["reset"] * 100], ("PUT", "POST")
    if data is SMALL:
        store.faults.pop(0)
    with pytest.raises(StoreError, match=r"y\.bin could not be written"):
        as_place(store.uri("y.bin")).upload(local)
    store.faults = []
    assert store.names() == ["x.bin"]


def test_what_trying_again_does_not_change_is_not_tried_again(store, tmp_path):
    with pytest.raises(BadRowsError, match=r"there is no file s3://bucket/none\.npy"):
        as_place(store.uri("none.npy")).stamp()
    local = tmp_path / "x"
    local.write_bytes(SMALL)
    store.asked.clear()
    with pytest.raises((StoreError, OutputError), match="could not be written"):
        as_place("s3://no-such-bucket/x").upload(local)
    assert len(store.asked) <= 2


def test_an_interrupted_upload_leaves_nothing_even_when_python_ends(store, tmp_path):
    """Neither the whole file nor a part of it: the store is told to drop what it has."""
    program = (
        "import pathlib, sys\n"
        "from biglp._files.uri import as_place\n"
        "class Interrupted(type(pathlib.Path())):\n"
        "    def open(self, mode):\n"
        "        return self\n"
        "    def __enter__(self):\n"
        "        self.pieces = [bytes(8 << 20), bytes(8 << 20)]\n"
        "        return self\n"
        "    def read(self, size):\n"
        "        if not self.pieces:\n"
        "            raise KeyboardInterrupt\n"
        "        return self.pieces.pop()\n"
        "try:\n"
        "    as_place(sys.argv[1]).upload(Interrupted(sys.argv[2]))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    with (tmp_path / "x.bin").open("wb") as file:
        file.truncate(24 << 20)
    names = store.uri("x.bin"), str(tmp_path / "x.bin")
    command = [sys.executable, "-W", "ignore", "-c", program, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "interrupted\n"
    assert done.stderr == ""
    # It was begun in parts; whether a part left before the end is up to obstore's own threads.
    assert any("?uploads" in request for request in store.asked)
    assert any(request.startswith("DELETE") for request in store.asked)
    assert store.names() == []


def test_the_endpoint(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    assert stores.s3_endpoint("region=eu-west-1") is None
    assert stores.s3_endpoint("endpoint_override=h:9000&scheme=http") == "http://h:9000"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other:1/")
    assert stores.s3_endpoint("") == "http://other:1"
    assert stores.s3_endpoint("endpoint_override=https://h") == "https://h"


def test_keys_of_a_profile(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "keys").write_text(
        "[lab]\naws_access_key_id = known\naws_secret_access_key = se%cret\n"
    )
    (tmp_path / "config").write_text("[profile lab]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    config = stores.object_store("s3", "of-a-profile", "").config
    assert config["access_key_id"] == "known"
    assert config["secret_access_key"] == "se%cret"
    assert config["region"] == "eu-west-1"
    (tmp_path / "config").write_text("[profile lab]\nsso_session = here\n")
    (tmp_path / "keys").unlink()
    with pytest.raises(ParameterError, match=r"sso_session.*export-credentials"):
        stores.object_store("s3", "of-another", "")


def test_a_tag_is_an_md5_when_a_file_came_in_one_part():
    assert stores.Stamp(1, "0" * 32).md5 == "0" * 32
    assert stores.Stamp(1, "0" * 32 + "-2").md5 is None


# --------------------------------------------------------------------------------------------------
# Where a file is: local names, file:// URIs and stores.


def test_local_names_and_file_uris_are_paths():
    assert as_place("x/y.npy") == Path("x/y.npy")
    assert as_place(Path("x")) == Path("x")
    assert as_place("file:///a%20b/x.npy") == Path("/a b/x.npy")
    assert not stores.is_uri("C:/x")
    assert not stores.is_uri("sim:10x3")
    assert stores.plain_name("x.npy") == str(Path("x.npy").absolute())
    with pytest.raises(ParameterError, match="three slashes"):
        as_place("file://data/x.npy")


def test_the_parts_of_a_uri():
    place = as_place("s3://bucket/a dir/x.tar.gz?endpoint_override=127.0.0.1:9000&scheme=http")
    assert (place.scheme, place.host, place.path) == ("s3", "bucket", "a dir/x.tar.gz")
    assert (place.name, place.stem, place.suffix) == ("x.tar.gz", "x.tar", ".gz")
    beside = place.with_name("y.npy")
    assert str(beside) == "s3://bucket/a dir/y.npy?endpoint_override=127.0.0.1:9000&scheme=http"
    assert str(place.parent / "b") == str(place.with_name("b"))
    assert stores.plain_name(place) == str(place)
    assert as_place("s3://bucket/part-?.npy").path == "part-?.npy"  # a pattern, not options
    assert as_place("s3://bucket").name == "bucket"


def test_keys_in_an_address_are_refused_and_not_shown():
    with pytest.raises(ParameterError, match="AWS_SECRET_ACCESS_KEY") as caught:
        as_place("s3://key:secret@bucket/x.npy")
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("s3:///x.npy", "names no bucket"),
        ("s3://bucket/x.npy?colour=red", "'colour' is not known"),
        ("nonsense://host/x.npy", "may begin with s3://"),
    ],
)
def test_addresses_that_cannot_be_used(uri, message):
    with pytest.raises(ParameterError, match=message):
        as_place(uri).exists()


def test_a_file_in_a_store_has_the_methods_of_a_path():
    place = as_place("memory://here/folder/x.bin")
    assert isinstance(place, StorePath)
    with atomic_write(place) as file:
        file.write(b"first")
        assert not place.exists()
    assert place.read_bytes() == b"first"
    assert place.is_file()
    assert not place.is_dir()
    assert place.parent.is_dir()
    assert place.parent.files() == ["x.bin"]
    assert as_place("memory://here").files() == ["folder/x.bin"]
    with stores.open_binary(place) as file:
        assert file.read(2) == b"fi"
    place.unlink()
    place.unlink(missing_ok=True)
    assert not place.exists()


def test_unfinished_work_has_the_same_folder_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path))
    work_folder = stores.work_folder
    first, second = (as_place(f"s3://bucket/{name}/out") for name in "ab")
    assert work_folder(first, None) == work_folder(first, None) != work_folder(second, None)
    assert work_folder(first, None).parent == tmp_path / "runs"
    assert work_folder(first, str(tmp_path / "here")).parent == tmp_path / "here"
    assert work_folder(first, "never") == work_folder(first, None)


# --------------------------------------------------------------------------------------------------
# Files of a store, copied once and checked.


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


# --------------------------------------------------------------------------------------------------
# Folders and patterns in a store are those of a disk.


NAMES = ["b/part-1.csv", "b/part-10.csv", "b/c/part-2.csv", "b/_SUCCESS", "b/.x.csv", "b/d.parquet"]


@pytest.mark.parametrize("named", ["b", "b/*.csv", "b/part-?.csv", "b/**/part-[12].csv", "b/c/*"])
def test_as_on_a_disk(store, tmp_path, named):
    for name in NAMES:
        store.put(name, b"x\n1\n")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n1\n")
    stored = [name.removeprefix(store.uri("")) for name in find_files(store.uri(named))]
    local = [os.path.relpath(name, tmp_path) for name in find_files(str(tmp_path / named))]
    assert stored == local
    assert find_files((tmp_path / "b").as_uri()) == find_files(tmp_path / "b")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_list_that_comes_in_part_is_asked_for_again(store, fault):
    names = [store.put(f"many/{number:02}.csv", b"x\n1\n") for number in range(20)]
    store.faults = [fault]
    assert find_files(store.uri("many")) == names
    assert store.faults == []


def test_what_is_not_there(store):
    store.put("b/x.csv", b"x\n1\n")
    with pytest.raises(
        BadRowsError, match=r"no file fits the pattern s3://bucket/b/\*\.npy \(of 1"
    ):
        find_files(store.uri("b/*.npy"))
    with pytest.raises(BadRowsError, match="there is no file s3://bucket/c"):
        find_files(store.uri("c"))


def test_looking_up_copies_nothing(store):
    store.put("x.csv", b"x\n1\n")
    named = InputFiles(store.uri("x.csv"))
    assert named.is_table
    assert named.format.name == "CSV"
    assert not any(request.startswith("GET /bucket/") for request in store.asked)


# --------------------------------------------------------------------------------------------------
# Every kind of file gives the same rows from a store as from a disk.


ROWS = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)


def shards(folder: Path) -> str:
    for number in (1, 2, 10):
        np.save(folder / f"emb_{number}.npy", ROWS[number:].astype(np.float16))
    return "emb_*.npy"


def embeddings(folder: Path) -> str:
    column = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 4)
    pq.write_table(pa.table({"emb": column}), folder / "x.parquet", row_group_size=7)
    return "x.parquet"


def partitions(folder: Path) -> str:
    for year in (2023, 2024):
        (folder / f"t/year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"a": ROWS[:, 0]}), folder / f"t/year={year}/x.parquet")
    return "t"


def json_lines(folder: Path) -> str:
    lines = (json.dumps({"emb": row.tolist()}) for row in ROWS)
    (folder / "x.jsonl").write_text("\n".join(lines) + "\n")
    return "x.jsonl"


def hdf5(folder: Path) -> str:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "x.h5", "w") as file:
        file["a"] = ROWS
        file["b"] = ROWS[::-1]
    return "x.h5::b"


def delta(folder: Path) -> str:
    deltalake = pytest.importorskip("deltalake")
    table = pa.table({"a": ROWS[:, 0], "kind": np.arange(40) % 3})
    deltalake.write_deltalake(str(folder / "d"), table, partition_by=["kind"])
    deltalake.DeltaTable(str(folder / "d")).delete("kind = 1")
    return "d"


@pytest.mark.parametrize("make", [shards, embeddings, partitions, json_lines, hdf5, delta])
def test_the_same_rows(store, tmp_path, make):
    folder = tmp_path / "files"
    folder.mkdir()
    name = make(folder)
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(f"in/{path.relative_to(folder)}", path.read_bytes())
    local, stored = as_source(str(folder / name)), as_source(store.uri(f"in/{name}"))
    assert (stored.n_rows, stored.n_features) == (local.n_rows, local.n_features)
    assert stored.feature_names == local.feature_names
    assert np.array_equal(stored.read(0, stored.n_rows), local.read(0, local.n_rows))
    if make is delta:
        assert local.n_features == 2
        assert set(np.unique(local.read(0, local.n_rows)[:, 1])) == {0.0, 2.0}


def test_a_folder_that_is_one_array_is_refused(store):
    store.put("x.zarr/zarr.json", b"{}")
    for name in ("x.zarr", ""):
        with pytest.raises(BadRowsError, match=r"x\.zarr is a folder that is read as one array"):
            as_source(store.uri(name))
