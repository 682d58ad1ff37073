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


@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("cut", [0, 1, len(BODY) // 2, len(BODY) - 1, len(BODY)])
def test_resumed_by_another_process(server, tmp_path, cut, tags):
    """What a killed process leaves: some bytes, and a note of what they are the beginning of."""
    server.tags = tags
    path = tmp_path / "x.gz"
    with pytest.raises(KeyboardInterrupt):
        download(f"{server.url}/x.gz", path, progress=StopsAt(1))
    with open(part_of(path), "wb") as part:
        part.write(BODY[:cut])
    server.asked.clear()
    download(f"{server.url}/x.gz", path)
    check_whole(path)
    whole = [] if cut == len(BODY) else [("/x.gz", f"bytes={cut}-" if cut else None)]
    assert server.asked == whole
    if 0 < cut < len(BODY):  # only if it is still the same version: by its tag, or by its date
        assert server.conditions[-1].endswith('"' if tags else "GMT")


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


def test_server_that_is_busy_and_does_not_say_the_length(server, tmp_path):
    server.lengths, server.statuses = False, [503, 429, 500]
    download(f"{server.url}/x.gz", tmp_path / "x.gz", sha256=SHA)
    check_whole(tmp_path / "x.gz")
    assert len(server.asked) == 4
    # Nobody can see that such an answer broke off, but the checksum and the file's own end do.
    for more, message in (({"sha256": SHA}, "its SHA-256 is"), ({}, r"is no \.gz file")):
        server.drops = [5000]
        with pytest.raises(DownloadError, match=message):
            download(f"{server.url}/x.gz", tmp_path / "y.gz", **more)
        assert not (tmp_path / "y.gz").exists()


@pytest.mark.parametrize("code", [403, 404])
def test_refusal_is_final(server, tmp_path, code):
    server.statuses = [code]
    with pytest.raises(DownloadError, match=f"the server answers {code}"):
        download(f"{server.url}/x.gz", tmp_path / "x.gz")
    assert len(server.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_gives_up_when_nothing_new_comes(server, tmp_path):
    """A server that sends no rest and always breaks off at the same byte never ends otherwise."""
    server.ranges = False
    server.drops = [3000] * 50
    with pytest.raises(DownloadError, match=r"ended after 3,000 of 20,011 bytes \(5 attempts\)"):
        download(f"{server.url}/x.gz", tmp_path / "x.gz")
    assert len(server.asked) == 6
    assert not (tmp_path / "x.gz").exists()


def test_wrong_checksum_is_refused_and_removed(server, tmp_path):
    path = tmp_path / "x.gz"
    with pytest.raises(DownloadError, match=f"its SHA-256 is {SHA} and should be {'0' * 64}"):
        download(f"{server.url}/x.gz", path, sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DownloadError, match="it has 20,011 bytes and should have 7"):
        download(f"{server.url}/x.gz", path, bounds=Bounds(7))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.csv.gz", "x.zip"])
def test_a_login_page_is_not_taken_for_the_file(server, tmp_path, name):
    """Neither the page nor its checksum is kept: the next download is not measured by it."""
    server.files[f"/{name}"] = b"<html><body>Please log in to the network</body></html>"
    message = r"it is no \.\w+ file .*begins with b'<html>.*login"
    with pytest.raises(DownloadError, match=message):
        download(f"{server.url}/{name}", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("bounds", [Bounds(most=9000), Bounds(size=9000)])
def test_a_file_that_does_not_end_is_stopped_and_removed(server, tmp_path, lengths, bounds):
    server.lengths = lengths
    message = r"(should have|at most) 9,000"
    with pytest.raises(DownloadError, match=message):
        download(f"{server.url}/x.gz", tmp_path / "x.gz", bounds=bounds)
    assert list(tmp_path.iterdir()) == []


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
