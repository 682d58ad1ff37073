"""The inputs of a run: its rows and its labels, and facts that show when they changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from biglp._core.errors import ParameterError
from biglp._core.files import FileStamp
from biglp._sources.labels.input import LabelInput
from biglp._sources.naming import Named, look_up, split_inside

LABEL_OPTIONS = ("labels", "label_column", "weight_column", "id_column", "unlabelled", "metadata")
"""Fields of a job that say where the labels are."""


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
        return self if self.simulated else Inputs(tuple(map(absolute, self.names)))

    @cached_property
    def named(self) -> Named:
        """Files behind the names, and their format."""
        return look_up(self.paths)

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


def require_labels(found: LabelInput) -> LabelInput:
    """Refuse to go on when nothing says where the labels are."""
    if found.anywhere:
        return found
    first = found.rows[0] if isinstance(found.rows, list) else found.rows
    raise ParameterError(
        f"nothing says where the labels of {first} are: give --label-column NAME for a "
        "column of the table (or of a table beside the rows, --metadata FILE), or --labels FILE "
        "for a file with one label a row, 'row,label' or 'id,label' pairs (-1 or empty where a row "
        "has no label)."
    )


def label_identity(found: LabelInput) -> dict[str, Any]:
    """What must not change: the files of labels and the columns."""
    facts = {} if found.metadata is None else file_facts(found.metadata)
    if found.metadata is None and (found.in_rows or not found.labels):
        facts = file_facts(found.rows)
    for path in found.labels:
        facts |= file_facts(path)
    return {
        "column": found.label_column,
        "weight column": found.weight_column,
        "id column": found.id_column,
        "unlabelled": found.unlabelled,
        "named": [absolute(path) for path in found.labels],
        **({} if found.metadata is None else {"metadata": list(file_facts(found.metadata))}),
        **facts,
    }


def absolute(name: str) -> str:
    """A path, pattern or description for a process that has another working folder."""
    return name if "://" in name else os.path.abspath(name)


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
