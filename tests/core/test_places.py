"""Where a file is: local names, file:// URIs and stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from biglp._core.errors import ParameterError
from biglp._files.local import atomic_write
from biglp._files.uri import StorePath, as_place, is_uri, open_binary, plain_name, work_folder


def test_local_names_and_file_uris_are_paths():
    assert as_place("x/y.npy") == Path("x/y.npy")
    assert as_place(Path("x")) == Path("x")
    assert as_place("file:///a%20b/x.npy") == Path("/a b/x.npy")
    assert not is_uri("C:/x")
    assert not is_uri("sim:10x3")
    assert plain_name("x.npy") == str(Path("x.npy").absolute())
    with pytest.raises(ParameterError, match="three slashes"):
        as_place("file://data/x.npy")


def test_the_parts_of_a_uri():
    place = as_place("s3://bucket/a dir/x.tar.gz?endpoint_override=127.0.0.1:9000&scheme=http")
    assert (place.scheme, place.host, place.path) == ("s3", "bucket", "a dir/x.tar.gz")
    assert (place.name, place.stem, place.suffix) == ("x.tar.gz", "x.tar", ".gz")
    beside = place.with_name("y.npy")
    assert str(beside) == "s3://bucket/a dir/y.npy?endpoint_override=127.0.0.1:9000&scheme=http"
    assert str(place.parent / "b") == str(place.with_name("b"))
    assert plain_name(place) == str(place)
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
    with open_binary(place) as file:
        assert file.read(2) == b"fi"
    place.unlink()
    place.unlink(missing_ok=True)
    assert not place.exists()


def test_unfinished_work_has_the_same_folder_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path))
    first, second = (as_place(f"s3://bucket/{name}/out") for name in "ab")
    assert work_folder(first, None) == work_folder(first, None) != work_folder(second, None)
    assert work_folder(first, None).parent == tmp_path / "runs"
    assert work_folder(first, str(tmp_path / "here")).parent == tmp_path / "here"
    assert work_folder(first, "never") == work_folder(first, None)
