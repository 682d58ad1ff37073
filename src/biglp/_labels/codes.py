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

MAX_CLASSES = 100_000

Marks = int | str | Sequence[int | str] | None
"""What marks a row without a label, beside empty, null and NaN. None: -1 and what programs write
for a missing value (``NA``, ``null``, ``?`` …)."""


@dataclass
class LabelCodes:
    """Codes of the labels read so far; -1 is unlabelled. Messages call the labels ``name``.

    ``ids`` are Arrow arrays, empty where labels are not by ID; ``missing`` counts labels that
    programs write for a missing value, and ``skipped`` entries of a labelling tool without answer.
    """

    n_rows: int | None
    name: str
    unlabelled: Marks = None
    missing: Counter[str] = field(default_factory=Counter, init=False)
    skipped: int = field(default=0, init=False)
    ids: list[Any] = field(default_factory=list, init=False)
    _classes: dict[Any, int] = field(default_factory=dict, init=False)
    _pieces: list[np.ndarray] = field(default_factory=list, init=False)
    _rows: list[np.ndarray] = field(default_factory=list, init=False)
    _weights: list[np.ndarray] = field(default_factory=list, init=False)
    _text: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Bring the marks of unlabelled rows into one form: as numbers and as text."""
        given = self.unlabelled
        marks = [-1] if given is None else [given] if isinstance(given, (int, str)) else [*given]
        self._marks = {*marks, *map(str, marks), ""}
        # What is counted is told: a class may be called so.
        self._missing = frozenset((*MISSING_TEXTS, "-1") if given is None else ()) - {""}

    def gather(self, pieces: Iterable[LabelPiece]) -> None:
        """Add the labels of all pieces."""
        for column, rows, ids, text, weights, total, skipped in pieces:
            if total is not None:
                self._expect(total)
            self.skipped += skipped
            self._text |= text
            if rows is not None:
                outside = rows[(rows < 0) | (rows >= (self.n_rows or np.iinfo(np.int64).max))]
                if outside.size:
                    raise LabelError(
                        f"{self.name} has a label for row {outside[0]:,}, but the rows are 0 to "
                        f"{(self.n_rows or 0) - 1:,}; count rows from 0."
                    )
            distinct, indices = distinct_values(column)
            # New classes get the next code. A label that is missing has index -1, the last.
            table = [self._code(value) for value in distinct[: MAX_CLASSES + 1]]
            if max(len(distinct), len(self._classes)) > MAX_CLASSES:
                raise LabelError(
                    f"{self.name} has more than {MAX_CLASSES:,} different labels (such as "
                    f"{distinct[0]!r}, {distinct[-1]!r}); are these measurements and not classes?"
                )
            codes = np.array([*table, -1], dtype=np.int64)[indices]
            for index, value in enumerate(distinct):
                if isinstance(value, str) and value.strip() in self._missing:
                    self.missing[value.strip()] += int((indices == index).sum())
            known = codes >= 0
            if weights is not None:
                self._weights.append(weights[known])
            if ids is not None:
                self.ids.append(ids.take(np.flatnonzero(known)))
            if rows is not None:
                self._rows.append(rows[known])
            if rows is not None or ids is not None:
                codes = codes[known]
            self._pieces.append(codes.astype(np.min_scalar_type(-len(self._classes) - 1)))

    def _expect(self, length: int) -> None:
        if self.n_rows is not None and length != self.n_rows:
            raise LabelError(
                f"{self.name} has {length:,} labels, but there are {self.n_rows:,} rows; give one "
                "label a row (-1 or empty where it is unknown), or 'row,label' pairs."
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

    @property
    def by_line(self) -> bool:
        """Whether there is one label a row, in the order of the rows."""
        return not self._rows and not self.ids

    @property
    def codes(self) -> np.ndarray:
        """Codes of all labels in the order they came.  (l,)."""
        return np.concatenate(self._pieces or [np.empty(0, dtype=np.int8)])

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the labels, in the order they came.  (l,)."""
        return np.concatenate(self._weights) if self._weights else None

    def count_rows(self) -> int:
        """Number of rows, labelled or not: as many as labels, or as was said for pairs."""
        if self.by_line:
            return sum(map(len, self._pieces))
        if self.n_rows is None:
            raise LabelError(f"{self.name} holds 'row,label' pairs; the number of rows is needed.")
        return self.n_rows

    def labelled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows, increasing and perhaps several times, codes of their labels, weights or None."""
        if self._rows:
            rows, codes, weights = np.concatenate(self._rows), self.codes, self.weights
            order = np.argsort(rows, kind="stable")
            return rows[order], codes[order], None if weights is None else weights[order]
        self._expect(self.count_rows())
        all_rows, all_codes, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for piece in self._pieces:  # few rows have labels, and codes of all of them may be large
            known = np.flatnonzero(piece >= 0)
            all_rows.append(start + known)
            all_codes.append(piece[known])
            start += len(piece)
        return np.concatenate(all_rows), np.concatenate(all_codes), self.weights

    def refuse_plus_minus_one(self) -> None:
        """Raise where -1 is likelier to be a class than to mean unlabelled."""
        ambiguous = -1 in self._marks and self.classes().tolist() == [1]
        if ambiguous and any(bool((piece < 0).any()) for piece in self._pieces):
            raise LabelError(
                f"{self.name} has the labels -1 and 1 only. -1 means unlabelled here; if it is a "
                "class, say what marks unlabelled rows instead, for example unlabelled=0."
            )

    def whole_numbers(self) -> list[int] | None:
        """The classes as integers, also when they came as text; None where some are none."""
        numbers = [whole_number(value) if self._text else value for value in self._classes]
        # Integers that 64 bits do not hold are no numbers here: they are kept as text.
        held = all(isinstance(n, int) and -(2**63) <= n < 2**63 for n in numbers)
        return numbers if held else None  # type: ignore[return-value]

    def classes(self, *, as_text: bool = False) -> np.ndarray:
        """Class of each code: integers where all are, unless they are wanted as text.  (c,)."""
        whole = None if as_text else self.whole_numbers()
        if whole is not None and -1 not in whole:
            return np.array(whole, dtype=np.int64)
        # Where -1 is a class, integers would be taken for unlabelled: such classes become text.
        names = np.empty(len(self._classes), dtype=object)
        names[:] = [str(value) for value in (self._classes if whole is None else whole)]
        return names


def distinct_values(column: Any) -> tuple[list[Any], np.ndarray]:
    """Distinct labels, and for each row the index of its label among them (-1 where null)."""
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
                present = np.bincount(shifted) > 0
                values = [low + offset for offset in np.flatnonzero(present).tolist()]
                return values, (np.cumsum(present) - 1)[shifted]
        distinct, indices = np.unique(column, return_inverse=True)
        return distinct.tolist(), indices
    encoded = column.dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    return encoded.dictionary.to_pylist(), as_places(encoded.indices)


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
