"""Where the labels of some rows are: a column of their table, files of labels, or both.

Files hold one label a row, ``row,label`` or ``id,label``, and may have weights beside them, as in
``row,label,weight``; a row may occur several times, which makes a label distribution. Only the
labels are read, a piece at a time, and what is kept is a small code for each.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from biglp._core.errors import BadRowsError, LabelError, LabelWarning, ParameterError
from biglp._files.uri import INSIDE, split_inside
from biglp._labels.labels import LabelsRead, labels_from_pairs
from biglp._rows.format import LabelColumns, LabelPiece
from biglp._rows.opening import InputFiles
from biglp._rows.source import DECODED_BYTES, explained_reading, some
from biglp._rows.written_numbers import MISSING_TEXTS

if TYPE_CHECKING:
    from biglp._tables.side_columns import RowColumn, RowColumns

OWN_NAMES = ("row", "label", "current_label", "suggested_label", "confidence", "doubt")
"""Columns of results, which IDs stand beside."""
NAMED_ROWS = 5
"""Rows with several labels that are named."""
LABELS_BY_NAME = ("label", "labels", "target")
"""Columns of a table that hold labels, by their names."""
MAX_CLASSES = 100_000

Marks = int | str | Sequence[int | str] | None
"""What marks a row without a label, beside empty, null and NaN. None: -1 and what programs write
for a missing value (``NA``, ``null``, ``?`` …)."""


@dataclass(frozen=True)
class LabelInput:
    """Where labels come from. Of several places the later one counts.

    ``labels`` are files, which come after the column of the rows' table. The three columns are
    those of the table with a line for each row, which is ``metadata`` or the rows themselves; the
    first two may also be those of the files. ``rows`` is None where they are in memory,
    ``reading`` says how they are read, and ``memory`` is the budget of the process.
    """

    rows: Any
    labels: tuple[Any, ...] = ()
    label_column: str | None = None
    weight_column: str | None = None
    id_column: str | None = None
    unlabelled: Marks = None
    reading: dict[str, Any] = field(default_factory=dict)
    metadata: Any = None
    memory: int | None = None

    files: InputFiles | None = field(init=False, repr=False)  # of the rows
    label_files: tuple[InputFiles, ...] = field(init=False, repr=False)
    metadata_files: InputFiles | None = field(init=False, repr=False)  # the table beside the rows
    # The table with a line for each row; None where there is none
    table_files: InputFiles | None = field(init=False, repr=False)
    # Whether the column of labels is an array in the files of the rows
    in_array: bool = field(init=False, repr=False)
    # Whether anything says where labels are, or the rows' files hold them
    anywhere: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        files = None if self.rows is None else InputFiles.of(self.rows)
        beside = None if self.metadata is None else InputFiles(self.metadata)
        table = files if self.metadata is None else beside
        said = bool(self.labels) or self.label_column is not None
        kind = None if files is None or beside is not None or self.labels else files.format
        derived = {
            "files": files,
            "label_files": tuple(InputFiles(os.fspath(f), for_labels=True) for f in self.labels),
            "metadata_files": beside,
            "table_files": table if table is not None and table.is_table else None,
            "in_array": said and kind is not None and kind.holds_arrays,
            "anywhere": said or (kind is not None and kind.holds_labels),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def check_unchanged(self) -> None:
        """Raise when a file that is not one of the rows is no longer what it was."""
        for files in (self.metadata_files, *self.label_files):
            if files is not None:
                files.check_unchanged()

    @property
    def decoding_bytes(self) -> int:
        """Memory that reading labels takes: those in tables load pyarrow, though rows may not."""
        plain = (".npy", ".txt")
        tables = self.metadata is not None or not all(str(n).endswith(plain) for n in self.labels)
        return DECODED_BYTES if tables else 0

    @cached_property
    def side_table(self) -> RowColumns:
        """The table with a line for each row."""
        if self.table_files is None:
            option, name = ("id_column", self.id_column)
            if name is None:
                option, name = ("label_column", self.label_column)
            where = "rows in memory" if self.files is None else self.files.files[0]
            raise ParameterError(
                f"{option}={name!r} means nothing for {where}, which is no table with named "
                "columns; leave it out, and give labels by row number."
            )
        from biglp._tables.side_columns import RowColumns  # needs pyarrow

        if self.metadata is None:
            return RowColumns(self.table_files, self.reading)
        _ = self.table_files.stamps  # before anything is read
        return RowColumns(self.table_files)

    @cached_property
    def ids(self) -> RowColumn | None:
        """The IDs of the rows."""
        if self.id_column is None:
            return None
        if self.id_column in OWN_NAMES:
            raise ParameterError(
                f"id_column={self.id_column!r} is what a column of the results is called "
                f"({', '.join(OWN_NAMES)}); give the column another name."
            )
        self.side_table.check("id_column", self.id_column)
        return self.side_table.column(self.id_column)

    @cached_property
    def in_rows(self) -> bool:
        """Whether the table with a line for each row has a column of labels."""
        if self.label_column is None or self.in_array:
            return False
        if self.labels:  # then the column may be one of the labels' files
            return self.table_files is not None and self.label_column in self.side_table.names
        self.side_table.check("label_column", self.label_column)
        return True

    @property
    def not_features(self) -> dict[str, Any]:
        """Options of the rows: columns of labels, weights and IDs are no features."""
        options: dict[str, Any] = {}
        if self.metadata is not None:
            return options
        dropped = []
        if self.in_rows:
            options["label_column"] = self.label_column
            if self.weight_column and self.weight_column in self.side_table.names:
                dropped.append(self.weight_column)
        if self.ids is not None:
            dropped.append(self.ids.name)
        if dropped:
            options["drop"] = tuple(dict.fromkeys((*self.reading.get("drop", ()), *dropped)))
        return options

    def gather(self, n_rows: int | None) -> LabelsRead:
        """Read the labels of the labelled rows, and say what was noticed on the way.

        Without ``n_rows`` there are as many rows as labels, given or not.
        """
        merged, n_rows, warnings = self.pairs(n_rows)
        try:
            labels = labels_from_pairs(merged.rows, merged.values, n_rows, merged.weights)
        except LabelError as error:  # too few classes: perhaps for the labels that were left out
            for warning in warnings:
                error.add_note(str(warning))
            raise
        if labels.classes.dtype.kind == "i":  # as short as they can be
            lowest, highest = int(labels.classes.min()), int(labels.classes.max())
            kind = np.result_type(np.int16, np.min_scalar_type(min(lowest, -1 - highest)))
            labels = replace(labels, classes=labels.classes.astype(kind))
        return LabelsRead(labels, merged.notes, warnings, self.unlabelled is not None)

    def pairs(self, n_rows: int | None) -> tuple[Merged, int, list[LabelWarning]]:
        """Rows and labels of all places, of however many classes; the number of rows; warnings."""
        if self.metadata_files is not None and self.files is not None:
            check_table_beside(self.files, self.metadata_files)
        if n_rows is None and self.labels and self.table_files is not None:
            n_rows = self.side_table.count()
        # Labels of each place, in the order in which they count.
        places: list[InputFiles | None] = [None] if self.in_rows else []
        if not places and not self.labels:
            assert self.files is not None
            places.append(self.files)
        parts, known, warnings, lost = list[Part](), n_rows, list[str](), list[str]()
        for files in (*places, *self.label_files):
            if files is None:
                from biglp._tables.side_columns import labels_in_columns  # needs pyarrow

                codes = LabelCodes(known, f"column {self.label_column!r}", self.unlabelled)
                columns = LabelColumns(self.label_column, self.weight_column, by_line=True)
                codes.gather(labels_in_columns(self.side_table.tables, columns))
            elif files is self.files:
                columns = LabelColumns(self.label_column if self.in_array else None)
                codes = labels_in_files(files, known, columns, self.unlabelled)
            else:
                columns = LabelColumns(
                    self.label_column, self.weight_column, self.id_column, must=not self.in_rows
                )
                codes = labels_in_files(files, known, columns, self.unlabelled)
            notes, by_id = list[str](), bool(codes.ids)
            if by_id:
                from biglp._labels.join_ids import join_ids  # needs pyarrow

                assert self.ids is not None
                rows, coded, weights, unknown, repeated = join_ids(codes, self.ids, self.memory)
                if unknown:
                    lost.append(
                        f"{codes.name}: {len(unknown):,} IDs are those of no row, and their labels "
                        f"were left out: {some(unknown, 5)}."
                    )
                    warnings.append(lost[-1])
                if repeated:
                    warnings.append(
                        f"{codes.name}: {len(repeated):,} IDs are those of several rows, and all "
                        f"of these got the label: {some(repeated, 5)}. If a row should have an ID "
                        "of its own, look for rows that occur twice."
                    )
            else:
                rows, coded, weights = codes.labelled()
                n_rows = n_rows or codes.n_rows
            numbers = codes.whole_numbers() is not None  # then -1 is what one expects
            missing = {mark: n for mark, n in codes.missing.items() if mark != "-1" or not numbers}
            if missing:
                counted = ", ".join(f"{mark!r} ({n:,})" for mark, n in missing.items())
                notes.append(
                    f"{codes.name}: taken for no label: {counted}. If that is a class, say what "
                    "marks rows without a label: --unlabelled VALUE, or None in y in Python."
                )
            if codes.skipped:
                notes.append(
                    f"{codes.name}: {codes.skipped:,} entries without an answer were left out."
                )
                lost.append(notes[-1])
            if weights is None and (by_id or codes.rows):  # several labels of a row are votes
                rows, coded, weights, several, differing = votes(rows, coded)
                if several:
                    note = f"{codes.name}: {several:,} rows have several labels"
                    if len(differing):
                        where = self.named(differing)
                        note += f", which became label distributions where they differ: in {where}"
                    notes.append(f"{note}.")
            parts.append(Part(codes, rows, coded, weights, notes))
        # Columns of the rows' table that look like labels, where labels are those of files.
        in_files = self.labels and not self.label_column and self.metadata is None
        if in_files and self.table_files is not None and not self.reading.get("columns"):
            skipped = {self.id_column, *self.reading.get("drop", ())}
            warnings += [
                f"The table of the rows has a column {name!r}, which is taken as a feature, since "
                f"labels are read from {os.fspath(self.labels[0])}. If it holds labels too, give "
                f"label_column={name!r}, --label-column {name} (those of the file count more); if "
                f"not, drop=[{name!r}], --drop {name} leaves it out."
                for name in LABELS_BY_NAME
                if name in self.side_table.names and name not in skipped
            ]
        if self.metadata_files is not None:
            self.metadata_files.check_unchanged()
        if lost and self.reading.get("strict"):
            raise LabelError(f"{lost[0]} With strict=True (--strict) nothing is left out.")
        assert n_rows is not None
        return merge(parts, self.named), n_rows, list(map(LabelWarning, warnings))

    def named(self, rows: np.ndarray) -> str:
        """How many rows these are, and the first of them, by ID where rows have one."""
        first = rows[:NAMED_ROWS]
        names = [f"{row:,}" for row in first] if self.ids is None else map(repr, self.ids.at(first))
        what = "row" if len(rows) == 1 else "rows"
        more = f" and {len(rows) - len(first):,} more" if len(rows) > len(first) else ""
        return f"{len(rows):,} {what} ({', '.join(names)}{more})"


def labels_in_files(
    named: InputFiles, n_rows: int | None, columns: LabelColumns, unlabelled: Marks = None
) -> LabelCodes:
    """Read the labels in files of any format, with weights where there are any."""
    codes = LabelCodes(n_rows, str(named.paths), unlabelled)
    _ = named.stamps  # taken before anything is read, and checked after it
    files = named.files
    if columns.label is not None and named.format.holds_arrays:
        files = tuple(f"{split_inside(file)[0]}{INSIDE}{columns.label}" for file in files)
        columns = columns._replace(label=None)
    label = None if named.format.names_labels else columns.label
    weight = None if named.is_table else columns.weight
    for option, value in (("column", label), ("weight_column", weight)):
        if value is not None and columns.must:
            raise ParameterError(
                f"{option}={value!r} means nothing for {named.files[0]}, which is no table."
            )
    with explained_reading(files[0]):
        codes.gather(named.format.read_labels(files, columns, n_rows))
    named.check_unchanged()
    if named.format.has_minus_one:
        codes.refuse_plus_minus_one()
    return codes


def check_table_beside(rows: InputFiles, table: InputFiles) -> None:
    """Check that a table beside rows has a line for each of them.

    Embeddings often come as shards of numbers, with labels and IDs in a table of metadata. Where
    there are as many files of rows as of the table, each is compared with its own.
    """
    if not table.is_table:
        raise ParameterError(
            f"metadata={table.paths!r} (--metadata) must be a table, such as Parquet or CSV, and "
            f"{table.files[0]} is not; labels in an array are given with labels= (--labels)."
        )
    lines = table.count_rows()
    if not rows.in_files:
        return
    counts = rows.count_rows()
    if len(lines) == len(counts) > 1:
        wrong = [
            f"{file} has {count:,} and {path} {length:,}"
            for file, count, path, length in zip(
                rows.files, counts, table.files, lines, strict=True
            )
            if count != length
        ]
        if wrong:
            more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
            raise BadRowsError(
                f"{len(wrong):,} of {len(counts):,} shards have another number of rows than the "
                f"table beside them: {'; '.join(wrong[:3])}{more}. Files are compared in order of "
                "their names; check metadata= (--metadata), or write the shards again."
            )
    elif sum(lines) != sum(counts):
        of_table, of_rows = (
            files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"
            for files in (table.files, rows.files)
        )
        raise BadRowsError(
            f"the table beside the rows ({of_table}) has {sum(lines):,} rows, and "
            f"{of_rows} has {sum(counts):,}; it must have one for each, in the same "
            "order. Check metadata= (--metadata)."
        )


# --------------------------------------------------------------------------------------------------
# Labels as they are gathered: a small integer code for each, and the class of each code.


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
    rows: list[np.ndarray] = field(default_factory=list, init=False)  # empty: one label a row
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
            table = [-1] * min(len(distinct), MAX_CLASSES + 1)
            for index in range(len(table)):
                value = distinct[index]
                if isinstance(value, bool):
                    value = int(value)
                if isinstance(value, float):
                    if np.isnan(value):
                        continue
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
                    continue
                if self._text and whole_number(value) in self._marks:  # "-1.0"
                    continue
                if not isinstance(value, (int, str)):
                    raise LabelError(
                        f"{self.name} holds {value!r} ({type(value).__name__}); use integers or "
                        "text."
                    )
                table[index] = self._classes.setdefault(value, len(self._classes))
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
                self.rows.append(rows[known])
            if rows is not None or ids is not None:
                codes = codes[known]
            self._pieces.append(codes.astype(np.min_scalar_type(-len(self._classes) - 1)))

    def _expect(self, length: int) -> None:
        if self.n_rows is not None and length != self.n_rows:
            raise LabelError(
                f"{self.name} has {length:,} labels, but there are {self.n_rows:,} rows; give one "
                "label a row (-1 or empty where it is unknown), or 'row,label' pairs."
            )

    @property
    def codes(self) -> np.ndarray:
        """Codes of all labels in the order they came.  (l,)."""
        return np.concatenate(self._pieces or [np.empty(0, dtype=np.int8)])

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the labels, in the order they came.  (l,)."""
        return np.concatenate(self._weights) if self._weights else None

    def labelled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows, increasing and perhaps several times, codes of their labels, weights or None."""
        weights = self.weights
        if self.rows:
            if self.n_rows is None:
                raise LabelError(
                    f"{self.name} holds 'row,label' pairs; the number of rows is needed."
                )
            rows = np.concatenate(self.rows)
            order = np.argsort(rows, kind="stable")
            return rows[order], self.codes[order], None if weights is None else weights[order]
        n_rows = sum(map(len, self._pieces))
        self._expect(n_rows)
        self.n_rows = n_rows
        all_rows, all_codes, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for piece in self._pieces:  # few rows have labels, and codes of all of them may be large
            known = np.flatnonzero(piece >= 0)
            all_rows.append(start + known)
            all_codes.append(piece[known])
            start += len(piece)
        return np.concatenate(all_rows), np.concatenate(all_codes), weights

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
    from biglp._tables.kinds import as_places  # an Arrow column

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


# --------------------------------------------------------------------------------------------------
# Labels from several places made one: votes of several people, and later labels over earlier.


class Part(NamedTuple):
    """Labels from one place: rows, increasing and perhaps several times, and codes.  (l,) each."""

    codes: LabelCodes
    rows: np.ndarray
    coded: np.ndarray
    weights: np.ndarray | None
    notes: list[str]


def votes(
    rows: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int, np.ndarray]:
    """Count the labels of each row.

    Returns rows, increasing, each of their labels once, and the share that it has among those of
    its row (None where no row has two); how many rows have several labels, and which have
    different ones.
    """
    if len(rows) < 2 or (np.diff(rows) > 0).all():
        return rows, codes, None, 0, rows[:0]
    width = int(codes.max()) + 1
    pairs, counts = np.unique(rows.astype(np.int64) * width + codes, return_counts=True)
    distinct, index, labels = np.unique(pairs // width, return_inverse=True, return_counts=True)
    totals = np.bincount(index, counts)
    differing = distinct[labels > 1]
    weights = counts / totals[index] if len(differing) else None
    return distinct[index], pairs % width, weights, int((totals > 1).sum()), differing


class Merged(NamedTuple):
    """Labels from all places: rows, increasing, their classes, and weights or None.  (l,)."""

    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    notes: list[str]


def merge(parts: Sequence[Part], named: Callable[[np.ndarray], str]) -> Merged:
    """Join labels; a row has those of the last place that has any for it.

    ``named`` says which rows those are whose labels differ.
    """
    # One type for all: 7 in a table and "7" in a text file are the same class.
    as_text = any(-1 in (part.codes.whole_numbers() or [-1]) for part in parts if len(part.rows))
    plain = all(part.weights is None for part in parts)
    kind = object if as_text else np.int64
    of_parts = (
        (
            part.rows,
            part.codes.classes(as_text=as_text)[part.coded].astype(kind, copy=False),
            part.weights if plain or part.weights is not None else np.ones(len(part.rows)),
        )
        for part in parts
    )
    rows, values, weights = next(of_parts)
    if len(parts) == 1:  # nothing is copied: labels may be as many as rows
        return Merged(rows, values, weights, parts[0].notes)
    n_labelled = len(np.unique(rows))
    notes = [*parts[0].notes, f"{parts[0].codes.name}: {n_labelled:,} labelled rows."]
    later_parts = zip(parts[1:], of_parts, strict=True)
    for part, (later_rows, later_values, later_weights) in later_parts:
        # Of a row that occurs several times the first label stands for all in what is counted.
        before, first_before = np.unique(rows, return_index=True)
        after, first_after = np.unique(later_rows, return_index=True)
        both, old, new = np.intersect1d(before, after, assume_unique=True, return_indices=True)
        differ = both[values[first_before[old]] != later_values[first_after[new]]]
        differing = f", {named(differ)} by another one" if len(differ) else ""
        line = f"{part.codes.name}: {len(after):,} labelled rows"
        replaced = f"{len(old):,} of them labelled before and replaced{differing}."
        notes += [
            *part.notes,
            f"{line}, {replaced if len(old) else 'none of them labelled before.'}",
        ]
        stays = ~np.isin(rows, later_rows)
        rows = np.concatenate([rows[stays], later_rows])
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], np.concatenate([values[stays], later_values])[order]
        if weights is not None and later_weights is not None:
            weights = np.concatenate([weights[stays], later_weights])[order]
    return Merged(rows, values, weights, notes)
