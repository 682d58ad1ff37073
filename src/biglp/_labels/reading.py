"""Where the labels of some rows are: a column of their table, files beside it, or both."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from biglp._core.errors import BadRowsError, LabelError, LabelWarning, ParameterError
from biglp._files.uri import INSIDE, split_inside
from biglp._labels.codes import LabelCodes, Marks, smallest_integers
from biglp._labels.labels import Labels, labels_from_pairs, nothing_to_label, suspicions
from biglp._rows.encoding import some
from biglp._rows.format import LabelColumns
from biglp._rows.opening import InputFiles
from biglp._rows.source import DECODED_BYTES, explained_reading

if TYPE_CHECKING:
    from biglp._tables.side_columns import RowColumn, RowColumns


# --------------------------------------------------------------------------------------------------
# Labels from files: a column of the table, one label a row, ``row,label`` or ``id,label``.
#
# A table may have a column of weights as well, as in ``row,label,weight``. A row may occur several
# times, which makes a label distribution.
#
# Only the labels are read, a piece at a time, and what is kept is a small code for each row. A row
# is unlabelled where its label is -1, empty, null or NaN.


@overload
def read_labels(
    path: Any,
    n_rows: int | None = ...,
    *,
    column: str | None = ...,
    unlabelled: Marks = ...,
    sparse: Literal[False] = ...,
) -> np.ndarray: ...


@overload
def read_labels(
    path: Any,
    n_rows: int | None = ...,
    *,
    column: str | None = ...,
    unlabelled: Marks = ...,
    sparse: Literal[True],
) -> tuple[np.ndarray, np.ndarray]: ...


def read_labels(
    path: Any,
    n_rows: int | None = None,
    *,
    column: str | None = None,
    unlabelled: Marks = None,
    sparse: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Read labels.

    Parameters
    ----------
    path : path
        ``.npy`` of one label a row; ``.txt`` of one a line; a table (CSV, Parquet, Arrow) with one
        column of labels or with columns ``row`` and ``label``; the table of the features itself,
        with ``column``; a LIBSVM file, whose lines begin with the label; an array of a ``.npz`` or
        HDF5 file or a Zarr folder, as ``file.h5::name``; or ``sim:…``.
    n_rows : int, optional
        Rows that there must be labels for; needed for ``row,label`` pairs.
    column : str, optional
        Column or array that holds the labels.
    unlabelled : int, str, sequence of these or None
        What marks a row without a label, beside empty, null and NaN.
    sparse : bool
        Return the labelled rows only.

    Returns
    -------
    labels : ndarray of shape (n_rows,)
        Small integers with -1 for unlabelled, or texts (dtype object) with None for unlabelled.
    rows, values : ndarrays of shape (n_labelled,)
        With ``sparse``: the labelled rows, increasing, and their labels.

    Raises
    ------
    LabelError
        When the number of labels is not ``n_rows``, a row is out of range, or a row has two labels.
    """
    columns = LabelColumns(column, by_line=column is not None)
    codes = gather_labels(path, n_rows, columns, unlabelled)
    if not sparse:
        return codes.dense()
    rows, found, _ = codes.labelled()
    return rows, codes.classes()[found]


def gather_labels(
    path: Any,
    n_rows: int | None = None,
    columns: LabelColumns | None = None,
    unlabelled: Marks = None,
) -> LabelCodes:
    """Read the labels in a file of any format, with weights where there are any.

    Parameters
    ----------
    path, n_rows, unlabelled
        As in :func:`read_labels`; the files may have been looked up already.
    columns : LabelColumns, optional
        Columns of labels, weights and IDs. By default the weights are the third column of a table
        of ``row``, ``label`` and ``weight``.
    """
    columns = columns or LabelColumns()
    named = path
    if not isinstance(path, InputFiles):
        named = InputFiles(path, for_labels=not columns.by_line)
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


# --------------------------------------------------------------------------------------------------
# A table beside the rows: a line for each row, in as many files as there are shards or in others.
#
# Embeddings often come as shards of numbers, with labels and IDs in a table of metadata beside
# them.


def check_table_beside(rows: InputFiles, table: InputFiles) -> None:
    """Check that the table beside rows has a line for each of them.

    Parameters
    ----------
    rows : InputFiles
        The rows. Where there are as many files of them as of the table, each is compared with its
        own; else all rows with all lines.
    table : InputFiles

    Raises
    ------
    ParameterError
        When it is no table.
    BadRowsError
        When the numbers of rows differ.
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
        _compare_each(rows.files, counts, table.files, lines)
    elif sum(lines) != sum(counts):
        raise BadRowsError(
            f"the table beside the rows ({_called(table.files)}) has {sum(lines):,} rows, and "
            f"{_called(rows.files)} has {sum(counts):,}; it must have one for each, in the same "
            "order. Check metadata= (--metadata)."
        )


def _compare_each(
    files: Sequence[str], counts: Sequence[int], tables: Sequence[str], lines: Sequence[int]
) -> None:
    wrong = [
        f"{file} has {count:,} and {table} {length:,}"
        for file, count, table, length in zip(files, counts, tables, lines, strict=True)
        if count != length
    ]
    if wrong:
        more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
        raise BadRowsError(
            f"{len(wrong):,} of {len(files):,} shards have another number of rows than the table "
            f"beside them: {'; '.join(wrong[:3])}{more}. Files are compared in order of their "
            "names; check metadata= (--metadata), or write the shards again."
        )


def _called(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"


# --------------------------------------------------------------------------------------------------
# Labels from several places made one: votes of several people, and later labels over earlier.


@dataclass(frozen=True)
class Part:
    """Labels from one place.

    Attributes
    ----------
    codes : LabelCodes
        What was read.
    rows, coded : ndarrays of shape (l,)
        Rows, increasing, and the codes of their labels; a row may occur several times.
    weights : ndarray of shape (l,), optional
    told : list of str
        What the user should hear of them.
    """

    codes: LabelCodes
    rows: np.ndarray
    coded: np.ndarray
    weights: np.ndarray | None = None
    told: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, codes: LabelCodes, rows: np.ndarray, coded: np.ndarray, weights: np.ndarray | None
    ) -> Part:
        """Take labels as they were read; without weights, several of a row are votes."""
        told = []
        numbers = codes.whole_numbers() is not None  # then -1 is what one expects
        missing = {mark: n for mark, n in codes.missing.items() if mark != "-1" or not numbers}
        if missing:
            counted = ", ".join(f"{mark!r} ({n:,})" for mark, n in missing.items())
            told.append(
                f"{codes.name}: taken for no label: {counted}. If that is a class, say what marks "
                "rows without a label with --unlabelled VALUE."
            )
        if codes.skipped:
            told.append(f"{codes.name}: {codes.skipped:,} entries without an answer were left out.")
        if weights is None and not codes.by_line:
            rows, coded, weights, several, differing = votes(rows, coded)
            if several:
                told.append(
                    f"{codes.name}: {several:,} rows have several labels; in {differing:,} of them "
                    "they differ" + ("." if not differing else ", and became label distributions.")
                )
        return cls(codes, rows, coded, weights, told)


@dataclass(frozen=True)
class Merged:
    """Labels from all places: rows, increasing, their classes, and weights or None."""

    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    told: list[str]


def merge(parts: Sequence[Part]) -> Merged:
    """Join labels; a row has those of the last place that has any for it."""
    # One type for all: 7 in a table and "7" in a text file are the same class.
    as_text = any(-1 in (part.codes.whole_numbers() or [-1]) for part in parts if len(part.rows))
    told: list[str] = []
    plain = all(part.weights is None for part in parts)
    rows, values, weights = _labels_of(parts[0], as_text, plain)
    for number, part in enumerate(parts):
        told += part.told
        if len(parts) == 1:
            break  # nothing is copied: labels may be as many as rows
        part_rows, fresh, part_weights = _labels_of(part, as_text, plain)
        told.append(_overlap(number, part, (rows, values), fresh))
        if number == 0:
            continue
        kept = ~np.isin(rows, part_rows)
        rows = np.concatenate([rows[kept], part_rows])
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], np.concatenate([values[kept], fresh])[order]
        if weights is not None and part_weights is not None:
            weights = np.concatenate([weights[kept], part_weights])[order]
    return Merged(rows, values, weights, told)


def _labels_of(
    part: Part, as_text: bool, plain: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows, classes and weights of a part; None where no part has weights."""
    values = part.codes.classes(as_text=as_text)[part.coded]
    values = values.astype(object if as_text else np.int64, copy=False)
    if plain:
        return part.rows, values, None
    weights = np.ones(len(part.rows)) if part.weights is None else part.weights
    return part.rows, values, weights


def votes(
    rows: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int, int]:
    """Count the labels of each row.

    Returns
    -------
    rows, codes : ndarrays
        Rows, increasing, and each of their labels once.
    weights : ndarray or None
        The share that a label has among those of its row; None where no row has two.
    several, differing : int
        Rows with several labels, and with different ones.
    """
    if len(rows) < 2 or (np.diff(rows) > 0).all():
        return rows, codes, None, 0, 0
    width = int(codes.max()) + 1
    pairs, counts = np.unique(rows.astype(np.int64) * width + codes, return_counts=True)
    distinct, places, labels = np.unique(pairs // width, return_inverse=True, return_counts=True)
    totals = np.bincount(places, counts)
    several, differing = int((totals > 1).sum()), int((labels > 1).sum())
    weights = counts / totals[places] if differing else None
    return distinct[places], pairs % width, weights, several, differing


def _overlap(
    number: int, part: Part, known: tuple[np.ndarray, np.ndarray], fresh: np.ndarray
) -> str:
    """How many labels of a place there are, and how many of them replace others."""
    rows, first = np.unique(part.rows, return_index=True)
    line = f"{part.codes.name}: {len(rows):,} labelled rows"
    if number == 0:
        return f"{line}."
    known_rows, known_first = np.unique(known[0], return_index=True)
    _, old, new = np.intersect1d(known_rows, rows, assume_unique=True, return_indices=True)
    other = int((known[1][known_first[old]] != fresh[first[new]]).sum())
    if not len(old):
        return f"{line}, none of them labelled before."
    return f"{line}, {len(old):,} of them labelled before and replaced ({other:,} differ)."


def told_of_ids(name: str, unknown: list[Any], repeated: list[Any]) -> list[str]:
    """What is wrong with the IDs of labels."""
    found = []
    if unknown:
        found.append(
            f"{name}: {len(unknown):,} IDs are those of no row, and their labels were left out: "
            f"{some(unknown, 5)}."
        )
    if repeated:
        found.append(
            f"{name}: {len(repeated):,} IDs are those of several rows, and all of these got the "
            f"label: {some(repeated, 5)}. If a row should have an ID of its own, look for rows "
            "that occur twice."
        )
    return found


# --------------------------------------------------------------------------------------------------


OWN_NAMES = ("row", "label", "current_label", "suggested_label", "confidence", "doubt")
"""Columns of results, which IDs stand beside."""
LABELS_BY_NAME = ("label", "labels", "target")
"""Columns of a table that hold labels, by their names."""


@dataclass(frozen=True)
class LabelsRead:
    """Labels that were read, and what the user should hear about them.

    Attributes
    ----------
    labels : Labels
    told : list of str
        Counts: labels of each place, those that replace others, votes, entries without answer.
    warnings : list of LabelWarning
        IDs that are those of no row, or of several.
    marked : bool
        Whether the user has said what marks rows without a label.
    """

    labels: Labels
    told: list[str]
    warnings: list[LabelWarning]
    marked: bool = False

    def suspicions(self, *, all_labelled: bool = True) -> list[LabelWarning]:
        """The warnings, labels that may mean none, and (as asked) that no row is unlabelled."""
        more = nothing_to_label(self.labels) if all_labelled else []
        return [*self.warnings, *suspicions(self.labels, names=not self.marked), *more]


@dataclass(frozen=True)
class LabelInput:
    """Where labels come from. Of several places the later one counts.

    Attributes
    ----------
    rows : path, list of paths, InputFiles or None
        The rows; None where they are in memory.
    labels : tuple of path
        Files of labels. They come after those in the table of the rows.
    label_column, weight_column, id_column : str or None
        Columns of the table of the rows; the first two may also be those of the files.
    unlabelled : int, str, sequence of these or None
        What marks a row without a label.
    reading : dict
        How the rows are read.
    metadata : path, list of paths or None
        A table beside the rows with a line for each, whose columns these are; by default they are
        columns of the rows' own table.
    memory : int or None
        Budget of the process, for joins by ID.
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

    @cached_property
    def files(self) -> InputFiles | None:
        """Files of the rows."""
        return None if self.rows is None else InputFiles.of(self.rows)

    @cached_property
    def label_files(self) -> tuple[InputFiles, ...]:
        """The files of labels."""
        return tuple(InputFiles(os.fspath(path), for_labels=True) for path in self.labels)

    @cached_property
    def metadata_files(self) -> InputFiles | None:
        """Files of the table beside the rows, if one was named."""
        return None if self.metadata is None else InputFiles(self.metadata)

    @property
    def table_files(self) -> InputFiles | None:
        """Files of the table with a line for each row; None where there is none."""
        files = self.files if self.metadata is None else self.metadata_files
        return files if files is not None and files.is_table else None

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
    def beside(self) -> RowColumns:
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
        self.beside.check("id_column", self.id_column)
        return self.beside.column(self.id_column)

    @cached_property
    def in_rows(self) -> bool:
        """Whether the table with a line for each row has a column of labels."""
        if self.label_column is None or self.in_array:
            return False
        if self.labels:  # then the column may be one of the labels' files
            return self.table_files is not None and self.label_column in self.beside.names
        self.beside.check("label_column", self.label_column)
        return True

    @cached_property
    def in_array(self) -> bool:
        """Whether the column of labels is an array in the files of the rows."""
        beside = self.label_column is not None and not self.labels and self.metadata is None
        return beside and self.files is not None and self.files.format.holds_arrays

    @property
    def anywhere(self) -> bool:
        """Whether anything says where labels are."""
        return bool(self.labels) or self.label_column is not None or self.holds_labels

    @property
    def holds_labels(self) -> bool:
        """Whether the rows' files hold labels in a place that need not be named."""
        if self.files is None or self.metadata is not None:
            return False
        return self.files.format.holds_labels

    @property
    def not_features(self) -> dict[str, Any]:
        """Options of the rows: columns of labels, weights and IDs are no features."""
        found: dict[str, Any] = {}
        if self.metadata is not None:
            return found
        if self.in_rows:
            found["label_column"] = self.label_column
        others = [self.weight_column] if self.weight_column and self.label_column else []
        others = [name for name in others if self.in_rows and name in self.beside.names]
        if self.ids is not None:
            others.append(self.ids.name)
        if others:
            found["drop"] = tuple(dict.fromkeys((*self.reading.get("drop", ()), *others)))
        return found

    def read(self, n_rows: int | None) -> Labels:
        """Read the labels of the labelled rows; integers become as short as they can."""
        return self.gather(n_rows).labels

    def gather(self, n_rows: int | None) -> LabelsRead:
        """Read the labels of the labelled rows, and say what was found on the way.

        Without ``n_rows`` there are as many rows as labels, given or not.
        """
        merged, n_rows, warnings = self.pairs(n_rows)
        try:
            labels = labels_from_pairs(merged.rows, merged.values, n_rows, merged.weights)
        except LabelError as error:  # too few classes: perhaps for the labels that were left out
            for warning in warnings:
                error.add_note(str(warning))
            raise
        if labels.classes.dtype.kind == "i":
            kind = np.promote_types(smallest_integers(labels.classes), np.int16)
            labels = replace(labels, classes=labels.classes.astype(kind))
        return LabelsRead(labels, merged.told, warnings, self.unlabelled is not None)

    def pairs(self, n_rows: int | None) -> tuple[Merged, int, list[LabelWarning]]:
        """Rows and labels of all places, of however many classes; the number of rows; warnings."""
        if self.metadata_files is not None and self.files is not None:
            check_table_beside(self.files, self.metadata_files)
        if n_rows is None and self.labels and self.table_files is not None:
            n_rows = self.beside.count()
        parts, warnings = [], list[LabelWarning]()
        for codes in self._read_all(n_rows):
            if not codes.ids:
                parts.append(Part.of(codes, *codes.labelled()))
                n_rows = n_rows or codes.count_rows()
                continue
            from biglp._labels.join_ids import join_ids  # needs pyarrow

            assert self.ids is not None
            joined = join_ids(codes, self.ids, self.memory)
            parts.append(Part.of(codes, joined.rows, joined.codes, joined.weights))
            told = told_of_ids(codes.name, joined.unknown, joined.repeated)
            warnings += [LabelWarning(line) for line in told]
        warnings += self._labels_among_features()
        if self.metadata_files is not None:
            self.metadata_files.check_unchanged()
        merged = merge(parts)
        assert n_rows is not None
        return merged, n_rows, warnings

    def _labels_among_features(self) -> list[LabelWarning]:
        """Columns of the rows' table that look like labels, where labels are those of files."""
        if not self.labels or self.label_column or self.metadata is not None:
            return []
        if self.table_files is None or self.reading.get("columns"):
            return []
        left_out = {self.id_column, *self.reading.get("drop", ())}
        names = [name for name in LABELS_BY_NAME if name in self.beside.names]
        return [
            LabelWarning(
                f"The table of the rows has a column {name!r}, which is taken as a feature, since "
                f"labels are read from {os.fspath(self.labels[0])}. If it holds labels too, give "
                f"--label-column {name} (those of the file count more); if not, --drop {name} "
                "leaves it out."
            )
            for name in names
            if name not in left_out
        ]

    def _read_all(self, n_rows: int | None) -> Iterator[LabelCodes]:
        """Labels of each place, in the order in which they count."""
        if self.in_rows:
            from biglp._tables.side_columns import labels_in_columns  # needs pyarrow

            name = f"column {self.label_column!r}"
            codes = LabelCodes(n_rows, name, self.unlabelled)
            columns = LabelColumns(self.label_column, self.weight_column, by_line=True)
            codes.gather(labels_in_columns(self.beside.tables, columns))
            yield codes
        elif not self.labels:
            array = self.label_column if self.in_array else None
            yield gather_labels(self.files, n_rows, LabelColumns(array), self.unlabelled)
        columns = LabelColumns(
            self.label_column, self.weight_column, self.id_column, must=not self.in_rows
        )
        for files in self.label_files:
            yield gather_labels(files, n_rows, columns, self.unlabelled)
