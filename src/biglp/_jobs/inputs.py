"""The inputs of a run: its rows and its labels, and facts that show when they changed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.files import FileStamp
from biglp._labels.labels import Labels, labels_from_pairs
from biglp._sources.beside import table_beside
from biglp._sources.formats.base import LabelColumns
from biglp._sources.labels.files import gather_labels
from biglp._sources.naming import Named, look_up, split_inside


@dataclass(frozen=True)
class Inputs:
    """The rows that were named: files, folders, patterns, or one ``sim:…``.

    Attributes
    ----------
    names : tuple of str
    metadata : str, list of str or None
        A table beside the rows, with a line for each.
    """

    names: tuple[str, ...]
    metadata: Any = None

    @property
    def paths(self) -> Any:
        """One path or a list, as sources take it."""
        return self.names[0] if len(self.names) == 1 else list(self.names)

    @property
    def absolute(self) -> Inputs:
        """The same for processes that have another working folder."""
        if self.simulated:
            return self
        return replace(self, names=tuple(map(os.path.abspath, self.names)))

    @cached_property
    def named(self) -> Named:
        """Files behind the names, and their format."""
        return look_up(self.paths)

    @property
    def columns_in(self) -> Any:
        """The table in which labels, weights and IDs of the rows are looked up by their column."""
        return self.paths if self.metadata is None else self.metadata

    def check_metadata(self) -> None:
        """Refuse a table beside the rows that has not a line for each."""
        if self.metadata is not None:
            table_beside(self.named, self.metadata)

    @property
    def simulated(self) -> bool:
        """Whether the rows are made up, and in no file."""
        return not self.named.in_files

    @property
    def is_table(self) -> bool:
        """Whether the rows have named columns."""
        return self.named.is_table

    @property
    def holds_labels(self) -> bool:
        """Whether the input holds its labels too, in a place that need not be named."""
        return self.named.format.holds_labels


@dataclass(frozen=True)
class LabelInput:
    """Where labels come from: a file, a column, or the input itself."""

    path: Any
    column: str | None
    unlabelled: int | str = -1
    weight_column: str | None = None
    beside: Inputs | None = None
    """The rows, where the labels are in a table beside them."""

    def read(self, n_rows: int | None) -> Labels:
        """Read the labels of the labelled rows; integers become as short as they can.

        Without ``n_rows`` there are as many rows as labels, given or not.
        """
        if self.beside is not None:
            self.beside.check_metadata()
        columns = LabelColumns(self.column, self.weight_column)
        codes = gather_labels(self.path, n_rows, columns, self.unlabelled)
        rows, values, weights = codes.labelled()
        labels = labels_from_pairs(rows, values, n_rows or codes.count_rows(), weights)
        if labels.classes.dtype.kind == "i":
            kind = np.min_scalar_type(int(np.abs(labels.classes).max()) * -1 - 1)
            kind = np.promote_types(kind, np.int16)
            labels = replace(labels, classes=labels.classes.astype(kind))
        return labels

    def identity(self) -> Any:
        """What must not change: the file and the columns."""
        return {
            "column": self.column,
            "weight column": self.weight_column,
            "unlabelled": self.unlabelled,
            **file_facts(self.path),
        }


def label_input(
    inputs: Inputs,
    labels: str | None,
    column: str | None,
    unlabelled: Any = -1,
    weight_column: str | None = None,
) -> LabelInput:
    """Find out where the labels are.

    Raises
    ------
    ParameterError
        When nothing says so.
    """
    if labels is not None:
        return LabelInput(labels, column, unlabelled, weight_column)
    if column is not None or (inputs.holds_labels and inputs.metadata is None):
        return LabelInput(inputs.columns_in, column, unlabelled, weight_column, inputs)
    raise ParameterError(
        f"nothing says where the labels of {inputs.names[0]} are: give --label-column NAME for a "
        "column of the table (or of a table beside the rows, --metadata FILE), or --labels FILE "
        "for a file with one label a row or 'row,label' "
        "pairs (-1 or empty where a row has no label)."
    )


def file_facts(paths: Any) -> dict[str, Any]:
    """Describe files so that a change shows: their size and the time they were written."""
    named = look_up(paths)
    if not named.in_files:
        return {"simulation": paths}
    facts = {}
    for file in named.files:
        stamp = FileStamp.of(split_inside(file)[0])
        written = datetime.fromtimestamp(stamp.mtime_ns / 1e9)
        moment = written.isoformat(sep=" ", timespec="microseconds")
        facts[os.path.abspath(file)] = f"{stamp.size:,} bytes written {moment}"
    return facts
