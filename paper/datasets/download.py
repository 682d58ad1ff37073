"""Downloads that go on where they broke off, are checked, and appear whole or not at all.

Libraries were looked at in their current versions: pooch 1.9 and parfive 2.3 begin a broken
download again at its first byte, and pypdl 1.5 asks for the rest without the condition that the
file is still the same (If-Range), and only of servers that send an ETag. Our files have up to
several gigabytes and no published checksum, so what is in ``transfer.py`` stays our own.
"""

from __future__ import annotations

import bz2
import gzip
import http.client
import lzma
import os
import re
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biglp._core.errors import DownloadError, OutputError
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress, Task
from biglp._files.local import explained_writing, free_space, rename_into_place
from biglp._version import __version__
from paper.datasets.registry import (
    Beginning,
    digest,
    length,
    note_of,
    part_of,
    read_record,
    record_of,
    whole_of,
    write_record,
)

# --------------------------------------------------------------------------------------------------
# Bringing a file here over an unreliable network: attempts that go on where the last one ended.
#
# To go on, the rest is asked for on the condition that the version is still the one whose beginning
# is here (If-Range), so that the bytes of two versions are never joined. A server that cannot send
# a rest sends the whole file: then the part is begun again.


TRIES = 5
"""Attempts in a row that bring nothing new before a download is given up."""
FIRST_PAUSE_SECONDS = 0.5
TIMEOUT_SECONDS = 60.0
PIECE_BYTES = 1 << 18
RESERVE_BYTES = 64 << 20
"""Disk space that a download leaves to others."""
ROOM_BYTES = 16 << 20
"""Bytes of a file of unknown length after which the free disk space is looked at again."""
_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be different a moment later."""


@dataclass(frozen=True)
class Bounds:
    """How large a file is or may be.

    Attributes
    ----------
    size : int or None
        Length that the file must have, where it is known.
    most : int or None
        Bytes after which it cannot be the file that is wanted.
    room_for : int
        Bytes that must be free besides those of the file.
    """

    size: int | None = None
    most: int | None = None
    room_for: int = 0


class GoneError(DownloadError):
    """The server says that there is no such file."""


class _BrokenOffError(Exception):
    """The connection ended too early, or was never made; worth another attempt."""


@dataclass(frozen=True)
class Transfer:
    """One file on its way.

    Parameters
    ----------
    url : str
    part : Path
        Where the bytes go.
    bounds : Bounds
    progress : Progress
    """

    url: str
    part: Path
    bounds: Bounds
    progress: Progress

    def run(self) -> None:
        """Fill the part until it is whole; only attempts that bring nothing new are counted."""
        best, failures = length(self.part), 0
        while True:
            try:
                self._attempt()
                return
            except _BrokenOffError as error:
                reached = length(self.part)
                failures = 0 if reached > best else failures + 1
                best = max(best, reached)
                if failures >= TRIES:
                    kept = f" {format_bytes(reached)} are kept, to go on from." if reached else ""
                    raise DownloadError(
                        f"{self.url} could not be fetched: {error} ({TRIES} attempts).{kept} "
                        "Check the network and run the same command again, or name a mirror in "
                        "BIGLP_MIRROR."
                    ) from error
                self.progress.say(f"{self.url}: {error}; trying again")
                if failures:
                    time.sleep(FIRST_PAUSE_SECONDS * 2 ** (failures - 1))

    def _attempt(self) -> None:
        have, begun = length(self.part), Beginning.of(self.part, self.url)
        if have and begun is not None and have == begun.total:
            return  # broke off between the last byte and the check
        with self._ask(have, begun) as answer:
            offset, total = _place(answer)
            found = Beginning(self.url, total, _version(answer))
            self._check(offset, have, begun, found)
            with explained_writing(self.part):
                # Emptied before the note changes: the note must never describe other bytes.
                with open(self.part, "ab") as file:
                    file.truncate(offset)
                found.write(self.part)
            name = whole_of(self.part).name
            task = self.progress.start_bytes(f"fetching {name}", total or 1)
            task.advance(offset)
            self._append(answer, task, total)
        done = length(self.part)
        if total is not None and done < total:
            raise _BrokenOffError(f"the connection ended after {done:,} of {total:,} bytes")
        task.finish()

    def _ask(self, have: int, begun: Beginning | None) -> Any:
        """Ask for the file, or for the rest of it where its version is known."""
        headers = {"User-Agent": f"biglp/{__version__}", "Accept-Encoding": "identity"}
        # Without a version nothing says what the part is the beginning of: ask for the whole file.
        if have and begun is not None and begun.version is not None:
            headers |= {"Range": f"bytes={have}-", "If-Range": begun.version}
        request = urllib.request.Request(self.url, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            error.close()
            self._refused(error)
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenOffError(_reason(error)) from error

    def _refused(self, error: urllib.error.HTTPError) -> None:
        """Say what an error code of the server means: try again, or give up."""
        says = f"the server answers {error.code} {error.reason}"
        if error.code == 416:  # the part is longer than the file: not its beginning
            self.part.unlink(missing_ok=True)
            raise _BrokenOffError("the file has become shorter") from error
        if error.code in _TEMPORARY:
            raise _BrokenOffError(says) from error
        kind = GoneError if error.code in (404, 410) else DownloadError
        raise kind(
            f"{self.url} could not be fetched: {says}. The address may have changed; name a mirror "
            f"in BIGLP_MIRROR, or put the file in its place by hand: {whole_of(self.part)}."
        ) from error

    def _check(self, offset: int, have: int, begun: Beginning | None, found: Beginning) -> None:
        """Refuse an answer that does not continue the part, or is too large for the disk."""
        if offset not in (0, have):
            raise _BrokenOffError(f"the server sends bytes from {offset:,}, not from {have:,}")
        if offset and begun is not None and found != begun:
            self.part.unlink()  # the server did not respect the condition
            raise _BrokenOffError("the file has changed since its first part was fetched")
        if found.total is None:
            return
        size = self.bounds.size
        if size is not None and found.total != size:
            raise DownloadError(
                f"{self.url} is not the file that was expected: it has {found.total:,} bytes and "
                f"should have {size:,}. Nothing was fetched; the server's copy is damaged or "
                "changed."
            )
        self._check_length(found.total)
        needed, free = found.total - offset + self.bounds.room_for, free_space(self.part.parent)
        if needed + RESERVE_BYTES > free:
            raise OutputError(
                f"{self.url} cannot be fetched: {format_bytes(needed)} are needed in "
                f"{self.part.parent}, besides {format_bytes(RESERVE_BYTES)} that are left to other "
                f"programs, and {format_bytes(free)} are free. Make room, or name a folder on "
                "another disk in BIGLP_CACHE."
            )

    def _check_length(self, found: int, begun: str = "has") -> None:
        """Refuse more bytes than the file can have."""
        known = [bound for bound in (self.bounds.size, self.bounds.most) if bound is not None]
        if known and found > min(known):
            self.forget()
            raise DownloadError(
                f"{self.url} is not the file that was expected: it {begun} {found:,} bytes, where "
                f"at most {min(known):,} are possible. What was fetched has been removed. Check "
                "the address, or whether the network sends other files in its place."
            )

    def forget(self) -> None:
        """Remove what has arrived."""
        self.part.unlink(missing_ok=True)
        note_of(self.part).unlink(missing_ok=True)

    def _check_room(self) -> None:
        """Stop before a file of unknown length has filled the disk."""
        free = free_space(self.part.parent)
        if free < RESERVE_BYTES:
            arrived = length(self.part)
            self.forget()
            raise OutputError(
                f"{self.url} could not be fetched: after {format_bytes(arrived)}, which have been "
                f"removed, {format_bytes(free)} are free in {self.part.parent}, and "
                f"{format_bytes(RESERVE_BYTES)} are left to other programs. The server does not "
                "say how long the file is. Make room, or name a folder on another disk in "
                "BIGLP_CACHE."
            )

    def _append(self, answer: Any, task: Task, total: int | None) -> None:
        """Write what arrives; what has arrived stays, whatever happens next."""
        done = length(self.part)
        checked = done
        with explained_writing(self.part), open(self.part, "ab") as file:
            while True:
                try:
                    piece = answer.read1(PIECE_BYTES)
                except (OSError, http.client.HTTPException) as error:
                    raise _BrokenOffError(_reason(error)) from error
                if not piece:
                    return
                file.write(piece)
                task.advance(len(piece))
                done += len(piece)
                self._check_length(done, "goes on after")
                if total is None and done - checked > ROOM_BYTES:
                    checked = done
                    self._check_room()


def _place(answer: Any) -> tuple[int, int | None]:
    """First byte of an answer and length of the whole file, None where the server does not say."""
    if answer.status == 206:
        found = re.match(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if found is None:
            raise _BrokenOffError("the server sends a part and does not say which")
        return int(found[1]), None if found[2] == "*" else int(found[2])
    size = answer.headers.get("Content-Length")
    return 0, int(size) if size is not None and size.isdigit() else None


def _version(answer: Any) -> str | None:
    """The server's mark of a version; a weak one does not promise the same bytes."""
    tag = answer.headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return str(tag)
    return answer.headers.get("Last-Modified")


def _reason(error: BaseException) -> str:
    """Say what the network did, in the system's words."""
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause or type(cause).__name__)


# --------------------------------------------------------------------------------------------------
# Whether a file that was fetched is packed as its name says: a login page is not.


BEGINNING = 1 << 16
_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_BROKEN: tuple[Any, ...] = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def packing_problem(path: Path, name: str, *, whole: bool) -> str | None:
    """Say in what way a file is not packed as its name says; None when it is.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Name whose ending says how it is packed; others cannot be judged.
    whole : bool
        Whether to unpack all of it, which shows that nothing is missing, or its beginning only.
    """
    ending = Path(name).suffix.lower()
    try:
        if ending == ".zip":
            zipfile.ZipFile(path).close()
        elif ending in _OPENERS:
            with _OPENERS[ending](path) as file:
                while file.read(BEGINNING) and whole:
                    pass
    except _BROKEN as error:
        with open(path, "rb") as plain:
            begins = plain.read(60)
        return f"it is no {ending} file ({error}), and begins with {begins!r}"
    return None


# --------------------------------------------------------------------------------------------------


def download(
    url: str,
    path: Path,
    *,
    bounds: Bounds | None = None,
    sha256: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fetch a file, going on where an earlier attempt broke off.

    Parameters
    ----------
    url : str
    path : Path
        Final name; it appears when the file is whole and checked.
    bounds : Bounds, optional
        How large the file is or may be.
    sha256 : str, optional
        What it must have. Without it, the record of an earlier download (``NAME.json``), if there
        is one, says what it must be; without that either, it must be packed as its name says
        before its own is recorded.
    progress : Progress, optional

    Returns
    -------
    record : dict
        Address, size and SHA-256, as they stand in ``NAME.json``.

    Raises
    ------
    DownloadError
        When it cannot be fetched, or is not the file that was expected; such a file is removed.
    OutputError
        When the disk has no room.
    """
    part, bounds = part_of(path), bounds or Bounds()
    Transfer(url, part, bounds, progress or Progress()).run()
    record = {"url": url, "size": part.stat().st_size, "sha256": digest(part)}
    _check(record, path, bounds.size, sha256)
    with explained_writing(part), open(part, "rb") as file:
        os.fsync(file.fileno())
    # The record comes first: a file without one would be taken for one that nobody checked.
    write_record(path, record)
    rename_into_place(part, path)
    note_of(part).unlink(missing_ok=True)
    return record


def _check(record: dict[str, Any], path: Path, size: int | None, sha256: str | None) -> None:
    """Remove a file that is not the one that was expected, and say so."""
    expected = sha256 or read_record(path).get("sha256")
    if size is not None and record["size"] != size:
        wrong = f"it has {record['size']:,} bytes and should have {size:,}"
    elif expected is not None and record["sha256"] != expected:
        wrong = f"its SHA-256 is {record['sha256']} and should be {expected}"
    elif expected is None and (problem := _packing(path, record["url"])) is not None:
        wrong = problem
    else:
        return
    part_of(path).unlink()
    note_of(part_of(path)).unlink(missing_ok=True)
    advice = "Fetch again; if that does not help, the server's copy is damaged or changed."
    if sha256 is None and expected is not None:
        advice = (
            "That is what an earlier download found; if the publisher has changed the file, "
            f"remove {record_of(path)} and fetch again."
        )
    if expected is None:
        advice = (
            "A network that asks for a login sends such pages; open the address in a browser, "
            "then fetch again."
        )
    raise DownloadError(
        f"{record['url']} is not the file that was expected: {wrong}. What was fetched has been "
        f"removed. {advice}"
    )


def _packing(path: Path, url: str) -> str | None:
    """What is wrong with a file of which no checksum is known."""
    begun = Beginning.of(part_of(path), url)
    # A length that the server named and that arrived shows that nothing is missing at the end.
    whole = begun is None or begun.total is None
    return packing_problem(part_of(path), path.name, whole=whole)
