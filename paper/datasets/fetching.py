"""Fetch a data set: download, check, convert, keep. One process at a time for each data set."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError, DownloadError, OutputError, ParameterError
from biglp._core.memory import format_bytes
from biglp._core.progress import LogProgress, Progress
from biglp._files.local import (
    PART,
    RESERVE_BYTES,
    atomic_write,
    explained_writing,
    free_space,
    lock_file,
    sync_files,
    sync_folder,
)
from biglp._rows.cache import NpyWriter
from paper.datasets.deforming import DEFAULT_SEED, deformed_pieces
from paper.datasets.download import Bounds, GoneError, download
from paper.datasets.loading import load, read_stand_in
from paper.datasets.registry import (
    DOWNLOADS,
    LABELS,
    META,
    ROWS,
    Entry,
    RemoteFile,
    digest,
    entry,
    mirrored,
    own_folder,
    prepared_folder,
    read_meta,
    read_record,
    stand_in_file,
    write_record,
)

# --------------------------------------------------------------------------------------------------
# From the publisher's text to ``rows.npy`` and ``labels.npy``, in bounded memory.
#
# Text is streamed in pieces of a few megabytes; rows of classes that are not wanted are left out
# before they are parsed (LIBSVM) or written.


LABEL_DTYPE = np.dtype(np.int16)
Piece = tuple[np.ndarray, np.ndarray]


def prepare(
    known: Entry, files: Sequence[Path], folder: Path, progress: Progress
) -> dict[str, Any]:
    """Convert downloaded files to the rows and labels of a data set.

    Parameters
    ----------
    known : Entry
    files : sequence of Path
        The downloaded files, in the order of the registry.
    folder : Path
        Where the rows go; they appear there when they are whole.
    progress : Progress

    Returns
    -------
    meta : dict
        What was found, as it stands in ``meta.json``.
    """
    pieces = (_csv_pieces if known.text == "csv" else _libsvm_pieces)(known, files)
    facts = {"from": [file.name for file in files]}
    return write_rows(known, pieces, folder, progress, expected_rows=known.rows, facts=facts)


def write_rows(
    known: Entry,
    pieces: Iterator[Piece],
    folder: Path,
    progress: Progress,
    *,
    expected_rows: int,
    facts: dict[str, Any],
) -> dict[str, Any]:
    """Write rows and labels to a data set's folder, whole or not at all."""
    dtype = np.dtype(known.dtype)
    needed = expected_rows * (known.features * dtype.itemsize + LABEL_DTYPE.itemsize)
    check_room(known, folder, needed)
    for left in folder.glob(f"*{PART}"):  # by a run that was killed; this one holds the lock
        shutil.rmtree(left, ignore_errors=True)
    part = folder / f"{secrets.token_hex(4)}{PART}"
    counts: dict[int, int] = {}
    try:
        with explained_writing(folder):
            part.mkdir(parents=True)
            with (
                NpyWriter(part / ROWS, dtype, (known.features,), sums=False) as rows,
                NpyWriter(part / LABELS, LABEL_DTYPE, sums=False) as labels,
                progress.task(f"preparing {known.name}", expected_rows) as task,
            ):
                for values, y in pieces:
                    _add_counts(counts, y)
                    chosen = np.isin(y, known.classes)
                    if not chosen.all():
                        values, y = values[chosen], y[chosen]
                    rows.append(_checked(known, values, dtype))
                    labels.append(y)
                    task.advance(len(y))
            if len([label for label in known.classes if counts.get(label)]) < len(known.classes):
                raise BadRowsError(
                    f"{known.name}: there should be rows of the classes {known.classes} and there "
                    f"are rows of {sorted(counts)} only. These are not the files of this data set."
                )
            meta = {
                "name": known.name,
                "rows": rows.length,
                "features": known.features,
                "classes": {str(label): counts[label] for label in known.classes},
                **facts,
            }
            sync_files(part)
            _publish(part, folder, meta)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return meta


def check_room(known: Entry, folder: Path, needed: int) -> None:
    """Raise when the disk has no room for ``needed`` bytes."""
    free = free_space(folder)
    if needed + RESERVE_BYTES > free:
        raise OutputError(
            f"{known.name} takes {format_bytes(needed)} in {folder} and {format_bytes(free)} are "
            "free there. Make room, or name a folder on another disk in BIGLP_CACHE."
        )


def _publish(part: Path, folder: Path, meta: dict[str, Any]) -> None:
    """Put finished files in place; ``meta.json``, which makes them valid, is written last."""
    (part / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")
    with suppress(FileNotFoundError):
        (folder / META).unlink()
    for name in (ROWS, LABELS, META):
        os.replace(part / name, folder / name)
    sync_folder(folder)


def _csv_pieces(known: Entry, files: Sequence[Path]) -> Iterator[Piece]:
    """Rows of tables whose first column is the label; columns after the features are left out."""
    from biglp._rows.options import ReadOptions
    from biglp._tables.delimited import DELIMITED
    from biglp._tables.table import stream

    options = ReadOptions(delimiter=",", header=known.header)
    tables = DELIMITED.open_files([str(file) for file in files], options)
    names = tables[0].schema.names[: known.features + 1]
    if len(names) <= known.features:
        raise BadRowsError(
            f"{files[0]} has {len(names)} columns; {known.name} has a label and "
            f"{known.features} features. This is not the file of this data set."
        )
    for batch in stream(tables, names):
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        values = np.empty((batch.num_rows, known.features), dtype=np.float32)
        for index, column in enumerate(columns[1:]):
            values[:, index] = column
        yield values, _whole(columns[0], known)


def _libsvm_pieces(known: Entry, files: Sequence[Path]) -> Iterator[Piece]:
    """Rows of LIBSVM files, which count features from 1; only those of the wanted classes."""
    from biglp._rows.libsvm import row_chunks

    for file in files:
        for matrix, y in row_chunks(str(file), np.dtype(np.float32), labels=known.classes):
            values = np.zeros((len(y), known.features + 1), dtype=np.float32)
            if matrix.nnz:
                if matrix.indices.max() > known.features or matrix.indices.min() < 1:
                    raise BadRowsError(
                        f"{file} has features {matrix.indices.min()} to {matrix.indices.max()}; "
                        f"those of {known.name} are 1 to {known.features}. This is not its file."
                    )
                rows = np.repeat(np.arange(len(y)), np.diff(matrix.indptr))
                values[rows, matrix.indices] = matrix.data
            yield values[:, 1:], _whole(y, known)


def _whole(labels: np.ndarray, known: Entry) -> np.ndarray:
    found = np.rint(labels).astype(LABEL_DTYPE) if np.isfinite(labels).all() else None
    if found is None or not (found == labels).all():
        raise BadRowsError(
            f"{known.name}: a label is missing or no whole number; these are not the files of "
            "this data set."
        )
    return found


def _checked(known: Entry, values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    if not np.isfinite(values).all():
        raise BadRowsError(f"{known.name}: a feature is missing or not finite; fetch it again.")
    if dtype == np.uint8 and values.dtype != np.uint8:
        bytes_ = values.astype(np.uint8) if values.min(initial=0) >= 0 else None
        if bytes_ is None or not (bytes_ == values).all():
            raise BadRowsError(f"{known.name}: pixels must be whole numbers from 0 to 255.")
        return bytes_
    return values


def _add_counts(counts: dict[int, int], labels: np.ndarray) -> None:
    for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
        counts[int(label)] = counts.get(int(label), 0) + int(count)


# --------------------------------------------------------------------------------------------------


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
            f"BIGLP_DATA, or run: python -m paper datasets fetch {base.name}"
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
