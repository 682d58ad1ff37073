"""The report of a finished fit, made again from its folder: ``biglp report``, unprinted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.device import Place
from biglp._core.errors import BigLPError, MissingExtraError, ParameterError
from biglp._core.memory import parse_memory
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import as_place
from biglp._fit.evidence import MEMORY, Look
from biglp._fit.model import Model
from biglp._graph import FACTORS
from biglp._jobs.earlier import EarlierFit
from biglp._jobs.results import MODEL, REPORT, SUMMARY
from biglp._jobs.showing import OWN_GRAPH, ShownRows, doubts_again, evidence_state, page
from biglp._jobs.tables import TableJob
from biglp._labels.codes import Marks
from biglp._rows.options import LAYOUT
from biglp._rows.source import explained

NEW = {
    "reliability": "how often the model is right where it is sure",
    "estimated_accuracy": "an estimate of how many rows are right",
}
"""What summaries of earlier releases do not have."""


@dataclass(frozen=True)
class ReportJob(TableJob):
    """Write the report of a finished fit.

    Parameters
    ----------
    folder : path or URI
        Folder that ``biglp fit`` wrote.
    labels, label_column, unlabelled
        Where the labels are, as for ``fit``.
    without_rows : str, optional
        Why the rows cannot be looked at; the report then has no map and no rows.
    device, memory, gpu_memory, precision : str
        Where the arithmetic runs, the budgets of the whole process and of a card, and the digits.
    """

    folder: Any = Path()
    labels: tuple[str, ...] = ()
    label_column: str | None = None
    unlabelled: Marks = None
    without_rows: str | None = None
    device: str = "cpu"
    memory: str | int = "auto"
    gpu_memory: str | int = "auto"
    precision: str = "float32"

    verb = "report"
    columns: ClassVar[tuple[str, ...]] = ()

    @property
    def beside(self) -> Any:
        """The report."""
        return as_place(self.folder) / REPORT

    @property
    def memory_given(self) -> str | int:
        """Memory budget that was given."""
        return self.memory

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the fit says of itself."""
        return read_summary(as_place(self.folder))

    def identity(self) -> dict[str, Any]:
        """The folder."""
        parse_memory(self.memory)
        if self.table is not None:
            self.refuse_to_replace()
        return {"command": self.verb, "folder": str(self.folder)}

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Look at the rows where they are there, and write the page."""
        summary = engine.once(lambda: self.summary)
        with self._summary_is_whole():
            missing, n_rows = self.missing(), summary["rows"]
        state = None if missing.rows else self._look(engine, run)
        target = self.table or self.beside

        def write() -> None:
            with self._summary_is_whole():
                made = page(summary, self.folder, state, missing.told)
            with atomic_write(target) as file:
                file.write(made)

        engine.once(write)
        return [str(target)], {"rows": n_rows, "missing": missing.told}

    @contextmanager
    def _summary_is_whole(self) -> Iterator[None]:
        """Explain what fails where a summary is not as it was written."""
        from jinja2 import TemplateError  # slow to load, and the page is made with it

        wrong = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, TemplateError)
        try:
            yield
        except BigLPError:
            raise
        except wrong as error:
            raise ParameterError(
                f"{SUMMARY} in {self.folder} is not what biglp fit wrote there "
                f"({type(error).__name__}: {error}); fit again with --overwrite."
            ) from error

    def missing(self) -> Missing:
        """What cannot be shown, and why."""
        settings = self.summary.get("settings", {})
        committee = "members" in settings
        absent = [what for key, what in NEW.items() if committee and key not in settings]
        told = []
        if absent:
            version = self.summary.get("versions", {}).get("biglp", "an earlier release")
            told.append(
                f"Not shown: {' and '.join(absent)}. The fit was made by biglp {version}, which "
                "did not keep that; fit again to see it."
            )
        if self.without_rows is not None:
            told.append(f"There is no map, and there are no rows to look at: {self.without_rows}")
        elif FACTORS[settings.get("factor", "anchors")].pairwise:
            return Missing(True, [*told, OWN_GRAPH])
        return Missing(self.without_rows is not None, told)

    def _look(self, engine: Engine, run: RunFolder) -> dict[str, np.ndarray]:
        model = Model.load(as_place(self.folder) / MODEL)
        no_features = engine.once(lambda: self.label_input.not_features)
        encoding = model.encoding_for_new_rows()
        source = self.open_source(engine, run, **no_features, encoding=encoding)
        labels = engine.once(lambda: self.label_input.gather(source.n_rows)).labels
        memory = engine.once(lambda: parse_memory(self.memory))
        place = Place.of(self.device, self.gpu_memory, self.precision)
        graph = model.graph(engine, source, memory, place)
        names = [str(name) for name in model.classes.tolist()]
        doubts = doubts_again(self.summary.get("doubtful_labels", ()), names)
        seed = int(self.summary["run"].get("option", {}).get("random_state") or 0)
        if [str(name) for name in labels.classes.tolist()] != names:
            raise ParameterError(
                f"the labels have changed since the fit in {self.folder}: their classes are no "
                "longer those of its model. Fit again with --overwrite."
            )
        look = Look(graph, model.answer, labels, doubts, seed, min(memory // 4, MEMORY))
        with explained(source):
            return evidence_state(look, ShownRows(self.label_input, source))


@dataclass(frozen=True)
class Missing:
    """What a report cannot show: whether that is the rows, and sentences."""

    rows: bool
    told: list[str] = field(default_factory=list)


def read_summary(folder: Any) -> dict[str, Any]:
    """The summary of a finished fit.

    Raises
    ------
    ParameterError
        When there is none.
    """
    try:
        found = dict(json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
        if found["run"]["command"] == "fit":
            return found
    except (OSError, ValueError, KeyError, TypeError, BigLPError):
        pass
    raise ParameterError(
        f"{folder} is not the folder of a finished biglp fit (it has no {SUMMARY} of one); name "
        "the folder that was given to biglp fit -o."
    )


def earlier_report(folder: Any) -> dict[str, Any]:
    """Arguments of a :class:`ReportJob` for a finished fit, whose rows may be gone."""
    read_summary(folder)
    try:
        fit = EarlierFit.in_folder(
            folder, instead="the folder of one", changed="fit again to see them"
        )
        Model.load(folder / MODEL)
    except MissingExtraError:
        raise
    except (BigLPError, OSError) as error:
        return {"inputs": (), "folder": folder, "without_rows": str(error)}
    return {
        "inputs": fit.inputs,
        "folder": folder,
        "labels": fit.labels,
        "label_column": fit.label_column,
        "id_column": fit.id_column,
        "metadata": fit.metadata,
        "unlabelled": fit.unlabelled,
        "reading": {name: fit.options[name] for name in ("drop", *LAYOUT) if name in fit.options},
    }
