"""Fetching data sets from a real server that breaks off, changes and refuses."""

import gzip
import hashlib
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paper.datasets.download as transfer
from biglp._core import DownloadError, Progress, Task
from dataset_server import serving
from paper import datasets
from paper.datasets.download import Bounds, download
from paper.datasets.registry import part_of, read_record
from published import publish

BODY = gzip.compress(np.random.default_rng(0).bytes(19_988), compresslevel=0, mtime=0)
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(transfer, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server():
    with serving() as made:
        made.files["/x.gz"] = BODY
        yield made


class StopsAt(Progress):
    def __init__(self, after: int) -> None:
        self.left = after

    def start_bytes(self, label: str, n_bytes: int) -> Task:
        owner = self

        class Stopping(Task):
            def advance(self, rows: int) -> None:
                owner.left -= rows
                if owner.left <= 0:
                    raise KeyboardInterrupt

        return Stopping(label, n_bytes)


def check_whole(path: Path) -> None:
    assert path.read_bytes() == BODY
    assert read_record(path)["sha256"] == SHA
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, f"{path.name}.json"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cuts=st.lists(
        st.tuples(st.sampled_from(["drop", "reset", "stop"]), st.integers(0, len(BODY) - 1)),
        max_size=4,
    ),
    piece=st.sampled_from([1000, 4096, 1 << 18]),
    ranges=st.booleans(),
    tags=st.booleans(),
    known=st.booleans(),
)
def test_broken_off_at_any_byte(server, cuts, piece, ranges, tags, known):
    """A fetch interrupted at any byte and resumed gives a file with the right checksum."""
    server.ranges, server.tags, server.drops, server.asked = ranges, tags, [], []
    server.sent = 0
    folder = Path(tempfile.mkdtemp())
    path = folder / "x.gz"
    old_piece, transfer.PIECE_BYTES = transfer.PIECE_BYTES, piece
    try:
        for how, after in cuts:
            if how == "stop" and not path.exists():
                with suppress(KeyboardInterrupt):  # nothing to stop when all bytes are there
                    download(f"{server.url}/x.gz", path, progress=StopsAt(after))
                    check_whole(path)
            else:
                server.drops.append(-after if how == "reset" else after)
        if not path.exists():
            download(f"{server.url}/x.gz", path, sha256=SHA if known else None)
        check_whole(path)
        if ranges and all(how == "drop" for how, _ in cuts):
            assert server.sent == len(BODY)  # not a byte was sent twice
    finally:
        transfer.PIECE_BYTES = old_piece
        shutil.rmtree(folder)


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("longer", [True, False])
def test_file_changed_in_between(server, tmp_path, monkeypatch, tags, longer, heeds):
    """Two versions are never glued together, whether or not the server helps to avoid it."""
    monkeypatch.setattr(transfer, "PIECE_BYTES", 1000)
    server.tags, server.heeds_if_range = tags, heeds
    path = tmp_path / "x.gz"
    server.files["/x.gz"] = b"old" * (9000 if longer else 2000)
    with pytest.raises(KeyboardInterrupt):
        download(f"{server.url}/x.gz", path, progress=StopsAt(1))
    assert part_of(path).stat().st_size > 0
    server.files["/x.gz"] = BODY
    download(f"{server.url}/x.gz", path)
    check_whole(path)


@pytest.mark.parametrize(
    ("served", "asked", "message"),
    [
        ({"files": {"/x.gz": b"<html>Please log in"}}, {}, r"it is no \.gz file .*b'<html>"),
        ({}, {"sha256": "0" * 64}, f"its SHA-256 is {SHA} and should be 0000"),
        ({}, {"bounds": Bounds(7)}, "it has 20,011 bytes and should have 7"),
        ({"lengths": False}, {"bounds": Bounds(most=9000)}, "at most 9,000"),
        ({"lengths": False, "drops": [5000]}, {"sha256": SHA}, "its SHA-256 is"),
        ({"statuses": [503, 429, 404]}, {}, "the server answers 404"),
        ({"ranges": False, "drops": [3000] * 50}, {}, r"ended after 3,000 of 20,011 .*\(5 att"),
    ],
)
def test_what_is_wrong_is_told_and_not_kept(server, tmp_path, served, asked, message):
    for name, value in served.items():
        setattr(server, name, value)
    with pytest.raises(DownloadError, match=message):
        download(f"{server.url}/x.gz", tmp_path / "x.gz", **asked)
    assert not (tmp_path / "x.gz").exists()


def test_two_at_once(site):
    """One fetches, the other waits and finds it done."""
    rows, _ = publish(site, "susy")
    threads = [threading.Thread(target=datasets.fetch, args=("susy",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.asked) == 1
    np.testing.assert_array_equal(datasets.load("susy").rows, rows)
