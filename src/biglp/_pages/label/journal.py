"""What was done, in order, one line of JSON each: what the file of labels itself does not say.

A line is on disk before what it says is done to the file of labels, and a second line says that it
was. After an end at any moment the last line is therefore whole and done, whole and not done (it is
done again, which changes nothing where it had been done), or cut off: then nobody was told that it
was saved, and it is forgotten.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from biglp._core.errors import ParameterError
from biglp._files.local import explained_writing, let_go, lock_file, sync_folder

ENDING = ".journal"


class Journal:
    """Lines of what was done; only one process holds it at a time.

    Parameters
    ----------
    labels : Path
        The file of labels, which the journal stands beside.

    Attributes
    ----------
    past : list of dict
        What was done before.
    pending : dict or None
        The last of them, where it may not have reached the file of labels.

    Raises
    ------
    ParameterError
        When another process holds it.
    """

    def __init__(self, labels: Path) -> None:
        self.path = labels.with_name(labels.name + ENDING)
        with explained_writing(self.path):
            held = lock_file(self.path)
        if held is None:
            raise ParameterError(
                f"{labels} is in use: another biglp label writes its answers there. Use the page "
                "of that one, end it first (Ctrl-C), or give another file (--labels)."
            )
        self._file = held
        self.past: list[dict[str, Any]] = []
        self.pending: dict[str, Any] | None = None
        try:
            self._read()
            sync_folder(self.path.parent)
        except BaseException:
            held.close()
            raise

    def _read(self) -> None:
        text = self.path.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            self._file.truncate(whole)  # cut off while it was written: it was never answered
        for number, line in enumerate(text[:whole].splitlines(), 1):
            try:
                entry = json.loads(line)
            except ValueError as error:
                raise ParameterError(
                    f"{self.path} cannot be read (line {number:,} is no JSON); it holds what undo "
                    "needs. Remove it to go on without, the labels have a file of their own."
                ) from error
            if entry.get("do") == "done":
                self.pending = None
            else:
                self.pending = entry
                self.past.append(entry)

    def begin(self, entry: dict[str, Any]) -> None:
        """Write what is about to be done; it is on disk when this returns."""
        self._append(entry)
        os.fsync(self._file.fileno())

    def done(self) -> None:
        """Write that it was done. This line may be lost: then it is done again."""
        self._append({"do": "done"})

    def _append(self, entry: dict[str, Any]) -> None:
        size = os.fstat(self._file.fileno()).st_size
        try:
            with explained_writing(self.path):
                # Without a buffer: what could not be written must not be written later.
                line = memoryview(json.dumps(entry).encode() + b"\n")
                while line:  # a disk that is nearly full takes a part of it, and then refuses
                    line = line[os.write(self._file.fileno(), line) :]
        except BaseException:
            self._file.truncate(size)
            raise

    def close(self) -> None:
        """Let another process have it."""
        self._file.close()

    def give_up(self) -> None:
        """Close it, and leave nothing behind where nothing was ever written."""
        if not self.path.stat().st_size:
            let_go(self.path, self._file)
        self.close()
