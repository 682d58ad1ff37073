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


def test_a_tag_is_an_md5_when_a_file_came_in_one_part():
    assert stores.Stamp(1, "0" * 32).md5 == "0" * 32
    assert stores.Stamp(1, "0" * 32 + "-2").md5 is None
