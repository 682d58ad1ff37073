"""Downloads (download, transfer, parts) against a real server that breaks off, changes, refuses."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paper.datasets.download as transfer
from biglp._core.errors import DownloadError, OutputError
from biglp._core.progress import Progress, Task
from dataset_server import Site, closed_port, serving
from paper.datasets.download import Bounds, download
from paper.datasets.registry import digest, part_of, read_record, record_of

BODY = gzip.compress(np.random.default_rng(0).bytes(19_988), compresslevel=0, mtime=0)
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(transfer, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def site():
    with serving() as made:
        made.files["/x.gz"] = BODY
        yield made


class StopsAt(Progress):
    """Somebody presses Ctrl-C when so many bytes have arrived."""

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


def test_whole_file(site, tmp_path):
    record = download(f"{site.url}/x.gz", tmp_path / "x.gz", bounds=Bounds(len(BODY)), sha256=SHA)
    assert record == {"url": f"{site.url}/x.gz", "size": len(BODY), "sha256": SHA}
    check_whole(tmp_path / "x.gz")
    assert site.asked == [("/x.gz", None)]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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
def test_broken_off_at_any_byte(site, cuts, piece, ranges, tags, known):
    """A fetch interrupted at any byte and resumed gives a file with the right checksum."""
    site.ranges, site.tags, site.drops, site.asked, site.sent = ranges, tags, [], [], 0
    folder = Path(tempfile.mkdtemp())
    path = folder / "x.gz"
    old_piece, transfer.PIECE_BYTES = transfer.PIECE_BYTES, piece
    try:
        for how, after in cuts:
            if how == "stop" and not path.exists():
                with suppress(KeyboardInterrupt):  # nothing to stop when all bytes are there
                    download(f"{site.url}/x.gz", path, progress=StopsAt(after))
                    check_whole(path)
            else:
                site.drops.append(-after if how == "reset" else after)
        if not path.exists():
            download(f"{site.url}/x.gz", path, sha256=SHA if known else None)
        check_whole(path)
        if ranges and all(how == "drop" for how, _ in cuts):
            assert site.sent == len(BODY)  # not a byte was sent twice
    finally:
        transfer.PIECE_BYTES = old_piece
        shutil.rmtree(folder)


@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("cut", [0, 1, len(BODY) // 2, len(BODY) - 1, len(BODY)])
def test_resumed_by_another_process(site, tmp_path, cut, tags):
    """What a killed process leaves: some bytes, and a note of what they are the beginning of."""
    site.tags = tags
    path = tmp_path / "x.gz"
    with pytest.raises(KeyboardInterrupt):
        download(f"{site.url}/x.gz", path, progress=StopsAt(1))
    with open(part_of(path), "wb") as part:
        part.write(BODY[:cut])
    site.asked.clear()
    download(f"{site.url}/x.gz", path)
    check_whole(path)
    whole = [] if cut == len(BODY) else [("/x.gz", f"bytes={cut}-" if cut else None)]
    assert site.asked == whole
    if 0 < cut < len(BODY):  # only if it is still the same version: by its tag, or by its date
        assert site.conditions[-1].endswith('"' if tags else "GMT")


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("longer", [True, False])
def test_file_changed_in_between(site, tmp_path, monkeypatch, tags, longer, heeds):
    """Two versions are never glued together, whether or not the server helps to avoid it."""
    monkeypatch.setattr(transfer, "PIECE_BYTES", 1000)
    site.tags, site.heeds_if_range = tags, heeds
    path = tmp_path / "x.gz"
    site.files["/x.gz"] = b"old" * (9000 if longer else 2000)
    with pytest.raises(KeyboardInterrupt):
        download(f"{site.url}/x.gz", path, progress=StopsAt(1))
    assert part_of(path).stat().st_size > 0
    site.files["/x.gz"] = BODY
    download(f"{site.url}/x.gz", path)
    check_whole(path)


def test_without_a_version_the_part_is_begun_again(site, tmp_path):
    site.tags = site.dates = False
    site.drops = [7000]
    download(f"{site.url}/x.gz", tmp_path / "x.gz")
    check_whole(tmp_path / "x.gz")
    assert [asked for _, asked in site.asked] == [None, None]


def test_part_of_unknown_origin_is_not_trusted(site, tmp_path):
    part_of(tmp_path / "x.gz").write_bytes(b"something else")
    download(f"{site.url}/x.gz", tmp_path / "x.gz")
    check_whole(tmp_path / "x.gz")


def test_server_that_does_not_say_the_length(site, tmp_path):
    site.lengths = False
    download(f"{site.url}/x.gz", tmp_path / "x.gz", sha256=SHA)
    check_whole(tmp_path / "x.gz")
    # Nobody can see that such an answer broke off, but the checksum does.
    site.drops = [5000]
    with pytest.raises(DownloadError, match="its SHA-256 is"):
        download(f"{site.url}/x.gz", tmp_path / "y.gz", sha256=SHA)
    assert not (tmp_path / "y.gz").exists()


def test_busy_server_is_asked_again(site, tmp_path):
    site.statuses = [503, 429, 500]
    download(f"{site.url}/x.gz", tmp_path / "x.gz")
    check_whole(tmp_path / "x.gz")
    assert len(site.asked) == 4


@pytest.mark.parametrize("code", [403, 404])
def test_refusal_is_final(site, tmp_path, code):
    site.statuses = [code]
    with pytest.raises(DownloadError, match=f"the server answers {code}"):
        download(f"{site.url}/x.gz", tmp_path / "x.gz")
    assert len(site.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_gives_up_when_nothing_new_comes(site, tmp_path):
    """A server that sends no rest and always breaks off at the same byte never ends otherwise."""
    site.ranges = False
    site.drops = [3000] * 50
    with pytest.raises(DownloadError, match=r"ended after 3,000 of 20,011 bytes \(5 attempts\)"):
        download(f"{site.url}/x.gz", tmp_path / "x.gz")
    assert len(site.asked) == 6
    assert not (tmp_path / "x.gz").exists()


def test_no_network(tmp_path):
    with pytest.raises(DownloadError, match=r"refused.*Check the network and run the same command"):
        download(f"http://127.0.0.1:{closed_port()}/x.gz", tmp_path / "x.gz")
    assert list(tmp_path.iterdir()) == []


def test_wrong_checksum_is_refused_and_removed(site, tmp_path):
    path = tmp_path / "x.gz"
    with pytest.raises(DownloadError, match=f"its SHA-256 is {SHA} and should be {'0' * 64}"):
        download(f"{site.url}/x.gz", path, sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DownloadError, match="it has 20,011 bytes and should have 7"):
        download(f"{site.url}/x.gz", path, bounds=Bounds(7))
    assert list(tmp_path.iterdir()) == []


def test_first_download_fixes_the_checksum(site, tmp_path):
    path = tmp_path / "x.gz"
    download(f"{site.url}/x.gz", path)
    path.unlink()
    site.files["/x.gz"] = gzip.compress(b"another file")
    with pytest.raises(DownloadError, match=r"an earlier download found.*remove .*x\.gz\.json"):
        download(f"{site.url}/x.gz", path)
    assert [file.name for file in tmp_path.iterdir()] == ["x.gz.json"]
    record_of(path).unlink()
    download(f"{site.url}/x.gz", path)
    assert digest(path) != SHA


def test_no_room(site, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "free_space", lambda folder: 70 << 20)
    download(f"{site.url}/x.gz", tmp_path / "x.gz")
    with pytest.raises(OutputError, match=r"needed in .* and 70 MB are free.*BIGLP_CACHE"):
        download(f"{site.url}/x.gz", tmp_path / "y.gz", bounds=Bounds(room_for=10 << 20))
    assert not (tmp_path / "y.gz").exists()


@pytest.mark.parametrize("name", ["x.csv.gz", "x.bz2", "x.zip", "x.xz"])
def test_a_login_page_is_not_taken_for_the_file(site, tmp_path, name):
    """Neither the page nor its checksum is kept: the next download is not measured by it."""
    site.files[f"/{name}"] = b"<html><body>Please log in to the network</body></html>"
    message = r"it is no \.\w+ file .*begins with b'<html>.*login"
    with pytest.raises(DownloadError, match=message):
        download(f"{site.url}/{name}", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_unknown_length_that_ends_too_early(site, tmp_path):
    site.lengths, site.files["/x.gz"] = False, BODY[:-3000]
    with pytest.raises(DownloadError, match=r"it is no \.gz file \(Compressed file ended"):
        download(f"{site.url}/x.gz", tmp_path / "x.gz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("bounds", [Bounds(most=9000), Bounds(size=9000)])
def test_a_file_that_does_not_end_is_stopped_and_removed(site, tmp_path, lengths, bounds):
    site.lengths = lengths
    message = r"(should have|at most) 9,000"
    with pytest.raises(DownloadError, match=message):
        download(f"{site.url}/x.gz", tmp_path / "x.gz", bounds=bounds)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_unknown_length_leaves_room_on_the_disk(site, tmp_path, monkeypatch):
    site.lengths = False
    monkeypatch.setattr(transfer, "ROOM_BYTES", 5000)
    monkeypatch.setattr(transfer, "PIECE_BYTES", 1000)
    monkeypatch.setattr(transfer, "free_space", lambda folder: transfer.RESERVE_BYTES - 1)
    with pytest.raises(OutputError, match=r"does not say how long the file is\. Make room"):
        download(f"{site.url}/x.gz", tmp_path / "x.gz")
    assert list(tmp_path.iterdir()) == []


def test_site_breaks_off_as_told():
    """The tests above would be worth nothing if the server were well behaved after all."""
    import urllib.request

    with serving() as site:
        assert isinstance(site, Site)
        site.files["/x"] = BODY
        site.drops = [10]
        with urllib.request.urlopen(f"{site.url}/x") as answer:
            assert len(answer.read1(1 << 20)) == 10
