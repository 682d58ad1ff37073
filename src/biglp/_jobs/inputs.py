"""What a run is, in words that show a change: its files, its labels, its options."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.files import FileStamp
from biglp._labels.labels import Labels, labels_from_pairs
from biglp._sources.formats.simulation import PREFIX
from biglp._sources.labels.files import read_labels, read_weighted_labels
from biglp._sources.naming import LIBSVM, TABLES, ending, find_files


@dataclass(frozen=True)
class Inputs:
    """The rows that were named: files, folders, patterns, or one ``sim:…``."""

    names: tuple[str, ...]

    @property
    def paths(self) -> Any:
        """One path or a list, as sources take it."""
        return self.names[0] if len(self.names) == 1 else list(self.names)

    @property
    def absolute(self) -> Inputs:
        """The same for processes that have another working folder."""
        return self if self.simulated else Inputs(tuple(map(os.path.abspath, self.names)))

    @property
    def simulated(self) -> bool:
        """Whether the rows are made up."""
        return len(self.names) == 1 and self.names[0].startswith(PREFIX)

    @property
    def ending(self) -> str:
        """Ending of the first file, which says the format; empty for a simulation."""
        return "" if self.simulated else ending(find_files(self.paths)[0])

    @property
    def holds_labels(self) -> bool:
        """X."""
        return self.simulated or self.ending in LIBSVM

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return 0 if self.simulated else sum(FileStamp.of(f).size for f in find_files(self.paths))

    @property
    def is_table(self) -> bool:
        """Whether the rows have named columns."""
        return self.ending in TABLES


@dataclass(frozen=True)
class LabelInput:
    """Where labels come from: a file, a column, or the input itself."""

    path: Any
    column: str | None
    unlabelled: int | str = -1
    weight_column: str | None = None

    def read(self, n_rows: int | None) -> Labels:
        """Read the labels of the labelled rows; integers become as short as they can.

        Without ``n_rows`` there are as many rows as labels, given or not.
        """
        if n_rows is None:
            dense = read_labels(self.path, column=self.column, unlabelled=self.unlabelled)
            n_rows = len(dense)
        rows, values, weights = read_weighted_labels(
            self.path,
            n_rows,
            column=self.column,
            weight_column=self.weight_column,
            unlabelled=self.unlabelled,
        )
        labels = labels_from_pairs(rows, values, n_rows, weights)
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
    if column is not None or inputs.simulated or inputs.ending in LIBSVM:
        return LabelInput(inputs.paths, column, unlabelled, weight_column)
    raise ParameterError(
        f"nothing says where the labels of {inputs.names[0]} are: give --label-column NAME for a "
        "column of the table, or --labels FILE for a file with one label a row or 'row,label' "
        "pairs (-1 or empty where a row has no label)."
    )


def file_facts(paths: Any) -> dict[str, Any]:
    """Describe files so that a change shows: their size and the time they were written."""
    if isinstance(paths, str) and paths.startswith(PREFIX):
        return {"simulation": paths}
    stamps = [FileStamp.of(file).facts() for file in find_files(paths)]
    return {
        stamp["path"]: f"{stamp['size']:,} bytes written {_moment(stamp['mtime_ns'])}"
        for stamp in stamps
    }


def _moment(mtime_ns: int) -> str:
    return datetime.fromtimestamp(mtime_ns / 1e9).isoformat(sep=" ", timespec="microseconds")
