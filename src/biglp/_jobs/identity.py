"""What a run is: what ``--resume`` and ``--overwrite`` compare, and what is read back later.

An identity is made of JSON values: command and version, facts of the input's files (names, sizes,
times), every option that the answers depend on and, of a fit, where its labels are. It is written
to ``run.json`` in the run folder before the work and to ``summary.json`` after it;
``_files/runfolder.differences`` puts into words how two of them differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from biglp._core.errors import CheckpointError, ParameterError, StoreError
from biglp._files.runfolder import HEADER, differences, read_identity
from biglp._files.uri import StorePath, plain_name
from biglp._jobs.results import SUMMARY, Destination, unfinished_work
from biglp._labels.reading import LabelInput, Marks
from biglp._rows import InputFiles
from biglp._rows.options import LAYOUT
from biglp._version import __version__

if TYPE_CHECKING:
    from biglp._jobs.job import Job


def run_identity(job: Job, command: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What any run that writes a result for each row is: version, input and options."""
    given = {name: value for name, value in job.reading.items() if value not in (None, ())}
    return {
        "command": command,
        "biglp": __version__,
        "input": job.rows.facts,
        "option": {
            **given,
            **options,
            "outputs": ", ".join(job.outputs),
            "top": job.top,
            "output format": job.format,
            "id column": job.id_column,
        },
    }


def label_identity(source: LabelInput) -> dict[str, Any]:
    """Files and columns of labels that must not change; an error where nothing names any."""
    if not source.anywhere:
        rows = source.rows if source.files is None else source.files.paths
        first = rows[0] if isinstance(rows, list) else rows
        raise ParameterError(
            f"nothing says where the labels of {first} are: give --label-column NAME for a "
            "column of the table (or of a table beside the rows, --metadata FILE), or --labels "
            "FILE for a file with one label a row, 'row,label' or 'id,label' pairs (-1 or empty "
            f"where a row has no label). Where nothing is labelled yet, biglp label {first} opens "
            f"a page to label rows on, and biglp suggest {first} names the first ones."
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


def settle(
    destination: Destination, identity: Mapping[str, Any], *, resume: bool, overwrite: bool
) -> dict[str, Any] | None:
    """Decide whether a run may begin; return its summary when it has ended already.

    ParameterError: results or unfinished work would be lost. CheckpointError: the results that are
    to be resumed are another run's.
    """
    path, folder = destination.path, destination.run_folder
    if resume and overwrite:
        raise ParameterError("--resume and --overwrite contradict each other; give one.")
    if path.exists() and path.is_dir() == destination.is_file:
        what = "a folder" if destination.is_file else "a file"
        raise ParameterError(f"{path} is {what}; give another output (-o).")
    # Whether unfinished work is of the same run is looked at under its lock, by RunFolder.
    if overwrite or (resume and (folder / HEADER).exists()):
        return None
    now = json.loads(json.dumps(identity))
    if resume and (summary := _summary_in(path)) is not None:
        changed = differences(summary.get("run", {}), now)
        if not changed:
            return summary
        raise CheckpointError(
            f"{path} holds the results of another run: {'; '.join(changed)}. "
            "Give --overwrite to replace them, or another output folder (-o)."
        )
    if results := destination.results():
        names = ", ".join(result.name for result in results)
        raise ParameterError(
            f"{path} already holds results ({names}). Give --overwrite to replace them, "
            "or another output (-o)."
        )
    stored = unfinished_work(folder)
    if stored and not resume:
        other = differences(read_identity(folder), now)
        what = " of other options or files" if other else ""
        advice = "Start" if other else "Go on with it by --resume, or start"
        where = folder if isinstance(path, StorePath) else folder.parent
        raise ParameterError(
            f"{where} holds an unfinished run{what} ({stored}). {advice} afresh with --overwrite."
        )
    return None


def _summary_in(folder: Any) -> dict[str, Any] | None:
    try:
        return dict(json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
    except StoreError:
        raise
    except (OSError, ValueError):
        return None


def changed_since(job: Job) -> list[str]:
    """Why an unfinished run cannot be gone on with, such as a file that was written again."""
    try:
        again = replace(job)  # the job knows its files as they were when it began
        now = json.loads(json.dumps(again.identity()))
        return differences(read_identity(job.destination.run_folder), now)
    except StoreError:  # out of reach for the moment
        return []
    except Exception as error:  # a file that is gone, a damaged description: no such run either
        return [str(error)]


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
            options = dict(run.get("option", {}))
            columns = {
                "label_column": labels.pop("column"),
                "weight_column": labels.pop("weight column", None),
                "id_column": labels.pop("id column", None),
                "metadata": labels.pop("metadata", None),
                "unlabelled": labels.pop("unlabelled"),
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
        if "named" in labels:
            # Labels may have been added to their files since; in the rows themselves they cannot.
            files = tuple(labels["named"])
        else:  # a fit of an earlier release, with one file of labels at most
            files = () if simulated or list(labels) == list(inputs) else tuple(labels)[:1]
        return cls(inputs, files, **columns, options=options)

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
