"""Files in stores: names, requests to an S3 server that breaks some of them, copies, rows, runs."""

import gc
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from array_files import write as write_arrays
from biglp._core import BadRowsError, OutputError, ParameterError, StoreError
from biglp._files import Copies, StorePath, as_place, object_store, origin
from biglp._rows import InputFiles, as_source
from cli_tools import done, failed, run
from helpers import blobs
from row_files import ROWS, found_labels, write
from store_server import FAULTS

# Requests to a real S3 server through a proxy that breaks some of them ----------------------------


SMALL, LARGE = bytes(range(256)), bytes(range(256)) * (48 << 10)
"""One request, and several parts."""


@pytest.mark.parametrize("fault", [*FAULTS[:-1], "parts"])
def test_reading_and_writing_again_after_a_fault(store, tmp_path, fault):
    data, faults = (LARGE, ["", "drop", "503"]) if fault == "parts" else (SMALL, [fault])
    local = tmp_path / "x.bin"
    local.write_bytes(data)
    store.faults, store.methods = [*faults], ("PUT", "POST")
    as_place(store.uri("dir/x.bin")).upload(local)
    assert store.faults == []
    assert store.get("dir/x.bin") == data
    store.faults, store.methods = [*faults[-1:]], ("GET",)
    assert bytes(as_place(store.uri("dir/x.bin")).read_part(10, 200)) == data[10:200]
    assert store.faults == []


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


def test_an_interrupted_upload_leaves_nothing_even_when_python_ends(store, tmp_path):
    """Neither the whole file nor a part of it: the store is told to drop what it has."""
    program = """
import pathlib, sys
from biglp._files import as_place
class Interrupted(type(pathlib.Path())):
    pieces = [bytes(8 << 20), bytes(8 << 20)]
    def open(self, mode):
        return self
    def read(self, size):
        if not self.pieces:
            raise KeyboardInterrupt
        return self.pieces.pop()
    __enter__ = lambda self: self
try:
    as_place(sys.argv[1]).upload(Interrupted(sys.argv[2]))
except KeyboardInterrupt:
    print('interrupted')
"""
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


def test_keys_of_a_profile(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    keys, config = tmp_path / "keys", tmp_path / "config"
    keys.write_text("[lab]\naws_access_key_id = known\naws_secret_access_key = se%cret\n")
    config.write_text("[profile lab]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    found = object_store("s3", "of-a-profile", "").config
    names = ("access_key_id", "secret_access_key", "region")
    assert [found[name] for name in names] == ["known", "se%cret", "eu-west-1"]
    config.write_text("[profile lab]\nsso_session = here\n")
    keys.unlink()
    with pytest.raises(ParameterError, match=r"sso_session.*export-credentials"):
        object_store("s3", "of-another", "")


# Where a file is: local names, file:// URIs and stores --------------------------------------------


def test_names_of_files_and_their_parts():
    assert as_place("x/y.npy") == as_place(Path("x/y.npy")) == Path("x/y.npy")
    assert as_place("file:///a%20b/x.npy") == Path("/a b/x.npy")
    assert as_place("C:/x") == Path("C:/x")
    options = "?endpoint_override=127.0.0.1:9000&scheme=http"
    place = as_place(f"s3://bucket/a dir/x.tar.gz{options}")
    assert (place.scheme, place.host, place.path) == ("s3", "bucket", "a dir/x.tar.gz")
    assert (place.name, place.stem, place.suffix) == ("x.tar.gz", "x.tar", ".gz")
    assert str(place.parent / "b") == str(place.with_name("b")) == f"s3://bucket/a dir/b{options}"
    assert as_place("s3://bucket/part-?.npy").path == "part-?.npy"  # a pattern, not options
    assert as_place("s3://bucket").name == "bucket"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("file://data/x.npy", "three slashes"),
        ("s3:///x.npy", "names no bucket"),
        ("s3://bucket/x.npy?colour=red", "'colour' is not known"),
        ("nonsense://host/x.npy", "may begin with s3://"),
        ("s3://key:secret@bucket/x.npy", "AWS_SECRET_ACCESS_KEY"),  # keys are not shown
    ],
)
def test_addresses_that_cannot_be_used(uri, message):
    with pytest.raises(ParameterError, match=message) as caught:
        as_place(uri).exists()
    assert "secret@" not in str(caught.value)


# Files of a store, copied once and checked --------------------------------------------------------


DATA = np.random.default_rng(0).integers(256, size=200_000).astype(np.uint8).tobytes()


@pytest.fixture
def small_parts(monkeypatch):
    for name in ("LEAST_PART", "MOST_PART"):
        monkeypatch.setattr(f"{Copies.__module__}.{name}", 20_000)


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
    # Copies are called by their names in the store as long as they are there.
    first, second = Copies(tmp_path / "first"), Copies(tmp_path / "second")
    (one,), (two,) = first.local([name]), second.local([name])
    assert origin(f"{one} and {two}") == f"{name} and {name}"
    del second
    gc.collect()
    assert origin(f"{one} and {two}") == f"{name} and {two}"


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
    name, read = store.put("x.bin", DATA), StorePath.read_part

    def read_and_change(self, start, stop):
        store.put("x.bin", DATA + b"more")
        return read(self, start, stop)

    monkeypatch.setattr(StorePath, "read_part", read_and_change)
    with pytest.raises(BadRowsError, match=r"x\.bin changed while it was being copied"):
        Copies(tmp_path).local([name])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_file_that_never_arrives_as_it_is_stored_or_has_no_room(store, tmp_path, monkeypatch):
    name = store.put("x.bin", DATA)
    store.faults = ["corrupt"] * 100
    with pytest.raises(StoreError, match="4 copies differ"):
        Copies(tmp_path).local([name])
    assert not list(tmp_path.rglob("x.bin"))
    store.faults = []
    monkeypatch.setattr(f"{Copies.__module__}.free_space", lambda folder: 1000)
    store.asked.clear()
    with pytest.raises(OutputError, match=r"takes 195 KB; 1000 bytes are free in .*--cache"):
        Copies(tmp_path).local([name])
    assert gets(store) == 0


# Folders and patterns in a store are those of a disk ----------------------------------------------


NAMES = ["b/part-1.csv", "b/part-10.csv", "b/c/part-2.csv", "b/_SUCCESS", "b/.x.csv", "b/d.csv"]


def found(named) -> list[str]:
    return [str(file) for file in InputFiles(named).names]


def test_folders_and_patterns_as_on_a_disk(store, tmp_path):
    for name in NAMES:
        store.put(name, b"x\n1\n")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x\n1\n")
    for named in ("b", "b/*.csv", "b/part-?.csv", "b/**/part-[12].csv", "b/c/*"):
        stored = [name.removeprefix(store.uri("")) for name in found(store.uri(named))]
        assert stored == [os.path.relpath(name, tmp_path) for name in found(tmp_path / named)]
    assert found((tmp_path / "b").as_uri()) == found(tmp_path / "b")
    with pytest.raises(BadRowsError, match=r"no file fits the pattern s3://bucket/b/\*\.npy \(of"):
        found(store.uri("b/*.npy"))
    with pytest.raises(BadRowsError, match="there is no file s3://bucket/c"):
        found(store.uri("c"))
    store.put("z/x.zarr/zarr.json", b"{}")
    for name in ("z/x.zarr", "z"):
        with pytest.raises(BadRowsError, match=r"x\.zarr is a folder that is read as one array"):
            found(store.uri(name))


# Every kind of file gives the same rows from a store as from a disk -------------------------------


def partitions(folder: Path) -> str:
    for year in (2023, 2024):
        (folder / f"t/year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"a": np.arange(40.0)}), folder / f"t/year={year}/x.parquet")
    return str(folder / "t")


def delta(folder: Path) -> str:
    deltalake = pytest.importorskip("deltalake")
    folder.mkdir()
    table = pa.table({"a": np.arange(40.0), "kind": np.arange(40) % 3})
    deltalake.write_deltalake(str(folder / "d"), table, partition_by=["kind"])
    deltalake.DeltaTable(str(folder / "d")).delete("kind = 1")
    return str(folder / "d")


@pytest.mark.parametrize("kind", ["shards", "fixed_size_list", "jsonl", "hdf5", partitions, delta])
def test_the_same_rows(store, tmp_path, kind):
    folder, array = tmp_path / "files", np.arange(160, dtype=np.float32).reshape(40, 4)
    name = kind(folder) if callable(kind) else write_arrays(kind, array, folder, [3, 13], 7)
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(f"in/{path.relative_to(folder)}", path.read_bytes())
    local = as_source(name)
    stored = as_source(store.uri(f"in{name.removeprefix(str(folder))}"))
    assert (stored.n_rows, stored.n_features) == (local.n_rows, local.n_features)
    assert stored.feature_names == local.feature_names
    assert np.array_equal(stored.read(0, stored.n_rows), local.read(0, local.n_rows))


# Whole runs on the server: the same labels as from local files, or one clear message --------------


STORE_FAILED = 8
QUICK = ("--factor", "nystrom", "-k", 20)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture(scope="module")
def rows():
    X, y, _ = blobs(ROWS, labelled=60)
    return X, y


def upload(store, arguments: tuple[str, ...]) -> list[str]:
    named = []
    for argument in arguments:
        path = Path(argument)
        for file in [path] if path.is_file() else sorted(path.rglob("*")) if path.exists() else []:
            store.put(f"in/{file}", file.read_bytes())
        named.append(store.uri(f"in/{argument}") if path.exists() else argument)
    return named


def stored_labels(store, folder: str) -> np.ndarray:
    ending = "npy" if f"{folder}/labels.npy" in store.names() else "parquet"
    Path("got").mkdir(exist_ok=True)
    for stale in Path("got").iterdir():
        stale.unlink()
    Path("got", f"labels.{ending}").write_bytes(store.get(f"{folder}/labels.{ending}"))
    return found_labels("got")


@pytest.mark.parametrize("kind", ["npy", "folder", "csv"])
def test_labels_are_those_of_local_files(here, store, rows, kind):
    arguments = write(kind, *rows)
    done("fit", *arguments, "-o", "local", *QUICK)
    done("fit", *upload(store, arguments), "-o", store.uri("out"), *QUICK)
    assert np.array_equal(stored_labels(store, "out"), found_labels("local"))
    model = store.get("out/model.biglp")
    assert model == Path("local/model.biglp").read_bytes()
    names = [name for name in store.names() if name.startswith("out")]
    assert len(names) == 4
    assert not list(Path("../cache/runs").iterdir())  # nothing is left of the work
    facts = json.loads(store.get("out/summary.json"))["run"]["input"]
    assert all("ETag" in fact for fact in facts.values())


def test_every_command(here, store, rows):
    arguments = upload(store, write("parquet", *rows))
    out = store.uri("dir/out")
    done("fit", *arguments, "-o", out)
    done("predict", f"{out}/model.biglp", arguments[0], "-o", store.uri("new.npy"))
    done("predict", f"{out}/model.biglp", arguments[0], "-o", "new.npy")
    assert store.get("new.npy") == Path("new.npy").read_bytes()
    done("suggest", out, "-n", 5, "-o", store.uri("next.csv"))
    assert store.get("next.csv").startswith(b"row,label,")
    assert "Probably wrong" in done("check", out).output
    assert "3,000 rows" in done("inspect", *arguments).output
    shown = done("fit", *arguments, "-o", store.uri("dry"), "--dry-run").output
    assert "nothing was written" in shown
    others = [name for name in store.names() if not name.startswith(("in/", "dir/out/"))]
    assert others == ["new.npy", "next.csv"]
    assert "exists already" in failed(2, "suggest", out, "-o", store.uri("next.csv"))
    assert "already holds results" in failed(2, "fit", *arguments, "-o", out)
    assert "in a store" in run("simulate", "10x2", "-o", store.uri("x.npy")).output


def test_resuming(here, store, rows):
    arguments = upload(store, write("npy", *rows))
    command = ("fit", *arguments, "-o", store.uri("out"), *QUICK)
    store.faults, store.methods = ["", "", *["503"] * 100], ("PUT",)
    message = failed(STORE_FAILED, *command)
    assert "s3://bucket/out/model.biglp could not be written" in message
    assert "Kept in" in message
    written = [name for name in store.names() if name.startswith("out")]
    assert written == ["out/.biglp-run", "out/labels.npy"]
    assert b"its work is in" in store.get("out/.biglp-run")
    store.faults, store.asked = [], []
    done(*command, "--resume")
    assert not any("in/rows.npy" in asked and "GET" in asked for asked in store.asked)
    results = ("labels.npy", "model.biglp", "report.html", "summary.json")
    written = [name for name in store.names() if name.startswith("out/")]
    assert written == [f"out/{name}" for name in results]
    assert "already ended" in done(*command, "--resume").output
    store.put("in/rows.npy", Path("rows.npy").read_bytes() + b" ")
    message = failed(5, *command, "--resume")
    assert "holds the results of another run" in message
    assert "ETag" in message


@pytest.mark.parametrize("seed", range(3))
def test_faults(here, store, rows, seed):
    """The same labels or one clear message, never a half file; benchmarks/stores.py has more."""
    arguments = write("folder", *rows)
    done("fit", *arguments, "-o", "local", *QUICK)
    named = upload(store, arguments)
    rng = random.Random(seed)
    store.methods = ("GET", "PUT", "POST", "HEAD", "DELETE")
    store.faults = [rng.choice(["", "", *FAULTS]) for _ in range(200)]
    command = ("fit", *named, "-o", store.uri("out"), *QUICK)
    result = run(*command)
    store.faults = []
    written = [name for name in store.names() if name.startswith("out/")]
    for name in written:
        # The others name the input and the time.
        if not name.endswith(("summary.json", "report.html", ".biglp-run")):
            assert store.get(name) == Path("local", Path(name).name).read_bytes()
    if result.exit_code != 0:
        assert result.exit_code == STORE_FAILED, result.output
        assert result.stderr.count("biglp: ") == 1
        if "out/summary.json" in written:  # it arrived, and the answer to it did not
            assert np.array_equal(stored_labels(store, "out"), found_labels("local"))
        done(*command, *(["--resume"] if "Kept" in result.stderr else []))
    assert np.array_equal(stored_labels(store, "out"), found_labels("local"))


def test_an_endpoint_in_the_address_and_no_bucket(here, store, rows, monkeypatch):
    arguments = write("folder", *rows)
    message = failed(STORE_FAILED, "fit", *arguments, "-o", "s3://no-such-bucket/out")
    assert "no-such-bucket/out/.biglp-run could not be written" in message
    assert not any(Path("../cache").rglob("*.npz"))  # told before the work
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    object_store.cache_clear()
    options = f"?endpoint_override=127.0.0.1:{store.port}&scheme=http"
    named = [word + options * word.startswith("s3://") for word in upload(store, arguments)]
    done("fit", *named, "-o", store.uri("out") + options, *QUICK)
    assert "out/summary.json" in store.names()
    done("suggest", store.uri("out") + options)


def test_files_of_the_hugging_face_hub(here, rows, monkeypatch):
    """The download is huggingface_hub's; it gives the folder of its copies."""
    asked = []

    def download(repository, **options):
        asked.append((repository, *options.values()))
        if repository == "a/gone":
            raise OSError("404 Client Error. Repository Not Found")
        return "copies"

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=download))
    Path("copies/data").mkdir(parents=True)
    np.save("copies/data/0.npy", rows[0])
    np.save("labels.npy", rows[1])
    done("fit", "hf://datasets/a/b/data/*.npy", "--labels", "labels.npy", "-o", "out", *QUICK)
    done("suggest", "out")
    as_source("hf://datasets/a/b@refs%2Fx/data")
    assert asked[0] == ("a/b", "dataset", None, ["data/*.npy", "data/*.npy/*"])
    assert asked[-1] == ("a/b", "dataset", "refs/x", ["data", "data/*"])
    assert "hf auth login" in failed(STORE_FAILED, "suggest", "hf://a/gone/x.npy")
    assert "hf://datasets/USER/NAME" in failed(2, "suggest", "hf://datasets/a")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install huggingface_hub" in failed(6, "suggest", "hf://datasets/a/b")
