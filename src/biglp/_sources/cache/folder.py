"""Folders of converted inputs: temporary, or named by the user and used again.

Each input has a folder of its own, made under another name and renamed when it is whole, with a
``meta.json`` that says what it was made from. An input that changed has other facts, hence another
name, and is converted again; so is every input when biglp's own code has changed.
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
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from biglp._core.errors import OutputError
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
from biglp._sources.cache.sums import ENDING, META, RunningSums, write_sums
from biglp._sources.options import ReadOptions
from biglp._sources.tables.encoding import Encoding
from biglp._version import __version__

logger = logging.getLogger("biglp")

WAIT_SECONDS = 0.1


@cache
def code_digest() -> str:
    """Digest of all of biglp's code, with which changes what is made of columns.

    Where the code lies in no files, as in a frozen program, the version has to do.
    """
    digest = hashlib.sha256(__version__.encode())
    with suppress(OSError, ImportError):
        waiting: list[Any] = [files("biglp")]
        while waiting:
            for place in sorted(waiting.pop().iterdir(), key=lambda place: place.name):
                if place.name.endswith(".py"):
                    digest.update(place.name.encode() + b"\0" + place.read_bytes())
                elif place.is_dir() and place.name != "__pycache__":
                    waiting.append(place)
    return digest.hexdigest()


class CacheStore:
    """Where the converted rows of one input are kept.

    Parameters
    ----------
    name : str
        What messages call the input.
    stamps : tuple of FileStamp
        Its files.
    options : ReadOptions
        How they are read. ``cache`` may name a folder that is kept; otherwise a temporary one is
        made (``TMPDIR`` says where), which is removed when the last source that reads from it is
        gone, or when Python ends.
    inside : sequence of str
        Which array of each file is meant, where that was said.

    Attributes
    ----------
    path : Path
        The folder of all inputs.
    folder : Path
        The folder of this one, which may not be there yet.
    """

    def __init__(
        self,
        name: str,
        stamps: tuple[FileStamp, ...],
        options: ReadOptions,
        inside: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.kept = options.cache != "auto"
        if self.kept:
            self.path = Path(options.cache)
            with explained_writing(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
        else:
            self.path = temporary_folder(self)
        # Everything that the converted rows depend on.
        facts: dict[str, Any] = {
            "code": code_digest() if self.kept else "",
            "files": [stamp.facts() for stamp in stamps],
            "columns": options.columns,
            "left_out": [options.label_column, *options.drop],
            "categorical": options.categorical,
            "missing": options.missing,
            "text": options.text,
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
        if meta.get("facts") != self._facts or digest != _digest(meta):
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
            held = hold(lock)
            if held is None:
                logger.info("%s: waiting for a process that is converting it", self.name)
            while held is None:
                time.sleep(WAIT_SECONDS)
                held = hold(lock)
        try:
            return self.find() or self._build(convert)
        finally:
            let_go(lock, held)

    def _build(self, convert: Callable[[Path], Encoding]) -> Encoding:
        part = self.folder.with_name(f"{self.folder.name}.{secrets.token_hex(4)}{PART}")
        try:
            with explained_writing(part):
                part.mkdir(parents=True)
                encoding = convert(part)
                for path in part.glob("*.npy"):
                    if not path.with_name(path.name + ENDING).exists():
                        write_sums(path)
                if self.kept:  # a temporary folder need not outlive a power cut
                    sync_files(part)
                meta = {"facts": self._facts, "encoding": encoding.to_json()}
                text = json.dumps(meta | {"sha256": _digest(meta)})
                (part / META).write_text(text, encoding="utf-8")
                if self.folder.exists():  # an old one is damaged
                    shutil.rmtree(self.folder, ignore_errors=True)
                os.rename(part, self.folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        return encoding

    def shortage(self, needed: int) -> str | None:
        """Say how much space is missing for ``needed`` bytes, or None when there is enough."""
        free = free_space(self.path)
        if needed + RESERVE_BYTES <= free:
            return None
        where = self.path if self.kept else self.path.parent
        return (
            f"about {format_bytes(needed)} are needed in {where}, besides "
            f"{format_bytes(RESERVE_BYTES)} that are left to other programs, and "
            f"{format_bytes(free)} are free"
        )


def _digest(meta: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def no_room(name: str, shortage: str) -> OutputError:
    """Explain that a text file cannot be converted for lack of space."""
    return OutputError(
        f"{name} must be converted to raw rows before it can be worked on, but {shortage}. "
        "Make room, set TMPDIR to a folder on another disk, or name one with cache= (--cache)."
    )


class NpyWriter(AbstractContextManager["NpyWriter"]):
    """A ``.npy`` file that grows entry by entry; its header is written last.

    Parameters
    ----------
    path : path
    dtype : numpy.dtype
    entry_shape : tuple of int
        Shape of one entry: ``(m,)`` for rows of m numbers, ``()`` for a list of numbers.
    sums : bool
        Whether checksums are written beside it.
    """

    def __init__(
        self, path: Path, dtype: Any, entry_shape: tuple[int, ...] = (), *, sums: bool = True
    ) -> None:
        self._path = path
        self._sums = RunningSums(NPY_HEADER_BYTES) if sums else None
        self.dtype = np.dtype(dtype)
        self.entry_shape = entry_shape
        self.length = 0
        self._file = open(path, "xb")  # noqa: SIM115 - closed by __exit__
        self._file.write(bytes(NPY_HEADER_BYTES))

    def append(self, entries: np.ndarray) -> None:
        """Write entries after those that are there."""
        entries = np.ascontiguousarray(entries, dtype=self.dtype)
        content = entries.reshape(-1).view(np.uint8).data
        self._file.write(content)
        if self._sums is not None:
            self._sums.add(content)
        self.length += len(entries)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                header = npy_header(self.dtype, (self.length, *self.entry_shape))
                self._file.write(header)
                if self._sums is not None:
                    self._sums.write(self._path, header)
        finally:
            self._file.close()
