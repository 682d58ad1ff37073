"""What the machine gives: memory, and files that appear whole, with locks, on any system."""

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core import OutputError, ParameterError, memory, parse_memory, private_memory
from biglp._files import atomic_write, hold, local, remove_held
from cli_tools import run
from helpers import blobs
from windows_rules import keep_windows_rules

# --------------------------------------------------------------------------------------------------
# Amounts of memory: read from text, written for people, measured.


GB = 2**30


def test_amounts_of_memory():
    amounts = {"4GB": 4 * GB, "0.5 gib": GB // 2, "512 MiB": 512 * 2**20, "10k": 10 * 2**10}
    for given, expected in {**amounts, "123": 123, 1e6: 10**6, np.int64(77): 77}.items():
        assert parse_memory(given) == expected
    for bad in ("", "-4GB", "4 XB", "1.2.3GB", "GB", 0, True, None, np.nan, []):
        with pytest.raises(ParameterError, match=r"memory=.* is not an amount of memory; use 'a"):
            parse_memory(bad)
    free = memory.available_memory()
    assert free >= 2**26
    assert parse_memory("auto") == pytest.approx(free // 2, rel=0.5)
    texts = {0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KB", 3 * GB: "3 GB", 2**50: "1024 TB"}
    assert {amount: memory.format_bytes(amount) for amount in texts} == texts


MEASURED = """
import sys
import numpy as np
from biglp._core import private_memory
before = private_memory()
array = np.ones(2**23)
grown = private_memory() - before
array.tofile(sys.argv[1])
before = private_memory()
np.memmap(sys.argv[1], mode="r").sum()
print(grown, private_memory() - before)
"""


def test_private_memory_counts_arrays_and_leaves_out_file_pages(tmp_path):
    """In a process of its own: others give memory back at times of their own."""
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "rows")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    array, pages = map(int, done.stdout.split())
    assert array == pytest.approx(2**26, rel=0.1)
    assert pages < 2**24


def test_the_peak_is_seen_while_it_lasts_and_a_process_that_has_ended_uses_nothing():
    with memory.PeakMemory() as peak:
        before = peak.peak
        np.ones(2**24).sum()
    assert peak.peak - before > 2**26
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert private_memory(process.pid) == 0


# --------------------------------------------------------------------------------------------------
# What the C library keeps of freed memory, and what it hands back.


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"),
    reason="needs the GNU C library",
)


def test_what_was_freed_is_handed_back():
    pieces = [bytes(100_000) + bytes([i % 256]) for i in range(1500)]
    del pieces[:-1]  # the last one lies above the others, and keeps them from going by themselves
    before = private_memory()
    memory.give_back()
    assert before - private_memory() > 50 << 20
    assert len(pieces) == 1


# --------------------------------------------------------------------------------------------------
# Files that appear whole or not at all, and headers of .npy files.


def interrupted(file) -> None:
    file.write(b"second")
    raise KeyboardInterrupt


def test_atomic_write(tmp_path):
    path = tmp_path / "x.bin"
    with atomic_write(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as file:
        interrupted(file)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    with (
        pytest.raises(OutputError, match=r"none.x\.bin could not be written: No such file"),
        atomic_write(tmp_path / "none" / "x.bin"),
    ):
        pass
    mask = os.umask(0o027)
    try:
        with atomic_write(path) as file:
            file.write(b"third")
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640


# --------------------------------------------------------------------------------------------------
# Files by number on systems that lack what Linux has: macOS and Windows, pretended.


MISSING = {
    "linux": (),
    "macos": ("preadv", "posix_fadvise", "posix_fallocate", "sched_getaffinity"),
    "windows": (
        *("preadv", "pread", "pwrite", "posix_fadvise", "posix_fallocate"),
        *("sched_getaffinity", "getuid", "getloadavg", "sysconf", "O_CLOEXEC"),
    ),
}


@pytest.fixture(params=MISSING)
def system(request, monkeypatch):
    for name in MISSING[request.param]:
        monkeypatch.delattr(os, name, raising=False)
    if request.param == "windows":
        keep_windows_rules(monkeypatch)
    return request.param


def test_bytes_are_read_and_written_at_their_place(system, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    handle = local.open_handle(path, os.O_RDWR)
    assert local.write_at(handle, b"ab", 3) == 2
    found = bytearray(4)
    assert local.read_at(handle, memoryview(found), 2) == 4
    assert bytes(found) == b"2ab5"
    assert local.read_at(handle, memoryview(found), 8) == 2
    assert local.read_at(handle, memoryview(found), 10) == 0
    os.close(handle)
    local.sync_files(tmp_path)  # where that is possible
    local.sync_folder(tmp_path)


def test_a_run_from_file_to_file_gives_the_same_labels(system, tmp_path, monkeypatch):
    X, y, _ = blobs(n=300, features=3)
    names = {f"x{j}": X[:, j] for j in range(3)}
    pq.write_table(pa.table(names | {"y": y}), tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    small = ("--memory", "300MB", "--factor", "nystrom", "-k", "20")
    outcome = run("fit", "rows.parquet", "--label-column", "y", "-o", "out", *small)
    assert outcome.exit_code == 0, outcome.output
    labels = pq.read_table("out/labels.parquet")["label"].to_numpy()
    assert (labels == LABELS.setdefault("first", labels)).all()
    again = run("fit", "rows.parquet", "--label-column", "y", "-o", "out", *small, "--overwrite")
    assert again.exit_code == 0, again.output
    left = {path.name for path in tmp_path.rglob("*")} - {"rows.parquet", "out"}
    assert left == {"labels.parquet", "model.biglp", "report.html", "summary.json"}


LABELS: dict[str, np.ndarray] = {}


def abandoned(folder):
    left = folder / f"{local.TEMPORARY_PREFIX}old"
    left.mkdir()
    (left / local.IN_USE).touch()
    os.utime(left, (0, 0))
    return left


def test_folders_of_killed_runs_are_removed_and_a_folder_that_is_held_goes_with_its_lock(
    system, tmp_path
):
    left = abandoned(tmp_path)
    local.remove_abandoned(tmp_path)
    assert not left.exists()
    lock = tmp_path / "run" / "lock"
    held = hold(lock)
    (lock.parent / "step").write_bytes(b"0")
    assert hold(lock) is None
    remove_held(lock, held)
    assert not lock.parent.exists()


@pytest.mark.parametrize(("error", "answer"), [(None, True), (PermissionError(), False)])
def test_locks_of_windows(tmp_path, monkeypatch, error, answer):
    asked = []

    def locking(handle, mode, count):
        asked.append((mode, count))
        if error is not None:
            raise error

    made = SimpleNamespace(LK_NBLCK=2, locking=locking)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", made)
    with open(tmp_path / "lock", "wb") as file:
        assert local.lock_handle(file.fileno()) is answer
    assert asked == [(2, 1)]


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(handle, how):
        raise OSError(95, "Operation not supported")

    made = SimpleNamespace(LOCK_EX=2, LOCK_NB=4, flock=flock)
    monkeypatch.setitem(sys.modules, "fcntl", made)
    with open(tmp_path / "lock", "wb") as file:
        assert local.lock_handle(file.fileno()) is None
    left = abandoned(tmp_path)
    local.remove_abandoned(tmp_path)
    assert left.exists(), "nobody can say whether its owner is alive"
