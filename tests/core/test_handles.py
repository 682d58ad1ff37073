"""Files by number on systems that lack what Linux has: macOS and Windows, pretended."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._files import local as handles
from biglp._files import local as temporary
from biglp._files.local import (
    hold,
    lock_file,
    lock_handle,
    open_handle,
    read_at,
    remove_held,
    sync_files,
    sync_folder,
    write_at,
)
from cli_tools import run
from helpers import blobs
from windows_rules import keep_windows_rules

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
    """What another system's ``os`` has, and on Windows its rules for open files."""
    for name in MISSING[request.param]:
        monkeypatch.delattr(os, name, raising=False)
    if request.param == "windows":
        keep_windows_rules(monkeypatch)
    return request.param


def test_bytes_are_read_and_written_at_their_place(system, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    handle = open_handle(path, os.O_RDWR)
    assert write_at(handle, b"ab", 3) == 2
    found = bytearray(4)
    assert read_at(handle, memoryview(found), 2) == 4
    assert bytes(found) == b"2ab5"
    assert read_at(handle, memoryview(found), 8) == 2
    assert read_at(handle, memoryview(found), 10) == 0
    os.close(handle)


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
"""What the first of the systems found."""


def test_folders_of_killed_runs_are_removed_and_those_of_others_are_not(system, tmp_path):
    left = tmp_path / f"{temporary.TEMPORARY_PREFIX}old"
    left.mkdir()
    (left / temporary.IN_USE).touch()
    os.utime(left, (0, 0))
    temporary.remove_abandoned(tmp_path)
    assert not left.exists()


def test_names_and_bytes_are_forced_to_disk_where_that_is_possible(system, tmp_path):
    (tmp_path / "file").write_bytes(b"0")
    sync_files(tmp_path)
    sync_folder(tmp_path)


def test_a_folder_that_is_held_goes_with_its_lock(system, tmp_path):
    lock = tmp_path / "run" / "lock"
    held = hold(lock)
    (lock.parent / "step").write_bytes(b"0")
    assert hold(lock) is None
    remove_held(lock, held)
    assert not lock.parent.exists()


class TestLocks:
    def test_one_holder_at_a_time(self, tmp_path):
        first = lock_file(tmp_path / "lock")
        assert first is not None
        assert lock_file(tmp_path / "lock") is None
        first.close()
        with lock_file(tmp_path / "lock") as again:
            assert again is not None

    @pytest.mark.parametrize(("error", "answer"), [(None, True), (PermissionError(), False)])
    def test_windows(self, tmp_path, monkeypatch, error, answer):
        asked = []

        def locking(handle, mode, count):
            asked.append((mode, count))
            if error is not None:
                raise error

        made = SimpleNamespace(LK_NBLCK=2, locking=locking)
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", made)
        with open(tmp_path / "lock", "wb") as file:
            assert lock_handle(file.fileno()) is answer
        assert asked == [(2, 1)]

    def test_a_file_system_without_locks(self, tmp_path, monkeypatch):
        def flock(handle, how):
            raise OSError(95, "Operation not supported")

        monkeypatch.setitem(
            sys.modules, "fcntl", SimpleNamespace(LOCK_EX=2, LOCK_NB=4, flock=flock)
        )
        with open(tmp_path / "lock", "wb") as file:
            assert handles.lock_handle(file.fileno()) is None
        left = tmp_path / f"{temporary.TEMPORARY_PREFIX}old"
        left.mkdir()
        (left / temporary.IN_USE).touch()
        os.utime(left, (0, 0))
        temporary.remove_abandoned(tmp_path)
        assert left.exists(), "nobody can say whether its owner is alive"
