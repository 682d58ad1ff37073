"""LIBSVM / SVMlight text: ``label feature:value feature:value …``, sparse.

The text is parsed in chunks of whole lines and written as CSR arrays to the block cache; the rows
are never dense and never all in memory. Features are counted from 0 when feature 0 occurs, from 1
otherwise, unless a model or the user says which.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError, ParameterError
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress
from biglp._files.local import FileStamp
from biglp._rows.arrays import CsrSource
from biglp._rows.cache import ENDING, CachedSource, CacheStore, CsrWriter, no_room, write_width
from biglp._rows.format import (
    RAW_BYTES_PER_SECOND,
    FileFacts,
    Format,
    LabelColumns,
    LabelPiece,
    Probe,
)
from biglp._rows.options import PACKED, ReadOptions
from biglp._rows.source import SPARSE_BYTES, Encoding, no_rows
from biglp._rows.textfiles import LONGEST_LINE, guess_rows, line_too_long, open_text

logger = logging.getLogger("biglp")

CHUNK_BYTES = 8 << 20
PROBE_BYTES = 4 << 20


class LibsvmFormat(Format):
    """Sparse rows as text; each line begins with the label."""

    name = "LIBSVM"
    holds_labels = True
    has_minus_one = True

    def open(self, files: Sequence[str], options: ReadOptions) -> CachedSource:
        """Convert one file to sparse raw rows and open these."""
        (name,) = files
        options.refuse(name, "columns", "label_column", "drop", "categorical", "text", "missing")
        if options.cache == "never":
            raise ParameterError(
                f"cache='never' cannot be used with {name}: LIBSVM text cannot be read from the "
                "middle and must be converted once; use cache='auto' or name a folder."
            )
        stamp = FileStamp.of(name)
        store = CacheStore(name, (stamp,), options)
        encoding = store.find()
        if encoding is None:
            dtype = np.dtype(options.dtype or np.float64)
            # A short entry such as " 7:1" is 4 bytes of text and becomes an index and a value.
            packed = Path(name).suffix.lower() in PACKED
            needed = stamp.size * (4 if packed else 1) // 5 * (4 + dtype.itemsize)
            shortage = store.shortage(needed)
            if shortage is not None:
                raise no_room(name, shortage)
            notes = (name, format_bytes(needed), store.path)
            logger.info("%s: converting to sparse rows (up to %s) in %s", *notes)
            encoding = store.build(lambda folder: _convert(stamp, folder, options, dtype))
            stamp.check()
        return CachedSource(store, (stamp,), encoding)

    def peek(self, files: Sequence[str], options: ReadOptions) -> FileFacts:
        """Estimate the number of rows from the length of the first lines."""
        size = FileStamp.of(files[0]).size
        n_rows = guess_rows(files[0], size)
        return FileFacts(self.name, tuple(files), size, n_rows, False, {}, None, "float64", True)

    def probe(self, files: Sequence[str], options: ReadOptions, wanted_rows: int) -> Probe:
        """Parse the first lines, to estimate how long parsing all of them takes."""
        with open_text(files[0]) as file:
            text = file.read(PROBE_BYTES)
        text = text[: text.rfind(b"\n") + 1] or text
        began = time.perf_counter()
        rows, _ = _parse(text, 1, files[0], np.dtype(np.float64))
        seconds = time.perf_counter() - began
        if rows.nnz and rows.indices.min() > 0:
            rows = rows[:, 1:]  # counted from 1
        n_rows = guess_rows(files[0], FileStamp.of(files[0]).size)
        scale = n_rows / rows.shape[0]
        size = scale * rows.nnz * 12
        return Probe(
            source=CsrSource(rows),
            n_rows=n_rows,
            exact=False,
            looked_at=rows.shape[0],
            convert_seconds=scale * seconds + size / RAW_BYTES_PER_SECOND,
            read_seconds=size / RAW_BYTES_PER_SECOND,
            decoding=SPARSE_BYTES,
        )

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the first word of each line, without parsing features."""
        for chunk, _ in _chunks(files[0]):
            lines = (line.split(b"#", 1)[0].split(None, 1) for line in chunk.splitlines())
            labels = [words[0].decode("ascii", errors="replace") for words in lines if words]
            yield LabelPiece(labels, text=True)


def row_chunks(
    path: str, dtype: np.dtype[Any], labels: Container[float] | None = None
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield rows and their labels in pieces, features counted as they stand in the file.

    Where some ``labels`` are wanted, rows with others are not parsed.
    """

    def is_wanted(word: bytes) -> bool:
        try:
            return labels is None or float(word) in labels
        except ValueError:
            return True  # a comment, which is skipped, or an error, which the parser explains

    for chunk, first_line in _chunks(path):
        if labels is not None:
            words = [line[:32].split(None, 1)[:1] for line in chunk.splitlines()]
            known = {word: is_wanted(word) for word in {word[0] for word in words if word}}
            lines = zip(chunk.splitlines(keepends=True), words, strict=True)
            # Other lines are emptied, so that these keep their numbers.
            chunk = b"".join(line if word and known[word[0]] else b"\n" for line, word in lines)
            if not chunk.strip():
                continue
        yield _parse(chunk, first_line, path, dtype)


def _convert(
    stamp: FileStamp, folder: Path, options: ReadOptions, dtype: np.dtype[Any]
) -> Encoding:
    """Write the rows as three CSR arrays, features counted from 0."""
    known = options.encoding
    zero_based = options.zero_based if known is None else known.zero_based
    width = options.n_features if known is None else known.n_inputs
    least, largest = np.iinfo(np.int32).max, -1
    n_rows = guess_rows(stamp.path, stamp.size)
    with (
        CsrWriter(folder, None, dtype) as rows,
        (options.progress or Progress()).task(f"converting {stamp.path}", n_rows) as task,
    ):
        for matrix, _ in row_chunks(stamp.path, dtype):
            if matrix.nnz:
                least = min(least, int(matrix.indices.min()))
                largest = max(largest, int(matrix.indices.max()))
            rows.append(matrix)
            task.advance(matrix.shape[0])
    if rows.n_rows == 0:
        raise no_rows(stamp.path)
    if zero_based is None:
        zero_based = least == 0
    if not zero_based:
        if least == 0:
            raise BadRowsError(
                f"{stamp.path} has a feature 0, but its features were to be counted from 1 "
                "(zero_based=False); give zero_based=True, or a file made like the one that the "
                "model was fitted on."
            )
        # Take one from every index of the file, a piece at a time.
        path = folder / "indices.npy"
        path.with_name(path.name + ENDING).unlink()  # made anew when the folder is whole
        stored = np.load(path, mmap_mode="r+")
        for start in range(0, len(stored), 1 << 22):
            stored[start : start + (1 << 22)] -= 1
        stored.flush()
    n_features = largest + 1 - (not zero_based)
    if width is None:
        if n_features < 1:
            raise BadRowsError(f"{stamp.path} has no features at all, only labels.")
        width = n_features
    elif n_features > width:
        raise BadRowsError(
            f"{stamp.path} has {n_features:,} features where {width:,} are expected (by the model "
            "or n_features=); give a file with the same features."
        )
    write_width(folder, width)
    return Encoding(None, width, dtype.str, zero_based=bool(zero_based))


def _chunks(path: str) -> Iterator[tuple[bytes, int]]:
    """Cut a file into whole lines of about ``CHUNK_BYTES``, with the number of the first line."""
    rest, line = b"", 1
    try:
        with open_text(path) as file:
            while True:
                piece = file.read(CHUNK_BYTES)
                text = rest + piece
                cut = text.rfind(b"\n") + 1 if piece else len(text)
                chunk, rest = text[:cut], text[cut:]
                if len(rest) > LONGEST_LINE:
                    raise line_too_long(path, line + chunk.count(b"\n"))
                if chunk:
                    yield chunk, line
                    line += chunk.count(b"\n")
                if not piece:
                    return
    except (OSError, EOFError) as error:
        raise BadRowsError(
            f"{path} cannot be read near line {line:,}: {error}. Copy or pack it again."
        ) from error


def _parse(
    chunk: bytes, first_line: int, path: str, dtype: np.dtype[Any]
) -> tuple[Any, np.ndarray]:
    from sklearn.datasets import load_svmlight_file  # slow to load, and other formats do without

    try:
        # Counted as they stand; whether that is from 0 or from 1 is known at the end only.
        return load_svmlight_file(io.BytesIO(chunk), dtype=dtype, zero_based=True)
    except (ValueError, OverflowError) as error:
        for number, line in enumerate(chunk.splitlines()):
            try:
                load_svmlight_file(io.BytesIO(line + b"\n"), dtype=dtype, zero_based=True)
            except (ValueError, OverflowError) as reason:
                shown = line.decode("ascii", errors="replace")
                raise BadRowsError(
                    f"{path}, line {first_line + number}: {reason} ({shown[:60]!r}). A line must "
                    "read 'label feature:value feature:value …', features increasing. "
                    "Repair or delete that line."
                ) from reason
        raise BadRowsError(f"{path}, from line {first_line}: {error}.") from error


LIBSVM = LibsvmFormat()
