"""Labels as they are gathered: a small integer code for each, and the class of each code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biglp._core.arrays import as_places
from biglp._core.errors import LabelError
from biglp._rows.format import LabelPiece
from biglp._rows.written_numbers import MISSING_TEXTS

# --------------------------------------------------------------------------------------------------
# From columns of labels to their distinct values.


MAX_CLASSES = 100_000


def distinct_of(column: Any) -> tuple[list[Any], np.ndarray]:
    """Distinct labels, and for each row the place of its label among them (-1 where null)."""
    if isinstance(column, list):
        known: dict[str, int] = {}
        codes = [known.setdefault(text, len(known)) for text in column]
        return list(known), np.array(codes, dtype=np.int64)
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iu" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low <= MAX_CLASSES:  # counting is quicker than sorting
                wide = np.uint64 if column.dtype.kind == "u" else np.int64
                shifted = (column.astype(wide) - wide(low)).astype(np.int64)
                seen = np.bincount(shifted) > 0
                found = [low + place for place in np.flatnonzero(seen).tolist()]
                return found, (np.cumsum(seen) - 1)[shifted]
        distinct, places = np.unique(column, return_inverse=True)
        return distinct.tolist(), places
    encoded = column.dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    indices = as_places(encoded.indices)
    return encoded.dictionary.to_pylist(), indices


def whole_number(text: Any) -> int | None:
    """The integer that a text reads as; None where it is none."""
    if isinstance(text, (str, int)):
        with suppress(ValueError):
            return int(text)  # floating-point numbers would round it beyond 2⁵³
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if np.isfinite(value) and value == int(value) else None


def smallest_integers(values: np.ndarray) -> np.dtype[Any]:
    """The smallest signed type that holds all values."""
    for kind in (np.int8, np.int16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= values.min() and values.max() <= limits.max:
            return np.dtype(kind)
    return np.dtype(np.int64)


# --------------------------------------------------------------------------------------------------


Marks = int | str | Sequence[int | str] | None
"""What marks a row without a label, beside empty, null and NaN. None: -1 and what programs write
for a missing value (``NA``, ``null``, ``?`` …)."""


@dataclass
class LabelCodes:
    """Codes of the labels seen so far; -1 is unlabelled.

    Parameters
    ----------
    n_rows : int or None
        Rows that there must be labels for, where known.
    name : str
        What messages call the labels.
    unlabelled : int, str, sequence of these or None
        What marks a row without a label; see ``Marks``.

    Attributes
    ----------
    missing : Counter
        Labels that programs write for a missing value, and were taken for none.
    skipped : int
        Entries of a labelling tool that nobody has answered.
    """

    n_rows: int | None
    name: str
    unlabelled: Marks = None
    missing: Counter[str] = field(default_factory=Counter, init=False)
    skipped: int = field(default=0, init=False)
    _classes: dict[Any, int] = field(default_factory=dict, init=False)
    _pieces: list[np.ndarray] = field(default_factory=list, init=False)
    _rows: list[np.ndarray] = field(default_factory=list, init=False)
    _ids: list[Any] = field(default_factory=list, init=False)
    _weights: list[np.ndarray] = field(default_factory=list, init=False)
    _length: int = field(default=0, init=False)
    _text: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Bring the marks of unlabelled rows into one form: as numbers and as text."""
        given = self.unlabelled
        marks = [-1] if given is None else [given] if isinstance(given, (int, str)) else [*given]
        self._marks = {*marks, *map(str, marks), ""}
        # What is counted is told: a class may be called so.
        self._missing = frozenset((*MISSING_TEXTS, "-1") if given is None else ()) - {""}

    def expect(self, length: int) -> None:
        """Refuse labels for another number of rows than there are."""
        if self.n_rows is not None and length != self.n_rows:
            raise LabelError(
                f"{self.name} has {length:,} labels, but there are {self.n_rows:,} rows; give one "
                "label a row (-1 or empty where it is unknown), or 'row,label' pairs."
            )

    def gather(self, pieces: Iterable[LabelPiece]) -> None:
        """Add the labels of all pieces."""
        for piece in pieces:
            self.append(piece)

    def append(self, piece: LabelPiece) -> None:
        """Add labels."""
        column, rows, ids, text, weights, total, skipped = piece
        if total is not None:
            self.expect(total)
        self.skipped += skipped
        self._text |= text
        if rows is not None:
            outside = rows[(rows < 0) | (rows >= (self.n_rows or np.iinfo(np.int64).max))]
            if outside.size:
                raise LabelError(
                    f"{self.name} has a label for row {outside[0]:,}, but the rows are 0 to "
                    f"{(self.n_rows or 0) - 1:,}; count rows from 0."
                )
        distinct, places = distinct_of(column)
        # New classes get the next code. A label that is missing has place -1, the last.
        found = [self._code(value) for value in distinct[: MAX_CLASSES + 1]]
        if max(len(distinct), len(self._classes)) > MAX_CLASSES:
            raise LabelError(
                f"{self.name} has more than {MAX_CLASSES:,} different labels (such as "
                f"{distinct[0]!r}, {distinct[-1]!r}); are these measurements and not classes?"
            )
        codes = np.array([*found, -1], dtype=np.int64)[places]
        for place, value in enumerate(distinct):
            if isinstance(value, str) and value.strip() in self._missing:
                self.missing[value.strip()] += int((places == place).sum())
        known = codes >= 0
        if weights is not None:
            self._weights.append(weights[known])
        if ids is not None:
            self._ids.append(ids.take(np.flatnonzero(known)))
        if rows is not None:
            self._rows.append(rows[known])
        if rows is not None or ids is not None:
            codes = codes[known]
        self._pieces.append(codes.astype(np.min_scalar_type(-len(self._classes) - 1)))
        self._length += len(codes)

    @property
    def by_line(self) -> bool:
        """Whether there is one label a row, in the order of the rows."""
        return not self._rows and not self._ids

    @property
    def ids(self) -> list[Any]:
        """Arrow arrays of the labels' IDs; empty where labels are not by ID."""
        return self._ids

    @property
    def codes(self) -> np.ndarray:
        """Codes of all labels in the order they came."""
        return np.concatenate(self._pieces or [np.empty(0, dtype=np.int8)])

    def dense(self) -> np.ndarray:
        """Labels of all rows, one each."""
        n_rows = self.count_rows()
        if self._rows:
            rows, pairs, _ = self._sorted_pairs()
            twice = np.flatnonzero((rows[1:] == rows[:-1]) & (pairs[1:] != pairs[:-1]))
            if twice.size:
                first, second = self.classes()[pairs[[twice[0], twice[0] + 1]]]
                raise LabelError(
                    f"{self.name} gives row {rows[twice[0]]:,} two labels, {first} and {second}; "
                    "keep one of them."
                )
            codes = np.full(n_rows, -1, dtype=np.min_scalar_type(-len(self._classes) - 1))
            codes[rows] = pairs
        else:
            self.expect(n_rows)
            codes = self.codes
        classes = self.classes()
        if classes.dtype == object:
            table = np.full(len(classes) + 1, None, dtype=object)  # code -1 is the last: None
            table[:-1] = classes
            return np.asarray(table[codes])
        table = np.append(classes, -1)
        return table.astype(smallest_integers(table))[codes]

    def count_rows(self) -> int:
        """Number of rows, labelled or not: as many as labels, or as was said for pairs."""
        if self.by_line:
            return self._length
        if self.n_rows is None:
            raise LabelError(f"{self.name} holds 'row,label' pairs; the number of rows is needed.")
        return self.n_rows

    def labelled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Labelled rows, the codes of their labels, and weights or None.

        The rows increase; a row may occur several times.
        """
        if self._rows:
            return self._sorted_pairs()
        self.expect(self._length)
        rows, codes, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for piece in self._pieces:  # few rows have labels, and codes of all of them may be large
            at = np.flatnonzero(piece >= 0)
            rows.append(start + at)
            codes.append(piece[at])
            start += len(piece)
        return np.concatenate(rows), np.concatenate(codes), self.weights

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the labels, in the order they came."""
        return np.concatenate(self._weights) if self._weights else None

    def refuse_plus_minus_one(self) -> None:
        """Raise where -1 is likelier to be a class than to mean unlabelled."""
        ambiguous = -1 in self._marks and self.classes().tolist() == [1]
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
            if np.isinf(value) or value != np.floor(value):
                raise LabelError(
                    f"{self.name} holds {value}, a measurement and not a class; "
                    "labels must be integers or text."
                )
            value = int(value)
        if isinstance(value, bytes):
            value = value.decode("utf-8", errors="replace")
        if isinstance(value, str):
            # NUL characters pad text of fixed width; NumPy would take both for one class.
            value = value.rstrip("\0").strip()
        if value is None or value in self._marks or value in self._missing:
            return -1
        if self._text and whole_number(value) in self._marks:  # "-1.0"
            return -1
        if not isinstance(value, (int, str)):
            raise LabelError(
                f"{self.name} holds {value!r} ({type(value).__name__}); use integers or text."
            )
        return self._classes.setdefault(value, len(self._classes))

    def whole_numbers(self) -> list[int] | None:
        """The classes as integers, also when they came as text; None where some are none.

        Integers that 64 bits do not hold are no numbers here: they are kept as text.
        """
        found = [whole_number(value) if self._text else value for value in self._classes]
        return found if all(map(_is_integer, found)) else None  # type: ignore[return-value]

    def classes(self, *, as_text: bool = False) -> np.ndarray:
        """Class of each code: integers where all are, unless they are wanted as text."""
        whole = None if as_text else self.whole_numbers()
        if whole is not None and -1 not in whole:
            return np.array(whole, dtype=np.int64)
        # Where -1 is a class, integers would be taken for unlabelled: such classes become text.
        out = np.empty(len(self._classes), dtype=object)
        out[:] = [str(value) for value in (self._classes if whole is None else whole)]
        return out

    def _sorted_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows, increasing, their codes and weights."""
        rows, codes, weights = np.concatenate(self._rows), self.codes, self.weights
        order = np.argsort(rows, kind="stable")
        return rows[order], codes[order], None if weights is None else weights[order]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63
