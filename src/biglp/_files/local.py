"""Files that are written whole or not at all, and files that must not change while they are read.

A file is written under a temporary name beside its final one, forced to disk, and renamed. A run
that is killed at any moment therefore leaves nothing under the final name, or the whole file.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from biglp._core.errors import DISK_FULL, BadRowsError, BigLPError, OutputError
from biglp._core.memory import format_bytes
from biglp._files.uri import StorePath

# --------------------------------------------------------------------------------------------------
# Open files by number: what systems other than Linux spell differently or do not have.
#
# macOS has no ``preadv``, ``posix_fadvise`` and ``posix_fallocate``; Windows has none of these, no
# ``pread`` and ``pwrite`` either, locks files its own way, and changes line ends unless told not
# to.


_EXTRA = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_LOCKED = 2**31 - 2  # the last byte that Windows' 32-bit call can lock
_SEEKING = threading.Lock()
"""Held from seeking to reading, where the two are not one call and threads share the file."""


def open_handle(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
    """Open a file for bytes; processes that are started later do not get it."""
    return os.open(path, flags | _EXTRA, mode)


def read_at(handle: int, buffer: memoryview, position: int) -> int:
    """Read bytes from ``position`` on into ``buffer``; return how many, 0 at the end."""
    if hasattr(os, "preadv"):
        return os.preadv(handle, [buffer], position)
    if hasattr(os, "pread"):
        data = os.pread(handle, len(buffer), position)
    else:
        with _SEEKING:
            os.lseek(handle, position, os.SEEK_SET)
            data = os.read(handle, len(buffer))
    buffer[: len(data)] = data
    return len(data)


def write_at(handle: int, data: Any, position: int) -> int:
    """Write bytes from ``position`` on; return how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(handle, data, position)
    with _SEEKING:
        os.lseek(handle, position, os.SEEK_SET)
        return os.write(handle, data)


def lock_handle(handle: int) -> bool | None:
    """Lock a file for this process; False when another one holds it, None where locks are unknown.

    The system lets go of it when the process ends, whatever way it ends.
    """
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _lock_on_windows(handle: int) -> bool | None:
    """Lock a byte far behind the end: what is locked, no other handle can read."""
    try:
        import msvcrt

        with _SEEKING:
            os.lseek(handle, _LOCKED, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except ImportError:
        return None
    except OSError:
        return False
    return True


# --------------------------------------------------------------------------------------------------


PART = ".part"
"""Ending of a file that is still being written."""
COPIES = "copies"
"""Folder of the copies of files in stores."""

NPY_HEADER_BYTES = 128

RESERVE_BYTES = 256 << 20
"""Disk space that a conversion leaves to others."""


@dataclass(frozen=True)
class FileStamp:
    """Size and time of a file when it was first looked at; of a folder, those of all its files.

    On another process the time is that of the file found there: nodes may have a copy each.
    """

    path: str
    size: int
    mtime_ns: int
    elsewhere: bool = False

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileStamp:
        """Look at a file; explain when it is not there or may not be read."""
        if not os.path.exists(path):
            raise BadRowsError(
                f"there is no file {os.fspath(path)}, nor a folder of that name; check the path "
                f"(relative to {Path.cwd()})."
            )
        if not os.access(path, os.R_OK):
            raise BadRowsError(
                f"{os.fspath(path)} may not be read by this user; "
                "change its permissions (chmod u+r)."
            )
        return cls(os.fspath(path), *_size_and_time(path))

    def check(self) -> None:
        """Raise when the file is no longer the one that was looked at."""
        try:
            size, mtime_ns = _size_and_time(self.path)
        except OSError as error:
            if self.elsewhere:
                raise BadRowsError(
                    f"{self.path} cannot be seen from {socket.gethostname()} ({error.strerror}). "
                    "Every process must see the same files; copies of files in stores, and "
                    "converted rows, go to a shared folder with cache= (--cache)."
                ) from error
            raise BadRowsError(
                f"{self.path} was there when the work began and cannot be reached now "
                f"({error.strerror}). Bring it back and run again."
            ) from error
        if self.elsewhere and size != self.size:
            raise BadRowsError(
                f"{self.path} has {size:,} bytes on {socket.gethostname()} and "
                f"{self.size:,} where the work began. Every process must see the same file."
            )
        if (size, mtime_ns) != (self.size, self.mtime_ns):
            raise BadRowsError(
                f"{self.path} changed while it was being worked on: it had {self.size:,} bytes "
                f"when the work began and has {size:,} now, or was written again. "
                "Let no other program write to it, and run again."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _stamp_elsewhere, (os.path.abspath(self.path), self.size, self.mtime_ns)


def _stamp_elsewhere(path: str, size: int, mtime_ns: int) -> FileStamp:
    with suppress(OSError):  # what is not there is found out when it is read
        mtime_ns = _size_and_time(path)[1]
    return FileStamp(path, size, mtime_ns, elsewhere=True)


def _size_and_time(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Bytes of a file and when it was written; of a folder, all its bytes and the latest time."""
    facts = os.stat(path)
    if not stat.S_ISDIR(facts.st_mode):
        return facts.st_size, facts.st_mtime_ns
    size, latest = 0, facts.st_mtime_ns
    for folder, _, names in os.walk(path):
        for name in names:
            facts = os.stat(os.path.join(folder, name))
            size, latest = size + facts.st_size, max(latest, facts.st_mtime_ns)
    return size, latest


@contextmanager
def atomic_write(path: str | os.PathLike[str] | StorePath) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all."""
    if isinstance(path, StorePath):
        with tempfile.TemporaryDirectory(prefix="biglp-upload-") as folder:
            local = Path(folder) / path.name
            with explained_writing(local), open(local, "xb") as file:
                yield file
            path.upload(local)
        return
    final = Path(path)
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(4)}{PART}")
    try:
        with explained_writing(final):
            # Not tempfile.mkstemp: it makes files that only their owner may read.
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, final)
            sync_folder(final.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def explained_writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the system's errors while writing ``path`` into one that says what to do."""
    try:
        yield
    except BigLPError:
        raise
    except OSError as error:
        name = os.fspath(path)
        if error.errno in DISK_FULL:
            raise OutputError(
                f"{name} could not be written: {error.strerror} "
                f"({format_bytes(free_space(Path(name).parent))} free there). "
                "Nothing was left under that name. Make room, or choose a folder on another disk."
            ) from error
        raise OutputError(
            f"{name} could not be written: {error.strerror or error}. "
            "Choose a folder that exists and that you may write to."
        ) from error


def lock_file(path: Path) -> IO[bytes] | None:
    """Open a file that one process may hold at a time; None when another one holds it.

    The system lets go of it when the process ends, whatever way it ends.
    """
    file = open(path, "ab")  # noqa: SIM115  open as long as it is held
    if lock_handle(file.fileno()) is not False:
        return file
    file.close()
    return None


def rename_into_place(temporary: Path, final: Path) -> None:
    """Give a finished and synced file its final name, and force that name to disk."""
    with explained_writing(final):
        os.replace(temporary, final)
        sync_folder(final.parent)


def sync_folder(folder: Path) -> None:
    """Force a folder's list of names to disk, so that a rename outlives a power cut."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders, and keeps its list of names by itself
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_files(folder: Path) -> None:
    """Force every file of a folder to disk."""
    for path in folder.iterdir():
        with open(path, "r+b") as file:  # Windows forces only what may be written
            os.fsync(file.fileno())


def free_space(folder: Path) -> int:
    """Bytes that may still be written below ``folder`` (which need not exist yet)."""
    for place in (folder.absolute(), *folder.absolute().parents):
        if place.exists():
            return shutil.disk_usage(place).free
    return 0


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a ``.npy`` file, always 128 bytes, so that it can be written last."""
    body = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    magic = b"\x93NUMPY\x01\x00"
    room = NPY_HEADER_BYTES - len(magic) - 2
    if len(body) >= room:
        raise ValueError(f"a header of {len(body)} bytes does not fit: {body!r}")
    return magic + room.to_bytes(2, "little") + body.ljust(room - 1) + b"\n"


# --------------------------------------------------------------------------------------------------
# Folders that one process at a time works in: a lock file inside says that somebody does.


_TRIES = 100
"""Attempts while others remove the folder; more would mean that it cannot be made at all."""


def hold(path: Path) -> IO[bytes] | None:
    """Hold a lock file, making its folder where that is missing; None when another process does.

    Whoever held it may have removed it between its opening here and its locking: a lock on a file
    that has no name any more protects nothing, so it is opened again.
    """
    for attempt in range(_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = lock_file(path)
        except FileNotFoundError:  # the folder was removed in between
            if attempt == _TRIES - 1:
                raise
            continue
        if file is None:
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()
    return None


def let_go(path: Path, file: IO[bytes]) -> None:
    """Remove a lock file that this process holds."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # Windows removes no file that is open
        file.close()
        path.unlink(missing_ok=True)
    file.close()


def remove_held(lock: Path, file: IO[bytes], first: str = "") -> None:
    """Remove the folder of a lock file that this process holds, and let go of it.

    The lock goes last: until then no other process can begin to work there.
    """
    folder = lock.parent
    with suppress(OSError):
        if first:
            (folder / first).unlink(missing_ok=True)
        for path in folder.iterdir():
            if path == lock:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        let_go(lock, file)
        folder.rmdir()  # not when another process has begun meanwhile


# --------------------------------------------------------------------------------------------------
# Temporary folders, removed with what they were made for, and those that killed runs left.


logger = logging.getLogger("biglp")

TEMPORARY_PREFIX = "biglp-"
IN_USE = "in-use"
YOUNG_SECONDS = 60.0


def temporary_folder(owner: object) -> Path:
    """Make a folder that is removed when its owner is gone, or when Python ends."""
    remove_abandoned(Path(tempfile.gettempdir()))
    with explained_writing(tempfile.gettempdir()):
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX))
        lock = open_handle(folder / IN_USE, os.O_RDWR | os.O_CREAT)
        lock_handle(lock)  # where there are no locks, the folder is never taken for abandoned
    weakref.finalize(owner, _remove_folder, folder, lock, os.getpid())
    return folder


def remove_abandoned(place: Path) -> None:
    """Remove temporary folders of processes that were killed before they could do it."""
    for folder in abandoned(place):
        logger.info("removing %s, left behind by a run that was killed", folder)
        shutil.rmtree(folder, ignore_errors=True)


def abandoned(place: Path) -> Iterator[Path]:
    """Temporary folders of processes that were killed before they could remove them.

    A living process holds a lock on a file in its folder; the system releases it however the
    process ends. Young folders are left alone: theirs may not be locked yet.
    """
    for folder in place.glob(f"{TEMPORARY_PREFIX}*"):
        with suppress(OSError):
            facts = folder.stat()
            owner = os.getuid() if hasattr(os, "getuid") else facts.st_uid  # Windows has none
            if facts.st_uid != owner or time.time() - facts.st_mtime < YOUNG_SECONDS:
                continue
            handle = open_handle(folder / IN_USE, os.O_RDWR)
            left = lock_handle(handle)
            os.close(handle)  # Windows removes no file that is open
            if left:
                yield folder


def _remove_folder(folder: Path, lock: int, owner: int) -> None:
    with suppress(OSError):
        os.close(lock)  # before the folder goes: Windows removes no file that is open
    if os.getpid() == owner:  # a forked child must not take the folder from its parent
        shutil.rmtree(folder, ignore_errors=True)
