"""Downloads that survive: resumed where they broke off, checked, and published whole.

The bytes go to ``NAME.part``, and ``NAME.part.json`` says what they are the beginning of: the
address, the length and the server's own mark of the version (ETag or Last-Modified). To go on, the
rest is asked for on the condition that the version is still that one (If-Range), so that two
versions are never glued together. A server that cannot send a rest sends the whole: then the part
is begun again.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biglp._core.errors import DownloadError, OutputError
from biglp._core.files import PART, atomic_write, explained_writing, free_space, rename_into_place
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress, Task
from biglp._core.version import __version__

TRIES = 5
"""Attempts in a row that bring nothing new before a download is given up."""
FIRST_PAUSE_SECONDS = 0.5
TIMEOUT_SECONDS = 60.0
PIECE_BYTES = 1 << 18
RESERVE_BYTES = 64 << 20
"""Disk space that a download leaves to others."""
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be otherwise in a moment."""


class GoneError(DownloadError):
    """The server says that there is no such file."""


@dataclass
class _Begun:
    """What a part is the beginning of."""

    url: str
    total: int | None = None
    version: str | None = None


class _BrokenOffError(Exception):
    """The connection ended too early, or never came about; worth another attempt."""


def download(
    url: str,
    path: Path,
    *,
    size: int | None = None,
    sha256: str | None = None,
    progress: Progress | None = None,
    room_for: int = 0,
) -> dict[str, Any]:
    """Fetch a file, going on where an earlier attempt broke off.

    Parameters
    ----------
    url : str
    path : Path
        Final name; it appears when the file is whole and checked.
    size, sha256 : int, str, optional
        What the file must have. Without ``sha256`` the record of an earlier download
        (``NAME.json``), if there is one, says what it must be.
    progress : Progress, optional
    room_for : int
        Bytes that must be free besides those of the file.

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
    part, note = part_of(path), part_of(path).with_name(part_of(path).name + ".json")
    _fetch(url, part, note, size, progress or Progress(), room_for)
    known = read_record(path)
    expected = sha256 or known.get("sha256")
    record = {"url": url, "size": part.stat().st_size, "sha256": digest(part)}
    wrong = None
    if size is not None and record["size"] != size:
        wrong = f"it has {record['size']:,} bytes and should have {size:,}"
    elif expected is not None and record["sha256"] != expected:
        wrong = f"its SHA-256 is {record['sha256']} and should be {expected}"
    if wrong is not None:
        part.unlink()
        note.unlink(missing_ok=True)
        own = sha256 is None and expected is not None
        raise DownloadError(
            f"{url} is not the file that was expected: {wrong}. What was fetched has been removed. "
            + (
                f"That is what an earlier download found; if the publisher has changed the file, "
                f"remove {record_of(path)} and fetch again."
                if own
                else "Fetch again; if that does not help, the server's copy is damaged or changed."
            )
        )
    with explained_writing(part), open(part, "rb") as file:
        os.fsync(file.fileno())
    # The record comes first: a file without one would be taken for one that nobody checked.
    write_record(path, record)
    rename_into_place(part, path)
    note.unlink(missing_ok=True)
    return record


def part_of(path: Path) -> Path:
    """Where a file is while it is not whole."""
    return path.with_name(path.name + PART)


def record_of(path: Path) -> Path:
    """Where it is written down what a file is."""
    return path.with_name(path.name + ".json")


def read_record(path: Path) -> dict[str, Any]:
    """Return what was found when the file was first fetched; empty when it never was."""
    try:
        found = json.loads(record_of(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write down what a file is, to know it by later."""
    with atomic_write(record_of(path)) as file:
        file.write(json.dumps(record, indent=1).encode())


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(
    url: str, part: Path, note: Path, size: int | None, progress: Progress, room_for: int
) -> None:
    """Fill ``part`` until it is whole; attempts count while they bring nothing new."""
    best, fruitless = _length(part), 0
    while True:
        try:
            _attempt(url, part, note, size, progress, room_for)
            return
        except _BrokenOffError as error:
            reached = _length(part)
            fruitless = 0 if reached > best else fruitless + 1
            best = max(best, reached)
            if fruitless >= TRIES:
                kept = f" {format_bytes(reached)} are kept, to go on from." if reached else ""
                raise DownloadError(
                    f"{url} could not be fetched: {error} ({TRIES} attempts).{kept} "
                    "Check the network and run the same command again, or name a mirror in "
                    "BIGLP_MIRROR."
                ) from error
            progress.say(f"{url}: {error}; trying again")
            if fruitless:
                time.sleep(FIRST_PAUSE_SECONDS * 2 ** (fruitless - 1))


def _attempt(
    url: str, part: Path, note: Path, size: int | None, progress: Progress, room_for: int
) -> None:
    have, begun = _length(part), _read_note(note, url)
    if have and begun is not None and have == begun.total:
        return  # broke off between the last byte and the check
    headers = {"User-Agent": f"biglp/{__version__}", "Accept-Encoding": "identity"}
    # Without a version nothing says what the part is the beginning of: the whole is asked for.
    if have and begun is not None and begun.version is not None:
        headers |= {"Range": f"bytes={have}-", "If-Range": begun.version}
    try:
        answer = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # the part is longer than the file: not its beginning
            part.unlink(missing_ok=True)
            raise _BrokenOffError("the file has become shorter") from error
        if error.code in _PASSING:
            raise _BrokenOffError(f"the server answers {error.code} {error.reason}") from error
        kind = GoneError if error.code in (404, 410) else DownloadError
        raise kind(
            f"{url} could not be fetched: the server answers {error.code} {error.reason}. "
            "The address may have changed; name a mirror in BIGLP_MIRROR, or put the file in its "
            f"place by hand: {part.with_name(part.name.removesuffix(PART))}."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOffError(_reason(error)) from error
    with answer:
        offset, total = _place(answer)
        if offset not in (0, have):
            raise _BrokenOffError(f"the server sends bytes from {offset:,}, not from {have:,}")
        version = _version(answer)
        if offset and begun is not None and (total, version) != (begun.total, begun.version):
            part.unlink()  # the server did not heed the condition
            raise _BrokenOffError("the file has changed since its first part was fetched")
        if size is not None and total is not None and total != size:
            raise DownloadError(
                f"{url} is not the file that was expected: it has {total:,} bytes and should have "
                f"{size:,}. Nothing was fetched; the server's copy is damaged or changed."
            )
        if total is not None:
            _check_room(url, part, total - offset + room_for)
        with explained_writing(part):
            # Emptied before the note changes: the note must never speak of other bytes.
            with open(part, "ab") as file:
                file.truncate(offset)
            _write_note(note, _Begun(url, total, version))
        task = progress.start_bytes(f"fetching {part.name.removesuffix(PART)}", total or 1)
        task.advance(offset)
        _append(answer, part, task)
        done = _length(part)
        if total is not None and done < total:
            raise _BrokenOffError(f"the connection ended after {done:,} of {total:,} bytes")
        task.finish()


def _append(answer: Any, part: Path, task: Task) -> None:
    """Write what arrives; what has arrived stays, whatever happens next."""
    with explained_writing(part), open(part, "ab") as file:
        while True:
            try:
                piece = answer.read1(PIECE_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise _BrokenOffError(_reason(error)) from error
            if not piece:
                return
            file.write(piece)
            task.advance(len(piece))


def _place(answer: Any) -> tuple[int, int | None]:
    """First byte of an answer and length of the whole file, None where the server does not say."""
    if answer.status == 206:
        found = re.match(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if found is None:
            raise _BrokenOffError("the server sends a part and does not say which")
        return int(found[1]), None if found[2] == "*" else int(found[2])
    length = answer.headers.get("Content-Length")
    return 0, int(length) if length is not None and length.isdigit() else None


def _version(answer: Any) -> str | None:
    """The server's mark of a version; a weak one does not promise the same bytes."""
    tag = answer.headers.get("ETag")
    if tag and not tag.startswith("W/"):
        return str(tag)
    return answer.headers.get("Last-Modified")


def _check_room(url: str, part: Path, needed: int) -> None:
    free = free_space(part.parent)
    if needed + RESERVE_BYTES > free:
        raise OutputError(
            f"{url} cannot be fetched: {format_bytes(needed)} are needed in {part.parent} and "
            f"{format_bytes(free)} are free. Make room, or name a folder on another disk in "
            "BIGLP_CACHE."
        )


def _read_note(note: Path, url: str) -> _Begun | None:
    try:
        found = _Begun(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.url == url else None


def _write_note(note: Path, begun: _Begun) -> None:
    with atomic_write(note) as file:
        file.write(json.dumps(asdict(begun)).encode())


def _length(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _reason(error: BaseException) -> str:
    """Say what the network did, in the system's words."""
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause or type(cause).__name__)
