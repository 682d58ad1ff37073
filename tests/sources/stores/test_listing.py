"""Folders and patterns in a store are those of a disk."""

from __future__ import annotations

import os

import pytest

from biglp._core.errors import BadRowsError
from biglp._rows import InputFiles
from biglp._rows.opening import find_files
from store_server import FAULTS

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
