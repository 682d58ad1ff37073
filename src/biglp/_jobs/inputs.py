"""The inputs of a run: its rows and its labels, and facts that show when they changed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from biglp._core.errors import ParameterError
from biglp._core.files import FileStamp
from biglp._core.parameters import flags_of
from biglp._core.places import StorePath, as_place, plain_name
from biglp._sources.array_names import split_inside
from biglp._sources.labels.input import LabelInput
from biglp._sources.naming import Named, look_up
from biglp._sources.stores.copies import stamps_once
from biglp._sources.stores.lakes import lake_version

LABEL_OPTIONS = ("labels", "label_column", "weight_column", "id_column", "unlabelled", "metadata")
"""Fields of a job that say where the labels are."""
STDIN_FOLDER, STDOUT_FOLDER = "biglp-stdin-", "biglp-stdout-"
"""How temporary folders begin for rows from standard input, and for answers to standard output."""


@dataclass(frozen=True)
class Inputs:
    """The rows that were named: files, folders, patterns, URIs of these, or one ``sim:…``."""

    names: tuple[str, ...]

    @property
    def paths(self) -> Any:
        """One path or a list, as sources take it."""
        return self.names[0] if len(self.names) == 1 else list(self.names)

    @property
    def from_stdin(self) -> bool:
        """Whether rows came through standard input, and are gone after the command."""
        return any(as_place(name).parent.name.startswith(STDIN_FOLDER) for name in self.names)

    @property
    def typed(self) -> list[str]:
        """The names as they were typed."""
        return ["-"] if self.from_stdin else list(self.names)

    @property
    def absolute(self) -> Inputs:
        """The same for processes that have another working folder."""
        return self if self.simulated else Inputs(tuple(map(plain_name, self.names)))

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


def typed_options(parameters: Mapping[str, Any]) -> list[str]:
    """Options of the command line, as they are typed, for parameters that were given."""
    words = []
    for name, value in parameters.items():
        if isinstance(value, (list, tuple)):
            listed = io.StringIO()
            csv.writer(listed, lineterminator="").writerow(value)
            value = listed.getvalue()
        if value not in (None, ""):
            words += [flags_of(name)[0], "tab" if value == "\t" else str(value)]
    return words


def require_labels(found: LabelInput) -> LabelInput:
    """Refuse to go on when nothing says where the labels are."""
    if found.anywhere:
        return found
    first = found.rows[0] if isinstance(found.rows, list) else found.rows
    raise ParameterError(
        f"nothing says where the labels of {first} are: give --label-column NAME for a "
        "column of the table (or of a table beside the rows, --metadata FILE), or --labels FILE "
        "for a file with one label a row, 'row,label' or 'id,label' pairs (-1 or empty where a row "
        f"has no label). Where nothing is labelled yet, biglp label {first} opens a page to label "
        f"rows on, and biglp suggest {first} names the first ones."
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
        "named": [plain_name(path) for path in found.labels],
        **({} if found.metadata is None else {"metadata": list(file_facts(found.metadata))}),
        **facts,
    }


def file_facts(paths: Any) -> dict[str, Any]:
    """Describe files so that a change shows: their size, and when they were written or their ETag.

    A Delta or Iceberg table is described by its version.
    """
    if isinstance(paths, (list, tuple)):
        return {name: fact for path in paths for name, fact in file_facts(path).items()}
    version = lake_version(paths)
    if version is not None:
        return {plain_name(paths): version}
    found = look_up(paths)
    if not found.in_files:
        return {"simulation": paths}
    return dict(zip(map(plain_name, found.names), _described(found.names), strict=True))


def _described(names: Sequence[str]) -> Iterator[str]:
    places = [as_place(split_inside(name)[0]) for name in names]
    stamps = stamps_once([place for place in places if isinstance(place, StorePath)])
    for place in places:
        if isinstance(place, StorePath):
            yield str(stamps[str(place)])
            continue
        stamp = FileStamp.of(place)
        written = datetime.fromtimestamp(stamp.mtime_ns / 1e9)
        yield f"{stamp.size:,} bytes written {written.isoformat(sep=' ', timespec='microseconds')}"
