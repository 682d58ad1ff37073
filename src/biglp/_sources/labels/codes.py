"""Labels as they are gathered: a small integer code for each row, and the class of each code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biglp._core.errors import LabelError

LABEL_NAMES = ("label", "labels", "y", "class", "target")
"""Names of a column that holds labels."""
MAX_CLASSES = 100_000
PIECE_ROWS = 1 << 20
"""Labels that are read at once."""


@dataclass
class LabelCodes:
    """Codes of the labels seen so far; -1 is unlabelled.

    Parameters
    ----------
    n_rows : int or None
        Rows that there must be labels for, where known.
    name : str
        What messages call the labels.
    unlabelled : int or str
        What marks a row without a label, beside empty, null and NaN.
    """

    n_rows: int | None
    name: str
    unlabelled: int | str = -1
    _classes: dict[Any, int] = field(default_factory=dict, init=False)
    _pieces: list[np.ndarray] = field(default_factory=list, init=False)
    _rows: list[np.ndarray] = field(default_factory=list, init=False)
    _weights: list[np.ndarray] = field(default_factory=list, init=False)
    _length: int = field(default=0, init=False)
    _text: bool = field(default=False, init=False)

    def expect(self, length: int) -> None:
        """Refuse labels for another number of rows than there are."""
        if self.n_rows is not None and length != self.n_rows:
            raise LabelError(
                f"{self.name} has {length:,} labels, but there are {self.n_rows:,} rows; give one "
                "label a row (-1 or empty where it is unknown), or 'row,label' pairs."
            )

    def append(
        self,
        column: Any,
        *,
        rows: np.ndarray | None = None,
        text: bool = False,
        weights: np.ndarray | None = None,
    ) -> None:
        """Add labels.

        Parameters
        ----------
        column : array or list of str
            Labels: a NumPy or Arrow array, or a list of texts.
        rows : ndarray, optional
            Their rows, in any order; the next rows by default. With weights a row may have several.
        text : bool
            Whether the labels are as they were written in a text file.
        weights : ndarray, optional
        """
        self._text |= text
        if rows is not None:
            outside = rows[(rows < 0) | (rows >= (self.n_rows or np.iinfo(np.int64).max))]
            if outside.size:
                raise LabelError(
                    f"{self.name} has a label for row {outside[0]:,}, but the rows are 0 to "
                    f"{(self.n_rows or 0) - 1:,}; count rows from 0."
                )
        distinct, places = _distinct(column)
        if len(distinct) > MAX_CLASSES:
            raise LabelError(
                f"{self.name} has more than {MAX_CLASSES:,} different labels (such as "
                f"{distinct[0]!r}, {distinct[1]!r}); are these measurements and not classes?"
            )
        # New classes get the next code. A label that is missing has place -1, the last.
        codes = np.array([self._code(value) for value in distinct] + [-1], dtype=np.int64)[places]
        if weights is not None:
            self._weights.append(weights[codes >= 0])
        if rows is not None:
            self._rows.append(rows[codes >= 0])
            codes = codes[codes >= 0]
        self._pieces.append(codes.astype(np.min_scalar_type(-len(self._classes) - 1)))
        self._length += len(codes)

    def append_all(self, n_rows: int, read: Callable[[int, int], np.ndarray]) -> None:
        """Add the labels of all rows, read from row to row a piece at a time."""
        self.expect(n_rows)
        for start in range(0, n_rows, PIECE_ROWS):
            self.append(read(start, min(start + PIECE_ROWS, n_rows)))

    def dense(self) -> np.ndarray:
        """Labels of all rows."""
        n_rows = self.count_rows()
        if self._rows:
            rows, pairs, _ = self._sorted_pairs()
            codes = np.full(n_rows, -1, dtype=np.min_scalar_type(-len(self._classes) - 1))
            codes[rows] = pairs
        else:
            self.expect(n_rows)
            codes = np.concatenate(self._pieces or [np.empty(0, dtype=np.int8)])
        classes = self._final_classes()
        if classes.dtype == object:
            table = np.full(len(classes) + 1, None, dtype=object)  # code -1 is the last: None
            table[:-1] = classes
            return np.asarray(table[codes])
        table = np.append(classes, -1)
        return table.astype(_smallest(table))[codes]

    def count_rows(self) -> int:
        """Number of rows, labelled or not: as many as labels, or as was said for pairs."""
        if not self._rows:
            return self._length
        if self.n_rows is None:
            raise LabelError(f"{self.name} holds 'row,label' pairs; the number of rows is needed.")
        return self.n_rows

    def labelled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Labelled rows, their labels, and weights or None.

        The rows increase. With weights a row may occur several times.
        """
        if self._rows:
            pairs, found, weights = self._sorted_pairs()
            return pairs, self._final_classes()[found], weights
        self.expect(self._length)
        rows, codes, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for piece in self._pieces:  # few rows have labels, and codes of all of them may be large
            at = np.flatnonzero(piece >= 0)
            rows.append(start + at)
            codes.append(piece[at])
            start += len(piece)
        weights = np.concatenate(self._weights) if self._weights else None
        return np.concatenate(rows), self._final_classes()[np.concatenate(codes)], weights

    def refuse_plus_minus_one(self) -> None:
        """Raise where -1 is likelier to be a class than to mean unlabelled."""
        ambiguous = self.unlabelled == -1 and self._final_classes().tolist() == [1]
        if ambiguous and any(bool((piece < 0).any()) for piece in self._pieces):
            raise LabelError(
                f"{self.name} has the labels -1 and 1 only. -1 means unlabelled here; if it is a "
                "class, say what marks unlabelled rows instead, for example unlabelled=0."
            )

    def _code(self, value: Any) -> int:
        if isinstance(value, bool):
            value = int(value)
        if isinstance(value, float):
            if np.isnan(value):
                return -1
            if value != np.floor(value):
                raise LabelError(
                    f"{self.name} holds {value}, a measurement and not a class; "
                    "labels must be integers or text."
                )
            value = int(value)
        if isinstance(value, bytes):
            value = value.decode("utf-8", errors="replace")
        if isinstance(value, str):
            value = value.strip()
        if value is None or value in ("", self.unlabelled, str(self.unlabelled)):
            return -1
        if self._text and _whole_number(value) == self.unlabelled:  # "-1.0"
            return -1
        if not isinstance(value, (int, str)):
            raise LabelError(
                f"{self.name} holds {value!r} ({type(value).__name__}); use integers or text."
            )
        return self._classes.setdefault(value, len(self._classes))

    def _final_classes(self) -> np.ndarray:
        """Class of each code: integers where all are, also when they came as text."""
        classes = list(self._classes)
        if self._text:
            whole = [_whole_number(value) for value in classes]
            if all(number is not None for number in whole):
                classes = whole
        numbers = all(isinstance(value, int) for value in classes)
        if numbers and -1 not in classes:
            return np.array(classes, dtype=np.int64)
        # Where -1 is a class, integers would be taken for unlabelled: such classes become text.
        out = np.empty(len(classes), dtype=object)
        out[:] = [str(value) for value in classes]
        return out

    def _sorted_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows, increasing, their codes and weights; without weights each row once."""
        rows, codes = np.concatenate(self._rows), np.concatenate(self._pieces)
        order = np.argsort(rows, kind="stable")
        rows, codes = rows[order], codes[order]
        if self._weights:
            return rows, codes, np.concatenate(self._weights)[order]
        twice = np.flatnonzero((rows[1:] == rows[:-1]) & (codes[1:] != codes[:-1]))
        if twice.size:
            classes = self._final_classes()
            first, second = classes[codes[twice[0]]], classes[codes[twice[0] + 1]]
            raise LabelError(
                f"{self.name} gives row {rows[twice[0]]:,} two labels, {first} and {second}; "
                "keep one of them."
            )
        keep = np.append(True, rows[1:] != rows[:-1])[: len(rows)]
        return rows[keep], codes[keep], None


def _distinct(column: Any) -> tuple[list[Any], np.ndarray]:
    """Distinct labels, and for each row the place of its label among them (-1 where null)."""
    if isinstance(column, list):
        known: dict[str, int] = {}
        codes = [known.setdefault(text, len(known)) for text in column]
        return list(known), np.array(codes, dtype=np.int64)
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iu" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low <= MAX_CLASSES:  # counting is quicker than sorting
                shifted = column.astype(np.int64) - low
                seen = np.bincount(shifted) > 0
                return (np.flatnonzero(seen) + low).tolist(), (np.cumsum(seen) - 1)[shifted]
        distinct, places = np.unique(column, return_inverse=True)
        return distinct.tolist(), places
    encoded = column.dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.to_pylist(), indices


def _whole_number(text: Any) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if np.isfinite(value) and value == int(value) else None


def _smallest(values: np.ndarray) -> np.dtype[Any]:
    """The smallest signed type that holds all values."""
    for kind in (np.int8, np.int16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= values.min() and values.max() <= limits.max:
            return np.dtype(kind)
    return np.dtype(np.int64)
