"""Rows that were converted from a slow format, in ``.npy`` files that are checked when read.

Each input has a folder of its own, temporary or in one that the user names, made under another name
and renamed when it is whole, with a ``meta.json`` that says what it was made from. An input that
changed has other facts, hence another name, and is converted again; so is every input when biglp's
own code has changed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError, OutputError
from biglp._core.memory import format_bytes
from biglp._files.local import (
    NPY_HEADER_BYTES,
    PART,
    RESERVE_BYTES,
    FileStamp,
    explained_writing,
    free_space,
    hold,
    let_go,
    npy_header,
    sync_files,
    temporary_folder,
)
from biglp._rows.npy_reader import RawFile
from biglp._rows.options import ReadOptions
from biglp._rows.source import SPARSE_BYTES, Encoding, Source, table_bytes
from biglp._transforms.text_model import text_stamps
from biglp._version import __version__

logger = logging.getLogger("biglp")

STRETCH = 32 << 10
"""Bytes with a sum of their own: a disk needs as long for these as for a single row."""
AT_ONCE = 32
"""Stretches that are checked together."""
KNOWN_FILES = 16
"""Files whose sums a process keeps, also between two readers: work for another process brings its
own. An input has one, or four where its rows are sparse."""
ENDING = ".sums"
META = "meta.json"
WIDTH = "width.npy"


@cache
def code_digest() -> str:
    """Digest of all of biglp's code, with which changes what is made of columns.

    Where the code lies in no files, as in a frozen program, the version has to do.
    """
    digest = hashlib.sha256(__version__.encode())
    with suppress(OSError, ImportError):
        waiting: list[Any] = [files("biglp")]
        while waiting:
            for path in sorted(waiting.pop().iterdir(), key=lambda path: path.name):
                if path.name.endswith(".py"):
                    digest.update(path.name.encode() + b"\0" + path.read_bytes())
                elif path.is_dir() and path.name != "__pycache__":
                    waiting.append(path)
    return digest.hexdigest()


class CacheStore:
    """Where the converted rows of one input are: ``folder``, in the one of all inputs, ``path``.

    ``options.cache`` may name the latter; otherwise a temporary one is made (``TMPDIR`` says
    where), which is removed when the last source that reads from it is gone, or when Python ends.
    ``inside`` says which array of each file is meant, where that was said.
    """

    def __init__(
        self,
        name: str,
        stamps: tuple[FileStamp, ...],
        options: ReadOptions,
        inside: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.is_named = options.cache != "auto"
        if self.is_named:
            self.path = Path(options.cache)
            with explained_writing(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
        else:
            self.path = temporary_folder(self)
        # Everything that the converted rows depend on.
        facts: dict[str, Any] = {
            "code": code_digest() if self.is_named else "",
            "files": [
                {"path": os.path.abspath(s.path), "size": s.size, "mtime_ns": s.mtime_ns}
                for s in stamps
            ],
            "columns": options.columns,
            "left_out": [options.label_column, *options.drop],
            "categorical": options.categorical,
            "missing": options.missing,
            "text": options.text,
            "text_model": text_stamps(options.text_model),
            "strict": options.strict,
            "dtype": options.dtype and np.dtype(options.dtype).str,
            "encoding": options.encoding and options.encoding.to_json(),
            "layout": [options.delimiter, options.header, options.zero_based, options.n_features],
            "letters": [options.decimal, options.text_encoding],
        }
        if any(inside):
            facts["inside"] = list(inside)
        text = json.dumps(facts, sort_keys=True)
        self._facts = json.loads(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.folder = self.path / f"{Path(name).name.partition('.')[0]}-{digest[:16]}"

    def find(self) -> Encoding | None:
        """Return how the rows were converted, if that was done earlier."""
        try:
            meta = json.loads((self.folder / META).read_text(encoding="utf-8"))
            digest = meta.pop("sha256")
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None
        text = json.dumps(meta, sort_keys=True)
        damaged = digest != hashlib.sha256(text.encode()).hexdigest()
        if damaged or meta.get("facts") != self._facts:
            return None
        logger.info("%s: using the rows converted earlier in %s", self.name, self.folder)
        return Encoding.from_json(meta["encoding"])

    def build(self, convert: Callable[[Path], Encoding]) -> Encoding:
        """Convert the input; ``convert`` fills a folder and returns how it did that.

        Several processes may share a named folder. One converts, the others wait for it, and rows
        that another process has converted meanwhile are used.
        """
        lock = self.folder.with_name(f".{self.folder.name}.lock")
        with explained_writing(lock):
            locked = hold(lock)
            if locked is None:
                logger.info("%s: waiting for a process that is converting it", self.name)
            while locked is None:
                time.sleep(0.1)
                locked = hold(lock)
        part = self.folder.with_name(f"{self.folder.name}.{secrets.token_hex(4)}{PART}")
        try:
            stored = self.find()
            if stored is not None:
                return stored
            with explained_writing(part):
                part.mkdir(parents=True)
                encoding = convert(part)
                for path in part.glob("*.npy"):
                    if not path.with_name(path.name + ENDING).exists():
                        with open(path, "rb") as file:
                            pieces = iter(lambda: file.read(AT_ONCE * STRETCH), b"")
                            sums = np.concatenate([_summed(piece) for piece in pieces])
                            _write_sums(path, file.tell(), sums)
                if self.is_named:  # a temporary folder need not outlive a power cut
                    sync_files(part)
                meta = {"facts": self._facts, "encoding": encoding.to_json()}
                text = json.dumps(meta, sort_keys=True)
                text = json.dumps(meta | {"sha256": hashlib.sha256(text.encode()).hexdigest()})
                (part / META).write_text(text, encoding="utf-8")
                if self.folder.exists():  # an old one is damaged
                    shutil.rmtree(self.folder, ignore_errors=True)
                os.rename(part, self.folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        finally:
            let_go(lock, locked)
        return encoding

    def shortage(self, needed: int) -> str | None:
        """Say how much space is missing for ``needed`` bytes, or None when there is enough."""
        free = free_space(self.path)
        if needed + RESERVE_BYTES <= free:
            return None
        where = self.path if self.is_named else self.path.parent
        return (
            f"about {format_bytes(needed)} are needed in {where}, besides "
            f"{format_bytes(RESERVE_BYTES)} that are left to other programs, and "
            f"{format_bytes(free)} are free"
        )


def no_room(name: str, shortage: str) -> OutputError:
    """Explain that a text file cannot be converted for lack of space."""
    return OutputError(
        f"{name} must be converted to raw rows before it can be worked on, but {shortage}. "
        "Make room, set TMPDIR to a folder on another disk, or name one with cache= (--cache)."
    )


class CachedSource(Source):
    """Rows that were converted; its name and stamps are the original's.

    The store lives as long as this source; copies sent to other processes do not own it. Where
    these cannot see the converted rows, ``open_original`` opens what they were made of.
    """

    encoding: Encoding
    compare: Callable[[], dict[str, Any]] | None = None
    """Compares the original's columns with those of the training rows, where it was opened."""

    def __init__(
        self,
        store: CacheStore,
        stamps: tuple[FileStamp, ...],
        encoding: Encoding,
        open_original: Callable[[], Source] | None = None,
    ) -> None:
        self.name = store.name
        self.stamps = stamps
        self.folder = store.folder
        self.encoding = encoding
        self.feature_names = encoding.feature_names
        self.words_from, self.views = encoding.words_from, encoding.views
        self.is_sparse = not (store.folder / "rows.npy").exists()
        self._rows: CheckedFile | CsrFiles = (
            CsrFiles(store.folder) if self.is_sparse else CheckedFile(store.folder / "rows.npy")
        )
        self.n_rows, self.n_features = self._rows.shape
        self.dtype = self._rows.dtype
        self.decoding_bytes = (
            SPARSE_BYTES if self.is_sparse else table_bytes(self.n_rows, encoding.n_inputs)
        )
        self._store: CacheStore | None = store
        self._open_original = open_original
        self._original: Source | None = None

    def read(self, start: int, stop: int) -> Rows:
        # The original is not looked at for every block: who sweeps does so before and after.
        rows = self._rows if self.folder.exists() else self._original_rows()
        return rows.read(start, stop)

    def take(self, indices: np.ndarray) -> Rows:
        rows = self._rows if self.folder.exists() else self._original_rows()
        return rows.take(np.asarray(indices))

    def compare_columns(self) -> dict[str, Any]:
        return {} if self.compare is None else self.compare()

    def _original_rows(self) -> Source:
        if self._open_original is None:
            raise BadRowsError(
                f"{self.name} was converted to raw rows in {self.folder}, which is gone or cannot "
                "be seen from this machine; name a folder that all machines share with cache= "
                "(--cache)."
            )
        if self._original is None:
            self._original = self._open_original()
        return self._original

    def __getstate__(self) -> dict[str, Any]:
        """Leave the ownership of the folder behind, and open files."""
        return {**self.__dict__, "_store": None, "_original": None, "compare": None}


# --------------------------------------------------------------------------------------------------
# Dense rows in one .npy file, sparse rows in three: where rows begin, their features, the values.


class NpyWriter(AbstractContextManager["NpyWriter"]):
    """A ``.npy`` file that grows entry by entry, with its sums; its header is written last.

    An entry is a row of m numbers, ``(m,)``, or a number, ``()``.
    """

    def __init__(
        self, path: Path, dtype: Any, entry_shape: tuple[int, ...] = (), *, sums: bool = True
    ) -> None:
        self._path = path
        self.dtype = np.dtype(dtype)
        self.entry_shape = entry_shape
        self.length = 0
        self._file = open(path, "xb")  # noqa: SIM115 - closed by __exit__
        self._file.write(bytes(NPY_HEADER_BYTES))
        self._open = bytearray(NPY_HEADER_BYTES)  # the stretch that is not full yet
        self._sums: list[np.ndarray] | None = [] if sums else None

    def append(self, entries: np.ndarray) -> None:
        """Write entries after those that are there."""
        entries = np.ascontiguousarray(entries, dtype=self.dtype)
        content = entries.reshape(-1).view(np.uint8).data
        self._file.write(content)
        self.length += len(entries)
        if self._sums is None:
            return
        missing = min(STRETCH - len(self._open), len(content))
        self._open += content[:missing]
        if len(self._open) == STRETCH:
            whole = missing + (len(content) - missing) // STRETCH * STRETCH
            self._sums += [_summed(self._open), _summed(content[missing:whole])]
            self._open = bytearray(content[whole:])

    def __exit__(self, *error: Any) -> None:
        try:
            if error[0] is None:
                size = self._file.tell()
                self._file.seek(0)
                header = npy_header(self.dtype, (self.length, *self.entry_shape))
                self._file.write(header)
                if self._sums is None:
                    return
                sums = np.concatenate([*self._sums, _summed(self._open)])
                sums[:1] += _summed(header)  # where zeros were
                _write_sums(self._path, size, sums)
        finally:
            self._file.close()


def write_width(folder: Path, width: int) -> None:
    """Write the number of features."""
    with NpyWriter(folder / WIDTH, np.int64) as file:
        file.append(np.array([width]))


class CsrWriter(AbstractContextManager["CsrWriter"]):
    """Sparse rows that are written piece by piece, as :class:`CsrFiles` reads them.

    Where the number of features is not known before, :func:`write_width` says it in the end.
    """

    def __init__(self, folder: Path, width: int | None, dtype: Any) -> None:
        if width is not None:
            write_width(folder, width)
        index_type = np.promote_types(np.min_scalar_type(-(width or 1)), np.int32)
        self._starts = NpyWriter(folder / "indptr.npy", np.int64)
        self._features = NpyWriter(folder / "indices.npy", index_type)
        self._values = NpyWriter(folder / "data.npy", dtype)
        self._starts.append(np.zeros(1))
        self.n_rows = self._end = 0

    def append(self, rows: Rows) -> None:
        """Write a CSR matrix after the rows that are there."""
        self._starts.append(rows.indptr[1:].astype(np.int64) + self._end)
        self._features.append(rows.indices)
        self._values.append(rows.data)
        self._end += int(rows.indptr[-1])
        self.n_rows += rows.shape[0]

    def __exit__(self, *error: Any) -> None:
        for part in (self._starts, self._features, self._values):
            part.__exit__(*error)


class CsrFiles:
    """CSR rows in a folder with ``indptr.npy``, ``indices.npy``, ``data.npy`` and ``width.npy``."""

    def __init__(self, folder: Path) -> None:
        self._starts = CheckedFile(folder / "indptr.npy")
        self._features = CheckedFile(folder / "indices.npy")
        self._values = CheckedFile(folder / "data.npy")
        width = int(CheckedFile(folder / WIDTH).read(0, 1)[0])
        self.shape = (self._starts.shape[0] - 1, width)
        self.dtype: np.dtype[Any] = self._values.dtype

    def read(self, start: int, stop: int) -> Rows:
        starts = self._starts.read(start, stop + 1)
        low, high = int(starts[0]), int(starts[-1])
        parts = (self._values.read(low, high), self._features.read(low, high), starts - low)
        return sparse.csr_matrix(parts, shape=(stop - start, self.shape[1]))

    def take(self, indices: np.ndarray) -> Rows:
        indices = np.asarray(indices, dtype=np.int64)
        bounds = np.union1d(indices, indices + 1)
        starts = self._starts.take(bounds)
        low = starts[np.searchsorted(bounds, indices)]
        lengths = starts[np.searchsorted(bounds, indices + 1)] - low
        pointers = np.concatenate([[0], np.cumsum(lengths)])
        # Positions of all values of the chosen rows, increasing because the rows are.
        positions = np.repeat(low - pointers[:-1], lengths) + np.arange(pointers[-1])
        parts = (self._values.take(positions), self._features.take(positions), pointers)
        return sparse.csr_matrix(parts, shape=(len(indices), self.shape[1]))


# --------------------------------------------------------------------------------------------------
# Checksums of converted rows, so that a bit that a disk or another program changed is noticed.
#
# A file has a sum for each 32 kB, taken over its words of 64 bits: any one changed bit changes it.
# Sums run at the memory's speed (10 GB/s, where a CRC-32 of zlib has 2), and each process checks
# each stretch once, when it first reads from it.


def _write_sums(path: Path, size: int, sums: np.ndarray) -> None:
    """Write the sums of a file beside it."""
    sums = np.concatenate([np.array([size], dtype=np.uint64), sums])
    content = np.append(sums, sums.sum(dtype=np.uint64)).tobytes()
    path.with_name(path.name + ENDING).write_bytes(content)


class CheckedFile(RawFile):
    """An array in a ``.npy`` file with sums; what is read is checked the first time.

    Where the bytes are not those that were written, the folder is no longer taken for converted
    rows, so that the next run converts them again.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.path.abspath(path)
        self.stamp = FileStamp.of(path)
        self._check(0, 1)  # the header
        super().__init__(path, self.stamp)

    def _fill(self, view: memoryview, position: int) -> None:
        self._check(position, position + len(view))
        super()._fill(view, position)

    def _check(self, first: int, end: int) -> None:
        """Check the stretches of these bytes that have not been checked in this process."""
        try:
            sums, agree = known_sums(self._path, self.stamp.size, self.stamp.mtime_ns)
        except OSError as error:
            raise self._damaged(f"its checksums cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise self._damaged(str(error)) from error
        low, high = first // STRETCH, -(-end // STRETCH)
        waiting = low + np.flatnonzero(~agree[low:high])
        for run in np.split(waiting, np.flatnonzero(np.diff(waiting) > 1) + 1):
            for start in range(0, len(run), AT_ONCE):
                some = slice(int(run[start]), int(run[start : start + AT_ONCE][-1]) + 1)
                begin = some.start * STRETCH
                content = np.empty(min(some.stop * STRETCH, self.stamp.size) - begin, np.uint8)
                super()._fill(content.data, begin)
                if not np.array_equal(_summed(content.data), sums[some]):
                    changed = f"bytes {begin:,} to {begin + len(content):,} were changed"
                    raise self._damaged(changed)
                agree[some] = True

    def _damaged(self, what: str) -> BadRowsError:
        (Path(self._path).parent / META).unlink(missing_ok=True)
        return BadRowsError(
            f"{self._path}, which holds rows that were converted earlier, is damaged: {what} by "
            "the disk or by another program. Run again, and the rows are converted again; an "
            "interrupted run can be resumed."
        )


@lru_cache(maxsize=KNOWN_FILES)
def known_sums(path: str, size: int, mtime_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of a file as it is now, and which stretches agree, which all its readers share."""
    content = np.fromfile(path + ENDING, dtype=np.uint64)
    whole = len(content) > 2 and content[:-1].sum(dtype=np.uint64) == content[-1]
    if not whole or int(content[0]) != size:
        raise ValueError("its length or its checksums were changed")
    return content[1:-1], np.zeros(len(content) - 2, dtype=bool)


def _summed(content: Any) -> np.ndarray:
    """Sum of each stretch; the last one may be shorter, and is filled up with zeros."""
    words = np.frombuffer(content, dtype=np.uint8)
    whole = len(words) // STRETCH * STRETCH
    sums = words[:whole].view(np.uint64).reshape(-1, STRETCH // 8).sum(axis=1, dtype=np.uint64)
    if whole == len(words):
        return sums
    rest = np.zeros(STRETCH, dtype=np.uint8)
    rest[: len(words) - whole] = words[whole:]
    return np.append(sums, rest.view(np.uint64).sum(dtype=np.uint64))
