"""Requests to a real S3 server through a proxy that breaks some of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from biglp._core.errors import BadRowsError, OutputError, StoreError
from biglp._files import uri as stores
from biglp._files.uri import as_place
from store_server import FAULTS

SMALL, LARGE = bytes(range(256)), bytes(range(256)) * (48 << 10)
"""One request, and several parts."""


@pytest.mark.parametrize("fault", FAULTS[:-1])
def test_reading_again_after_a_fault(store, fault):
    place = as_place(store.put("x.bin", SMALL))
    file = place.reader()
    store.faults = [fault]
    assert bytes(place.read_part(file, 10, 200)) == SMALL[10:200]
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
    file = place.reader()
    store.faults = ["503"] * 100
    with pytest.raises(
        StoreError, match=r"x\.bin could not be read: .*503.*tried 3 times.*--resume"
    ):
        place.read_part(file, 0, 10)
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
    """pyarrow completes a stream that is closed or forgotten with what it has got so far."""
    program = (
        "import pathlib, sys\n"
        "from biglp._files.uri import as_place\n"
        "class Interrupted(type(pathlib.Path())):\n"
        "    def open(self, mode):\n"
        "        return self\n"
        "    def __enter__(self):\n"
        "        self.pieces = [bytes(6 << 20), bytes(6 << 20)]\n"
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
    command = [sys.executable, "-W", "ignore", "-c", program, store.uri("x.bin"), __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "interrupted\n"
    assert done.stderr == ""
    # It was begun in parts; whether a part left before the end is up to pyarrow's own threads.
    assert any(request.endswith("?uploads") for request in store.asked)
    assert store.names() == []


def test_an_upload_that_arrives_short_is_sent_again(store, tmp_path, monkeypatch):
    local = tmp_path / "x"
    local.write_bytes(SMALL)
    place = as_place(store.uri("x"))
    put, times = type(place)._put, []

    def short(self, path):
        times.append(path)
        if len(times) == 1:
            raise stores.ShortAnswerError("the store holds 3 bytes of 256")
        put(self, path)

    monkeypatch.setattr(type(place), "_put", short)
    place.upload(local)
    assert len(times) == 2
    assert store.get("x") == SMALL


def test_the_endpoint(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    assert stores.s3_endpoint("region=eu-west-1") is None
    assert stores.s3_endpoint("endpoint_override=h:9000&scheme=http") == "http://h:9000"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other:1/")
    assert stores.s3_endpoint("") == "http://other:1"
    assert stores.s3_endpoint("endpoint_override=https://h") == "https://h"


def test_a_tag_is_an_md5_when_a_file_came_in_one_part():
    assert stores.Stamp(1, "0" * 32).md5 == "0" * 32
    assert stores.Stamp(1, "0" * 32 + "-2").md5 is None
