"""The report of a finished fit, made again from its folder: ``biglp report``, unprinted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.device import Device
from biglp._core.errors import BigLPError, MissingExtraError, ParameterError
from biglp._core.memory import parse_memory
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import as_place
from biglp._fit.evidence import MEMORY, EvidenceMaker, Examples, ReportSample
from biglp._fit.model import Model
from biglp._graph import FACTORS
from biglp._jobs.job import from_stdin
from biglp._jobs.results import MODEL, REPORT, SUMMARY
from biglp._jobs.table_job import TableJob
from biglp._labels.codes import Marks
from biglp._labels.doubts import LabelDoubts
from biglp._labels.labels import Labels
from biglp._labels.reading import LabelInput
from biglp._report.page import report_html
from biglp._report.rows import TOLD, Content, Step, pictures_of, side_of, telling
from biglp._rows import InputFiles, Source
from biglp._rows.options import LAYOUT
from biglp._rows.source import explained

# --------------------------------------------------------------------------------------------------
# What a finished ``biglp fit`` was about, read back from its folder.


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


# --------------------------------------------------------------------------------------------------
# The report of a run: looking at the rows while they are open, writing the page at the end.


EVIDENCE, KNOWN = "evidence", "known"
"""Names of the step in the run folder, and of what is known of the shown rows in it."""
MOST_NAMES = 10_000
"""Features whose names are kept."""
OWN_GRAPH = "The rows are ties of a graph of your own: there is no map, and no row to look at."
MOST_DOUBTFUL = 100
"""Doubtful labels that the summary names."""
TEXT_BYTES = 64 << 20
"""Size of a text file up to which it is read again for the sake of the report."""
LONGEST = 240
"""Letters of a text that are shown."""
DIGITS = 4
FREE_TEXT = "free text"
"""How the reason begins for which a column of sentences is no feature."""


@dataclass(frozen=True)
class ShownRows:
    """What people know of the rows that a report shows.

    Attributes
    ----------
    label_input : LabelInput
        Knows the table of the rows.
    source : Source
        The rows as features.
    """

    label_input: LabelInput
    source: Source

    def beside(self, examples: Examples) -> list[dict[str, str]]:
        """ID, texts and the most telling columns of each row; empty where there is no table."""
        if self.label_input.table_files is None or not len(examples.rows) or not self._cheap():
            return []
        columns = self._columns(examples)
        if not columns:
            return []
        rows, places = np.unique(examples.rows, return_inverse=True)
        taken = self.label_input.side_table.take(columns, rows)
        return [{name: shown(taken[name][place]) for name in columns} for place in places.tolist()]

    def with_all_pixels(self, examples: Examples) -> Examples:
        """Put back pixels that are the same in all rows, and therefore no features, as zeros."""
        encoding = self.source.encoding
        if encoding is None or not encoding.columns or not encoding.left_out:
            return examples
        if len(examples.columns) or self.label_input.table_files is None:
            return examples
        place = {name: at for at, name in enumerate(encoding.names)}
        known = [
            name
            for name in self.label_input.side_table.names
            if name in encoding.left_out or name in place
        ]
        if side_of(len(known)) is None or set(encoding.widths) != {1}:
            return examples
        values = np.zeros((len(examples.rows), len(known)), dtype=np.float32)
        for at, name in enumerate(known):
            if name in place:
                values[:, at] = examples.values[:, place[name]]
        whole = replace(examples, values=values)
        return examples if pictures_of(whole) is None else whole

    def _cheap(self) -> bool:
        """Whether a few rows of the table can be read without decoding all of it."""
        beside = self.label_input.side_table
        if beside.tables[0].part_rows:
            return True
        return sum(Path(name).stat().st_size for name in beside.files.files) <= TEXT_BYTES

    def _columns(self, examples: Examples) -> list[str]:
        """Columns that are shown: the ID, texts, and what tells classes apart."""
        available, encoding = self.label_input.side_table.names, self.source.encoding
        found = [self.label_input.id_column]
        if encoding is not None and self.label_input.metadata is None:
            found += [column.name for column in encoding.columns or () if column.sparse]
            found += [name for name, why in encoding.left_out.items() if why.startswith(FREE_TEXT)]
            if encoding.columns and pictures_of(examples) is None:
                owners = np.repeat(encoding.names, encoding.widths)
                chosen = telling(examples)
                owned = [str(owners[at]) for at in chosen if at < len(owners)]
                found += list(dict.fromkeys(owned))[:TOLD]
        return [name for name in dict.fromkeys(found) if name is not None and name in available]


def evidence_state(look: EvidenceMaker, rows: ShownRows) -> dict[str, np.ndarray]:
    """Look at the rows; arrays that a run folder can keep."""
    evidence, once = look.evidence(), look.graph.engine.once
    evidence = replace(evidence, examples=once(lambda: rows.with_all_pixels(evidence.examples)))
    names, beside = rows.source.feature_names, once(lambda: rows.beside(evidence.examples))
    known = {"beside": beside, "names": names and list(names[:MOST_NAMES])}
    return {**evidence.state(), KNOWN: np.array(json.dumps(known))}


def kept_evidence(run: RunFolder) -> dict[str, np.ndarray] | None:
    """What a run folder has kept of it, for one process; None where nothing was looked at."""
    path = run.folder / f"{EVIDENCE}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def page(
    summary: Mapping[str, Any],
    folder: Any,
    state: dict[str, np.ndarray] | None,
    missing: Sequence[str] = (),
) -> bytes:
    """Make the page.

    Parameters
    ----------
    summary : mapping
        The summary of a fit.
    folder : path
        Where the results are, for the commands that go on.
    state : dict or None
        What :func:`evidence_state` found.
    missing : sequence of str
        What is not shown, and why.
    """
    inputs = list(summary["run"]["input"])
    name = summary["run"]["input"].get("simulation") or as_place(inputs[0]).name
    rest = f" and {len(inputs) - 1:,} more" if len(inputs) > 1 else ""
    more: dict[str, Any] = {}
    if state is not None:
        known = json.loads(str(state[KNOWN]))
        more = {"beside": known["beside"], "feature_names": known["names"]}
        more["evidence"] = ReportSample.from_state(state)
    content = Content(
        title=f"{name}{rest}: {summary['rows']:,} rows labelled from "
        f"{summary['labelled_rows']:,} labels",
        facts=summary,
        classes=tuple(summary["found"]),
        going_on=going_on(summary, folder),
        missing=missing,
        **more,
    )
    return report_html(content).encode()


def going_on(summary: Mapping[str, Any], folder: Any) -> list[Step]:
    """Commands that come next."""
    settings, place = summary.get("settings", {}), shlex.quote(str(folder))
    model = shlex.quote(str(as_place(str(folder)) / MODEL))
    predict = Step("Label new rows.", f"biglp predict {model} new.parquet -o new-labels.parquet")
    if from_stdin(list(summary["run"]["input"])):  # the other commands need the rows again
        return [predict]
    what, command = "a table of them to fill in", f"biglp suggest {place} -n 20 -o next.csv"
    if summary.get("label_more"):
        what, command = f"{what}, or a page in the browser", f"{command}\n{summary['label_more']}"
    steps = [Step(f"Label the rows that would help most: {what}.", command)]
    if settings.get("probably_wrong_labels") or summary.get("doubtful_labels"):
        steps.append(
            Step(
                "See which given labels are probably wrong.", f"biglp check {place} -o doubtful.csv"
            )
        )
    return [*steps, predict]


def doubts_again(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> LabelDoubts:
    """What :func:`doubtful_lines` wrote, by class codes."""
    codes = {name: code for code, name in enumerate(names)}
    wrong = np.array([line["wrong"] for line in lines], dtype=np.float64)
    return LabelDoubts(
        rows=np.array([line["row"] for line in lines], dtype=np.int64),
        codes=np.array([codes[line["label"]] for line in lines], dtype=np.int64),
        suggested=np.array([codes[line["suggested_label"]] for line in lines], dtype=np.int64),
        probability=np.zeros(len(lines)),
        suggested_probability=np.ones(len(lines)),
        wrong=wrong,
        error_rate=0.0,
    )


def doubtful_lines(doubts: LabelDoubts | None, labels: Labels) -> list[dict[str, Any]]:
    """The most doubtful labels, as JSON values for the summary."""
    if doubts is None:
        return []
    found = doubts.listed(labels)
    return [
        {
            "row": int(found.rows[at]),
            "label": str(found.labels.tolist()[at]),
            "suggested_label": str(found.suggested_labels.tolist()[at]),
            "wrong": round(float(found.wrong[at]), DIGITS),
        }
        for at in range(min(len(found), MOST_DOUBTFUL))
    ]


def shown(value: Any) -> str:
    """An entry of a table as people read it."""
    if value is None:
        return "–"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


# --------------------------------------------------------------------------------------------------


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
        place = Device.of(self.device, self.gpu_memory, self.precision)
        graph = model.graph(engine, source, memory, place)
        names = [str(name) for name in model.classes.tolist()]
        doubts = doubts_again(self.summary.get("doubtful_labels", ()), names)
        seed = int(self.summary["run"].get("option", {}).get("random_state") or 0)
        if [str(name) for name in labels.classes.tolist()] != names:
            raise ParameterError(
                f"the labels have changed since the fit in {self.folder}: their classes are no "
                "longer those of its model. Fit again with --overwrite."
            )
        look = EvidenceMaker(graph, model.answer, labels, doubts, seed, min(memory // 4, MEMORY))
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
