"""Downloads that go on where they broke off, are checked, and appear whole or not at all.

Libraries were looked at in their current versions: pooch 1.9 and parfive 2.3 begin a broken
download again at its first byte, and pypdl 1.5 asks for the rest without the condition that the
file is still the same (If-Range), and only of servers that send an ETag. Our files have up to
several gigabytes and no published checksum, so what is in ``transfer.py`` stays our own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from biglp._core.errors import DownloadError
from biglp._core.files import explained_writing, rename_into_place
from biglp._core.progress import Progress
from biglp.datasets.packing import packing_problem
from biglp.datasets.parts import (
    Beginning,
    digest,
    note_of,
    part_of,
    read_record,
    record_of,
    write_record,
)
from biglp.datasets.transfer import Bounds, Transfer


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
