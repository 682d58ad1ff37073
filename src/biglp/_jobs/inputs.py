"""The labels of a run: where they are, and facts that show when they changed."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from biglp._core.errors import ParameterError
from biglp._core.parameters import flags_of
from biglp._files.uri import as_place, plain_name
from biglp._labels.reading import LabelInput

LABEL_OPTIONS = ("labels", "label_column", "weight_column", "id_column", "unlabelled", "metadata")
"""Fields of a job that say where the labels are."""
STDIN_FOLDER, STDOUT_FOLDER = "biglp-stdin-", "biglp-stdout-"
"""How temporary folders begin for rows from standard input, and for answers to standard output."""


def from_stdin(names: Sequence[str]) -> bool:
    """Whether rows of these names came through standard input, and are gone after the command."""
    return any(as_place(name).parent.name.startswith(STDIN_FOLDER) for name in names)


def typed_names(names: Sequence[str]) -> list[str]:
    """Names of the rows as they were typed."""
    return ["-"] if from_stdin(names) else list(names)


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
    rows = found.rows if found.files is None else found.files.paths
    first = rows[0] if isinstance(rows, list) else rows
    raise ParameterError(
        f"nothing says where the labels of {first} are: give --label-column NAME for a "
        "column of the table (or of a table beside the rows, --metadata FILE), or --labels FILE "
        "for a file with one label a row, 'row,label' or 'id,label' pairs (-1 or empty where a row "
        f"has no label). Where nothing is labelled yet, biglp label {first} opens a page to label "
        f"rows on, and biglp suggest {first} names the first ones."
    )


def label_identity(found: LabelInput) -> dict[str, Any]:
    """What must not change: the files of labels and the columns."""
    metadata = {} if found.metadata_files is None else found.metadata_files.facts
    facts = dict(metadata)
    if found.files is not None and not metadata and (found.in_rows or not found.labels):
        facts = dict(found.files.facts)
    for files in found.label_files:
        facts |= files.facts
    return {
        "column": found.label_column,
        "weight column": found.weight_column,
        "id column": found.id_column,
        "unlabelled": found.unlabelled,
        "named": [plain_name(path) for path in found.labels],
        **({"metadata": list(metadata)} if metadata else {}),
        **facts,
    }
