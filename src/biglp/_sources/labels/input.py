"""Where the labels of some rows are: a column of their table, files beside it, or both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from biglp._core.errors import LabelError, LabelWarning, ParameterError
from biglp._labels.labels import Labels, labels_from_pairs
from biglp._labels.markers import nothing_to_label, suspicions
from biglp._rows.format import LabelColumns
from biglp._rows.opening import InputFiles
from biglp._rows.source import DECODED_BYTES
from biglp._sources.labels.codes import LabelCodes, Marks
from biglp._sources.labels.distinct import smallest_integers
from biglp._sources.labels.files import gather_labels
from biglp._sources.labels.merging import Merged, Part, merge, told_of_ids
from biglp._sources.labels.metadata import check_table_beside

if TYPE_CHECKING:
    from biglp._tables.side_columns import RowColumn, RowColumns

OWN_NAMES = ("row", "label", "current_label", "suggested_label", "confidence", "doubt")
"""Columns of results, which IDs stand beside."""
LABELS_BY_NAME = ("label", "labels", "target")
"""Columns of a table that hold labels, by their names."""


@dataclass(frozen=True)
class Gathered:
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

    def gather(self, n_rows: int | None) -> Gathered:
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
        return Gathered(labels, merged.told, warnings, self.unlabelled is not None)

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
            from biglp._sources.labels.joined import join_ids  # needs pyarrow

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
