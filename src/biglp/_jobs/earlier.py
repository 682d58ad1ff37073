"""What a finished ``biglp fit`` was about, read back from its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biglp._core.errors import ParameterError
from biglp._jobs.inputs import file_facts
from biglp._jobs.results import SUMMARY


@dataclass(frozen=True)
class EarlierFit:
    """Rows, labels and options of a finished fit.

    Attributes
    ----------
    inputs : tuple of str
        The rows as they were named.
    labels : str, list of str or None
        The files of labels; None where these are in the rows.
    label_column, weight_column : str or None
    unlabelled : int or str
        What stands for no label.
    options : dict
        Options that were given.
    """

    inputs: tuple[str, ...]
    labels: Any
    label_column: str | None
    weight_column: str | None
    unlabelled: int | str
    options: dict[str, Any]

    @classmethod
    def in_folder(cls, folder: Path, *, instead: str, changed: str) -> EarlierFit:
        """Read the summary of a fit.

        Parameters
        ----------
        folder : Path
        instead : str
            What may be given instead of such a folder.
        changed : str
            What to do where the rows have changed since.

        Raises
        ------
        ParameterError
            When the folder holds no finished fit, or its rows have changed since.
        """
        try:
            run = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["run"]
            facts, labels = dict(run["input"]), dict(run["labels"])
        except (OSError, ValueError, KeyError) as error:
            raise ParameterError(
                f"{folder} is a folder without the results of a finished biglp fit; give that, or "
                f"{instead}."
            ) from error
        simulated = facts.get("simulation")
        inputs = (simulated,) if simulated else tuple(facts)
        if not simulated and file_facts(list(inputs)) != facts:
            raise ParameterError(
                f"the rows behind {folder} have changed since it was made ({', '.join(inputs)}); "
                f"{changed}."
            )
        named = {
            "label_column": labels.pop("column"),
            "weight_column": labels.pop("weight column", None),
            "unlabelled": labels.pop("unlabelled"),
        }
        files = list(labels)
        # Labels may have been added to their file since; in the rows themselves they cannot.
        named_files = files[0] if len(files) == 1 else files
        found = None if simulated or files == list(inputs) else named_files
        return cls(inputs, found, **named, options=dict(run.get("option", {})))
