"""Where the labels of some rows are: a column of their table, files of labels, or both.

Files hold one label a row, ``row,label`` or ``id,label``, and may have weights beside them, as in
``row,label,weight``; a row may occur several times, which makes a label distribution. Only the
labels are read, a piece at a time, and what is kept is a small code for each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from biglp._core.errors import BadRowsError, LabelError, LabelWarning, ParameterError
from biglp._files.uri import INSIDE, split_inside
from biglp._labels.codes import LabelCodes, Marks
from biglp._labels.labels import Labels, labels_from_pairs, suspicions
from biglp._rows.format import LabelColumns
from biglp._rows.opening import InputFiles
from biglp._rows.source import DECODED_BYTES, explained_reading, some

if TYPE_CHECKING:
    from biglp._tables.side_columns import RowColumn, RowColumns

OWN_NAMES = ("row", "label", "current_label", "suggested_label", "confidence", "doubt")
"""Columns of results, which IDs stand beside."""
NAMED_ROWS = 5
"""Rows with several labels that are named."""
LABELS_BY_NAME = ("label", "labels", "target")
"""Columns of a table that hold labels, by their names."""


@dataclass(frozen=True)
class LabelsRead:
    """Labels that were read, and what the user should hear about them."""

    labels: Labels
    notes: list[str]
    """Counts: labels of each place, those that replace others, votes, entries without answer."""
    warnings: list[LabelWarning]
    """IDs that are those of no row, or of several."""
    marked: bool = False
    """Whether the user has said what marks rows without a label."""

    def suspicions(self, *, all_labelled: bool = True) -> list[LabelWarning]:
        """The warnings, labels that may mean none, and (if wanted) that no row is unlabelled."""
        labels = self.labels
        warnings = [*self.warnings, *suspicions(labels, names=not self.marked)]
        if all_labelled and len(labels.rows) == labels.n_rows:
            text = (
                f"every one of the {labels.n_rows:,} rows has a label, so there is none to find "
                "one for. If one of the labels means that a row has none, name it with "
                "--unlabelled VALUE."
            )
            warnings.append(LabelWarning(text))
        return warnings


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
        if self.label_column is None or self._in_array:
            return False
        if self.labels:  # then the column may be one of the labels' files
            return self.table_files is not None and self.label_column in self.side_table.names
        self.side_table.check("label_column", self.label_column)
        return True

    @property
    def _in_array(self) -> bool:
        """Whether the column of labels is an array in the files of the rows."""
        if self.label_column is None or self.labels or self.metadata is not None:
            return False
        return self.files is not None and self.files.format.holds_arrays

    @property
    def anywhere(self) -> bool:
        """Whether anything says where labels are, or the rows' files hold them."""
        if self.labels or self.label_column is not None:
            return True
        return self.metadata is None and self.files is not None and self.files.format.holds_labels

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
        parts, warnings = [], list[str]()
        for codes in self._places(n_rows):
            if not codes.ids:
                parts.append(Part.from_codes(codes, *codes.labelled()))
                n_rows = n_rows or codes.count_rows()
                continue
            from biglp._labels.join_ids import join_ids  # needs pyarrow

            assert self.ids is not None
            rows, coded, weights, unknown, repeated = join_ids(codes, self.ids, self.memory)
            parts.append(Part.from_codes(codes, rows, coded, weights))
            if unknown:
                warnings.append(
                    f"{codes.name}: {len(unknown):,} IDs are those of no row, and their labels "
                    f"were left out: {some(unknown, 5)}."
                )
            if repeated:
                warnings.append(
                    f"{codes.name}: {len(repeated):,} IDs are those of several rows, and all of "
                    f"these got the label: {some(repeated, 5)}. If a row should have an ID of its "
                    "own, look for rows that occur twice."
                )
        # Columns of the rows' table that look like labels, where labels are those of files.
        in_files = self.labels and not self.label_column and self.metadata is None
        if in_files and self.table_files is not None and not self.reading.get("columns"):
            skipped = {self.id_column, *self.reading.get("drop", ())}
            warnings += [
                f"The table of the rows has a column {name!r}, which is taken as a feature, since "
                f"labels are read from {os.fspath(self.labels[0])}. If it holds labels too, give "
                f"--label-column {name} (those of the file count more); if not, --drop {name} "
                "leaves it out."
                for name in LABELS_BY_NAME
                if name in self.side_table.names and name not in skipped
            ]
        if self.metadata_files is not None:
            self.metadata_files.check_unchanged()
        assert n_rows is not None
        return merge(parts), n_rows, list(map(LabelWarning, warnings))

    def _places(self, n_rows: int | None) -> Iterator[LabelCodes]:
        """Labels of each place, in the order in which they count."""
        if self.in_rows:
            from biglp._tables.side_columns import labels_in_columns  # needs pyarrow

            codes = LabelCodes(n_rows, f"column {self.label_column!r}", self.unlabelled)
            columns = LabelColumns(self.label_column, self.weight_column, by_line=True)
            codes.gather(labels_in_columns(self.side_table.tables, columns))
            yield codes
        elif not self.labels:
            assert self.files is not None
            array = self.label_column if self._in_array else None
            yield labels_in_files(self.files, n_rows, LabelColumns(array), self.unlabelled)
        columns = LabelColumns(
            self.label_column, self.weight_column, self.id_column, must=not self.in_rows
        )
        for files in self.label_files:
            yield labels_in_files(files, n_rows, columns, self.unlabelled)


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
# Labels from several places made one: votes of several people, and later labels over earlier.


class Part(NamedTuple):
    """Labels from one place: rows, increasing and perhaps several times, and codes.  (l,) each."""

    codes: LabelCodes
    rows: np.ndarray
    coded: np.ndarray
    weights: np.ndarray | None
    notes: list[str]

    @classmethod
    def from_codes(
        cls, codes: LabelCodes, rows: np.ndarray, coded: np.ndarray, weights: np.ndarray | None
    ) -> Part:
        """Take labels as they were read; without weights, several of a row are votes."""
        notes = []
        numbers = codes.whole_numbers() is not None  # then -1 is what one expects
        missing = {mark: n for mark, n in codes.missing.items() if mark != "-1" or not numbers}
        if missing:
            counted = ", ".join(f"{mark!r} ({n:,})" for mark, n in missing.items())
            notes.append(
                f"{codes.name}: taken for no label: {counted}. If that is a class, say what marks "
                "rows without a label with --unlabelled VALUE."
            )
        if codes.skipped:
            notes.append(
                f"{codes.name}: {codes.skipped:,} entries without an answer were left out."
            )
        if weights is None and not codes.by_line:
            rows, coded, weights, several, differing = votes(rows, coded)
            if several:
                first = ", ".join(f"{row:,}" for row in differing[:NAMED_ROWS])
                became = f" (rows {first}), and became label distributions" if first else ""
                notes.append(
                    f"{codes.name}: {several:,} rows have several labels; in {len(differing):,} of "
                    f"them they differ{became}."
                )
        return cls(codes, rows, coded, weights, notes)


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


def merge(parts: Sequence[Part]) -> Merged:
    """Join labels; a row has those of the last place that has any for it."""
    # One type for all: 7 in a table and "7" in a text file are the same class.
    as_text = any(-1 in (part.codes.whole_numbers() or [-1]) for part in parts if len(part.rows))
    plain = all(part.weights is None for part in parts)

    def labels_of(part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        values = part.codes.classes(as_text=as_text)[part.coded]
        values = values.astype(object if as_text else np.int64, copy=False)
        if plain:
            return part.rows, values, None
        return part.rows, values, np.ones(len(values)) if part.weights is None else part.weights

    rows, values, weights = labels_of(parts[0])
    if len(parts) == 1:  # nothing is copied: labels may be as many as rows
        return Merged(rows, values, weights, parts[0].notes)
    n_labelled = len(np.unique(rows))
    notes = [*parts[0].notes, f"{parts[0].codes.name}: {n_labelled:,} labelled rows."]
    for part in parts[1:]:
        later_rows, later_values, later_weights = labels_of(part)
        # Of a row that occurs several times the first label stands for all in what is counted.
        before, first_before = np.unique(rows, return_index=True)
        after, first_after = np.unique(later_rows, return_index=True)
        _, old, new = np.intersect1d(before, after, assume_unique=True, return_indices=True)
        differ = int((values[first_before[old]] != later_values[first_after[new]]).sum())
        line = f"{part.codes.name}: {len(after):,} labelled rows"
        replaced = f"{len(old):,} of them labelled before and replaced ({differ:,} differ)."
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
