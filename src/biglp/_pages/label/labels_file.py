"""The file of labels: a line an answer, ``row,label`` or ``id,label``, for ``biglp fit``."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from biglp._core.errors import LabelError, ParameterError
from biglp._files.local import atomic_write, explained_writing

LABEL = "label"


class LabelsFile:
    """Labels on disk, in the order in which rows got them.

    Parameters
    ----------
    path : Path
    key : str
        Name of the first column: "row", or the column of IDs.
    keys_of : callable
        From row numbers to what the first column says of them.
    """

    def __init__(self, path: Path, key: str, keys_of: Callable[[Sequence[int]], list[str]]) -> None:
        self.path, self.key, self.keys_of = path, key, keys_of

    def read(self, *, torn: bool = False) -> list[tuple[str, str]]:
        """Keys and labels; none where there is no file yet.

        Parameters
        ----------
        torn : bool
            Whether a last line without an end is to be forgotten.

        Raises
        ------
        ParameterError
            When the file is of another form.
        """
        if not self.path.exists():
            return []
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise self._other_form("is no text in UTF-8") from error
        if torn:
            text = text[: text.rfind("\n") + 1]
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
        if not lines:
            return []
        if lines[0] != [self.key, LABEL]:
            raise self._other_form(f"begins with {','.join(lines[0])[:60]!r}")
        bad = next((place for place, line in enumerate(lines, 1) if len(line) != 2), None)
        if bad is not None:
            raise LabelError(
                f"{self.path} has {len(lines[bad - 1])} values in entry {bad:,}, where "
                f"{self.key} and label are expected; correct it, or give another file (--labels)."
            )
        return [(key, label) for key, label in lines[1:]]

    def _other_form(self, found: str) -> ParameterError:
        return ParameterError(
            f"{self.path} {found}, but answers are written to a CSV file that begins with "
            f"'{self.key},{LABEL}'. Give such a file, or one that does not exist yet, as the last "
            "--labels; labels in another form may be named before it."
        )

    def open(self) -> None:
        """Make the file where there is none, and be ready to append."""
        empty = not self.path.exists() or not self.path.stat().st_size
        if empty:
            self.rewrite({})
        with explained_writing(self.path):
            self._file = open(self.path, "a+b")  # noqa: SIM115  open as long as the server runs
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":  # an editor may have left the last line without an end
                self._file.write(b"\n")

    def append(self, rows: Sequence[int], label: str) -> None:
        """Add labels of rows that have none; they are on disk when this returns."""
        with explained_writing(self.path):
            self._file.write(_csv(zip(self.keys_of(rows), [label] * len(rows), strict=True)))
            self._file.flush()
            os.fsync(self._file.fileno())

    def rewrite(self, labels: dict[int, str]) -> None:
        """Put other labels in place of all, whole or not at all."""
        keys = self.keys_of(list(labels))
        lines = dict(zip(keys, labels.values(), strict=True))  # rows may share an ID
        with atomic_write(self.path) as file:
            file.write(_csv([(self.key, LABEL), *lines.items()]))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _csv(lines: Iterable[tuple[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()
