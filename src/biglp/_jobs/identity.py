"""What a run is: what ``--resume`` and ``--overwrite`` compare, and what is read back later.

An identity is made of JSON values: command and version, facts of the input's files (names, sizes,
times), every option that the answers depend on (``Job.identity_with``) and, of a fit, where its
labels are. It is written to ``run.json`` in the run folder before the work and to ``summary.json``
after it; ``_files/runfolder.differences`` puts into words how two of them differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from biglp._core.errors import ParameterError
from biglp._files.uri import plain_name
from biglp._jobs.results import SUMMARY
from biglp._labels.reading import LabelInput, Marks
from biglp._rows import InputFiles
from biglp._rows.options import LAYOUT


def label_identity(source: LabelInput, *, named: bool = False) -> dict[str, Any]:
    """Files and columns of labels that must not change; an error where nothing names any.

    ``named``: whether the names of the classes are enough.
    """
    if not source.anywhere and not named:
        rows = source.rows if source.files is None else source.files.paths
        first = rows[0] if isinstance(rows, list) else rows
        raise ParameterError(
            f"nothing says where the labels of {first} are: give --label-column NAME for a "
            "column of the table (or of a table beside the rows, --metadata FILE), or --labels "
            "FILE for a file with one label a row, 'row,label' or 'id,label' pairs (-1 or empty "
            f"where a row has no label). Where nothing is labelled yet, biglp label {first} opens "
            f"a page to label rows on, and biglp suggest {first} names the first ones; of texts, "
            "--classes NAME,NAME,... may be enough."
        )
    metadata = {} if source.metadata_files is None else source.metadata_files.facts
    facts = dict(metadata)
    if source.files is not None and not metadata and (source.in_rows or not source.labels):
        facts = dict(source.files.facts)
    for files in source.label_files:
        facts |= files.facts
    return {
        "column": source.label_column,
        "weight column": source.weight_column,
        "id column": source.id_column,
        "unlabelled": source.unlabelled,
        "named": [plain_name(path) for path in source.labels],
        **({"metadata": list(metadata)} if metadata else {}),
        **facts,
    }


@dataclass(frozen=True)
class FinishedFit:
    """Rows, labels and options of a finished fit, read back from its folder."""

    inputs: tuple[str, ...]  # as they were named
    labels: tuple[str, ...]  # files; labels may also be in the rows
    label_column: str | None
    weight_column: str | None
    id_column: str | None
    metadata: Any  # files of the table beside the rows
    unlabelled: Marks
    options: dict[str, Any]

    @classmethod
    def in_folder(cls, folder: Any, *, instead: str, changed: str) -> FinishedFit:
        """Read the summary; the words say what may be given instead, and what changed rows ask for.

        ParameterError: there is no finished fit, or its rows have changed since.
        """
        try:
            run = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["run"]
            facts, labels = dict(run["input"]), dict(run["labels"])
            options = dict(run["option"])
            columns = {
                # Labels may have been added to their files since; in the rows they cannot.
                "labels": tuple(labels["named"]),
                "label_column": labels["column"],
                "weight_column": labels["weight column"],
                "id_column": labels["id column"],
                "metadata": labels.get("metadata"),
                "unlabelled": labels["unlabelled"],
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ParameterError(
                f"{folder} is a folder without the results of a finished biglp fit; give that, or "
                f"{instead}."
            ) from error
        simulated = facts.get("simulation")
        inputs = (simulated,) if simulated else tuple(facts)
        if not simulated and InputFiles(list(inputs)).facts != facts:
            raise ParameterError(
                f"the rows behind {folder} have changed since it was made ({', '.join(inputs)}); "
                f"{changed}."
            )
        return cls(inputs, **columns, options=options)

    def as_arguments(self, reading: tuple[str, ...] = ("drop", *LAYOUT)) -> dict[str, Any]:
        """Arguments of a job on the same rows and labels, with these options of their reading.

        Labels are those of now: they may have been corrected or added to.
        """
        return {
            "inputs": self.inputs,
            "labels": self.labels,
            "label_column": self.label_column,
            "id_column": self.id_column,
            "metadata": self.metadata,
            "unlabelled": self.unlabelled,
            "reading": {name: self.options[name] for name in reading if name in self.options},
        }
