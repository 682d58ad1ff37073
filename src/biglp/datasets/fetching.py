"""Fetch a data set: download, check, convert, keep. One process at a time for each data set."""

from __future__ import annotations

import shutil
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from biglp._core.errors import BadRowsError, DownloadError, ParameterError
from biglp._core.files import atomic_write, explained_writing, lock_file
from biglp._core.progress import LogProgress, Progress
from biglp.datasets.deforming import DEFAULT_SEED, deformed_pieces
from biglp.datasets.download import download
from biglp.datasets.loading import load, read_stand_in
from biglp.datasets.parts import digest, read_record, write_record
from biglp.datasets.places import DOWNLOADS, own_folder, prepared_folder, read_meta, stand_in_file
from biglp.datasets.preparing import prepare, write_rows
from biglp.datasets.registry import Entry, RemoteFile, entry, mirrored
from biglp.datasets.transfer import Bounds, GoneError

LOCK = ".lock"
WAIT_SECONDS = 0.2


def fetch(
    name: str,
    *,
    mirror: str | None = None,
    rows: int | None = None,
    keep_downloads: bool = True,
    progress: Progress | None = None,
) -> Path | str:
    """Download a data set and keep it as ``.npy`` files; one that is there is left alone.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    mirror : str, optional
        Address of a server to use in the publisher's place, such as ``http://mirror.example``;
        also from the environment variable ``BIGLP_MIRROR``.
    rows : int, optional
        Number of rows to make, for ``mnist-deformed``.
    keep_downloads : bool
        Whether the publisher's files stay in the cache beside the converted rows.
    progress : Progress, optional
        Log lines by default.

    Returns
    -------
    where : Path or str
        A folder with ``rows.npy`` and ``labels.npy``; the ``sim:`` text of a simulation.

    Raises
    ------
    DownloadError
        When a file cannot be fetched or is not the right one. What was fetched of a file is kept,
        and the next call goes on from there; a wrong file is removed.

    Examples
    --------
    >>> from biglp import datasets
    >>> datasets.fetch("sim100m")  # a simulation needs no download
    'sim:100Mx100...'
    """
    known = entry(name)
    if rows is not None and (known.deformed_from is None or rows < 1):
        raise ParameterError(
            f"rows={rows!r} must be 1 or more, and is for mnist-deformed only; {name} has "
            f"{known.rows:,} rows."
        )
    if known.simulation is not None:
        return known.simulation
    progress = progress or LogProgress()
    there = prepared_folder(known)
    if there is not None and rows in (None, read_meta(there).get("rows")):
        return there
    folder = own_folder(known)
    with _alone(folder, progress):
        if rows in (None, read_meta(folder).get("rows")) and prepared_folder(known) == folder:
            return folder  # another process has made it meanwhile
        if known.deformed_from is not None:
            _make(known, known.rows if rows is None else rows, folder, progress)
            return folder
        files = [_fetch_file(known, file, folder, mirror, progress) for file in known.files]
        prepare(known, files, folder, progress)
        for file in () if keep_downloads else files:
            file.unlink()  # its record stays, to recognise the file
        for archive in {Path(file.zip).name for file in known.files if file.zip}:
            (folder / DOWNLOADS / archive).unlink(missing_ok=True)  # its content has been unpacked
    return folder


def _fetch_file(
    known: Entry, file: RemoteFile, folder: Path, mirror: str | None, progress: Progress
) -> Path:
    """Return a downloaded file, fetching it where it is not there or not what it was."""
    path = folder / DOWNLOADS / file.name
    with explained_writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        _check_file(path, file)
        return path
    gone: GoneError | None = None
    for url in file.urls:
        try:
            download(
                mirrored(url, mirror),
                path,
                bounds=Bounds(file.size, known.most_bytes, known.prepared_bytes),
                sha256=file.sha256,
                progress=progress,
            )
            return path
        except GoneError as error:
            gone = error
    assert gone is not None
    if file.zip is None:
        raise gone
    progress.say(f"{gone} Trying {file.zip}")
    archive = path.with_name(Path(file.zip).name)
    if not archive.exists():
        try:
            download(
                mirrored(file.zip, mirror),
                archive,
                bounds=Bounds(None, known.most_bytes, known.prepared_bytes),
                progress=progress,
            )
        except GoneError as error:
            raise gone from error
    _unpack(archive, path, file)
    return path


def _check_file(path: Path, file: RemoteFile) -> None:
    """Refuse a file that is not what it was when it was fetched, and remove it."""
    expected = file.sha256 or read_record(path).get("sha256")
    found = digest(path) if expected else None
    if found != expected:
        path.unlink()
        raise DownloadError(
            f"{path} is not the file that was fetched: its SHA-256 is {found} and should be "
            f"{expected}. It has been removed; run the same command again to fetch it."
        )


def _unpack(archive: Path, path: Path, file: RemoteFile) -> None:
    """Take one file out of an archive."""
    try:
        with zipfile.ZipFile(archive) as packed:
            found = [name for name in packed.namelist() if Path(name).name == file.name]
            if not found:
                raise DownloadError(
                    f"{archive} holds no {file.name}; it holds {', '.join(packed.namelist()[:8])}. "
                    f"Put the file in its place by hand: {path}."
                )
            with packed.open(found[0]) as source, atomic_write(path) as target:
                shutil.copyfileobj(source, target, 1 << 20)
        write_record(path, {"url": file.zip, "size": path.stat().st_size, "sha256": digest(path)})
        _check_file(path, file)
    except zipfile.BadZipFile as error:
        archive.unlink()
        raise DownloadError(
            f"{archive} is damaged ({error}) and has been removed; run the same command again."
        ) from error


def _make(known: Entry, n_rows: int, folder: Path, progress: Progress) -> None:
    """Grow MNIST's digits to ``n_rows`` rows."""
    assert known.deformed_from is not None
    base = entry(known.deformed_from)
    if stand_in_file(base) is not None:
        images, labels = read_stand_in(base)
    elif prepared_folder(base) is not None:
        original = load(base.name)
        images, labels = original.rows, original.labels
    else:
        raise BadRowsError(
            f"{known.name} is made from MNIST's digits: name the folder that holds mnist.npz in "
            f"BIGLP_DATA, or run: biglp datasets fetch {base.name}"
        )
    facts = {"from": [f"{len(images):,} images"], "seed": DEFAULT_SEED}
    pieces = deformed_pieces(images, labels, n_rows, DEFAULT_SEED)
    write_rows(known, pieces, folder, progress, expected_rows=n_rows, facts=facts)


@contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold a data set's folder; wait while another process does."""
    with explained_writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = lock_file(folder / LOCK)
    if held is None:
        progress.say(f"waiting for another process that is fetching to {folder}")
    while held is None:
        time.sleep(WAIT_SECONDS)
        held = lock_file(folder / LOCK)
    try:
        yield
    finally:
        held.close()
