"""What a finished ``biglp fit`` was about, read back from its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from biglp._core.errors import ParameterError
from biglp._jobs.results import SUMMARY
from biglp._labels.codes import Marks
from biglp._rows import InputFiles


@dataclass(frozen=True)
class EarlierFit:
    """Rows, labels and options of a finished fit.

    Attributes
    ----------
    inputs : tuple of str
        The rows as they were named.
    labels : tuple of str
        Files of labels; labels may also be in the rows.
    label_column, weight_column, id_column : str or None
    metadata : list of str or None
        Files of the table beside the rows.
    unlabelled : int, str, list of these or None
        What stands for no label.
    options : dict
        Options that were given.
    """

    inputs: tuple[str, ...]
    labels: tuple[str, ...]
    label_column: str | None
    weight_column: str | None
    id_column: str | None
    metadata: Any
    unlabelled: Marks
    options: dict[str, Any]

    @classmethod
    def in_folder(cls, folder: Any, *, instead: str, changed: str) -> EarlierFit:
        """Read the summary of a fit.

        Parameters
        ----------
        folder : Path or StorePath
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
            options = dict(run.get("option", {}))
            named = {
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
        return cls(inputs, files, **named, options=options)
