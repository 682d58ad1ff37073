"""From the publisher's text to ``rows.npy`` and ``labels.npy``, in bounded memory.

Text is streamed in pieces of a few megabytes; rows of classes that are not wanted are left out
before they are parsed (LIBSVM) or written.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError, OutputError
from biglp._core.files import (
    PART,
    RESERVE_BYTES,
    explained_writing,
    free_space,
    sync_files,
    sync_folder,
)
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress
from biglp._sources.cache.folder import NpyWriter
from biglp.datasets.places import LABELS, META, ROWS
from biglp.datasets.registry import Entry

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
    from biglp._sources.formats.delimited import DELIMITED
    from biglp._sources.options import ReadOptions
    from biglp._sources.tables.table import stream

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
    from biglp._sources.formats.libsvm import row_chunks

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
