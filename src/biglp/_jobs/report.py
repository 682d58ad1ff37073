"""The page that shows a fit: written with the fit, or made again by ``biglp report``.

While the rows of a fit are open, a sample of them is looked at; the arrays are a step of its run
folder. At the end the page is written from these and the summary.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.errors import BigLPError, MissingExtraError, ParameterError
from biglp._core.memory import parse_memory
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import as_place
from biglp._fit.evidence import MEMORY, EvidenceMaker, Examples, ReportSample
from biglp._fit.model import Model
from biglp._graph import FACTORS
from biglp._jobs.identity import FinishedFit
from biglp._jobs.job import ModelJob, from_stdin
from biglp._jobs.results import MODEL, REPORT, SUMMARY
from biglp._jobs.table_job import TableJob
from biglp._labels.doubts import LabelDoubts
from biglp._labels.labels import Labels
from biglp._labels.reading import LabelInput
from biglp._report.charts import side_of
from biglp._report.page import TOLD, Content, Step, pictures_of, report_html, telling
from biglp._rows import Source
from biglp._rows.source import explained

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


def look_at_rows(look: EvidenceMaker, table: LabelInput, source: Source) -> dict[str, np.ndarray]:
    """Look at a sample of the rows; arrays that a run folder can keep.

    ``table`` has what people know of the rows.
    """
    evidence, once = look.evidence(), look.graph.engine.once
    whole = once(lambda: with_all_pixels(evidence.examples, table, source))
    evidence = replace(evidence, examples=whole)
    names = source.feature_names
    side = once(lambda: side_table(whole, table, source))
    known = {"beside": side, "names": names and list(names[:MOST_NAMES])}
    return {**evidence.state(), KNOWN: np.array(json.dumps(known))}


def with_all_pixels(examples: Examples, table: LabelInput, source: Source) -> Examples:
    """Put back pixels that are the same in all rows, and therefore no features, as zeros."""
    encoding = source.encoding
    if encoding is None or not encoding.columns or not encoding.left_out:
        return examples
    if len(examples.columns) or table.table_files is None:
        return examples
    index = {name: at for at, name in enumerate(encoding.names)}
    columns = [
        name for name in table.side_table.names if name in encoding.left_out or name in index
    ]
    if side_of(len(columns)) is None or set(encoding.widths) != {1}:
        return examples
    values = np.zeros((len(examples.rows), len(columns)), dtype=np.float32)
    for at, name in enumerate(columns):
        if name in index:
            values[:, at] = examples.values[:, index[name]]
    whole = replace(examples, values=values)
    return examples if pictures_of(whole) is None else whole


def side_table(examples: Examples, table: LabelInput, source: Source) -> list[dict[str, str]]:
    """ID, texts and the most telling columns of each example; empty where there is no table."""
    if table.table_files is None or not len(examples.rows):
        return []
    # A few rows of a table in one piece are read by decoding all of it.
    files = () if table.side_table.tables[0].part_rows else table.side_table.files.files
    if sum(Path(name).stat().st_size for name in files) > TEXT_BYTES:
        return []
    available, encoding = table.side_table.names, source.encoding
    wanted = [table.id_column]
    if encoding is not None and table.metadata is None:
        wanted += [column.name for column in encoding.columns or () if column.sparse]
        wanted += [name for name, why in encoding.left_out.items() if why.startswith(FREE_TEXT)]
        if encoding.columns and pictures_of(examples) is None:
            owners = np.repeat(encoding.names, encoding.widths)
            owned = [str(owners[at]) for at in telling(examples) if at < len(owners)]
            wanted += list(dict.fromkeys(owned))[:TOLD]
    columns = [name for name in dict.fromkeys(wanted) if name is not None and name in available]
    if not columns:
        return []
    rows, lines = np.unique(examples.rows, return_inverse=True)
    taken = table.side_table.table(columns, rows).to_pydict()
    return [{name: _shown(taken[name][line]) for name in columns} for line in lines.tolist()]


def _shown(value: Any) -> str:
    """An entry of a table as people read it."""
    if value is None:
        return "–"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def page(
    summary: Mapping[str, Any],
    folder: Any,
    evidence: dict[str, np.ndarray] | None,
    missing: Sequence[str] = (),
) -> bytes:
    """Make the page from a summary and what :func:`look_at_rows` has seen.

    The commands that go on name ``folder``; ``missing`` says what is not shown, and why.
    """
    inputs = list(summary["run"]["input"])
    name = summary["run"]["input"].get("simulation") or as_place(inputs[0]).name
    rest = f" and {len(inputs) - 1:,} more" if len(inputs) > 1 else ""
    more: dict[str, Any] = {}
    if evidence is not None:
        known = json.loads(str(evidence[KNOWN]))
        more = {"beside": known["beside"], "feature_names": known["names"]}
        more["evidence"] = ReportSample.from_state(evidence)
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
    settings, results = summary.get("settings", {}), shlex.quote(str(folder))
    model = shlex.quote(str(as_place(str(folder)) / MODEL))
    predict = Step("Label new rows.", f"biglp predict {model} new.parquet -o new-labels.parquet")
    if from_stdin(list(summary["run"]["input"])):  # the other commands need the rows again
        return [predict]
    what, command = "a table of them to fill in", f"biglp suggest {results} -n 20 -o next.csv"
    if summary.get("label_more"):
        what, command = f"{what}, or a page in the browser", f"{command}\n{summary['label_more']}"
    steps = [Step(f"Label the rows that would help most: {what}.", command)]
    if settings.get("probably_wrong_labels") or summary.get("doubtful_labels"):
        steps.append(
            Step(
                "See which given labels are probably wrong.",
                f"biglp check {results} -o doubtful.csv",
            )
        )
    return [*steps, predict]


def doubtful_lines(doubts: LabelDoubts | None, labels: Labels) -> list[dict[str, Any]]:
    """The most doubtful labels, as JSON values for the summary."""
    if doubts is None:
        return []
    listed = doubts.listed(labels)
    return [
        {
            "row": int(listed.rows[at]),
            "label": str(listed.labels.tolist()[at]),
            "suggested_label": str(listed.suggested_labels.tolist()[at]),
            "wrong": round(float(listed.wrong[at]), DIGITS),
        }
        for at in range(min(len(listed), MOST_DOUBTFUL))
    ]


@dataclass(frozen=True)
class ReportJob(TableJob, ModelJob):
    """Write the report of a finished fit again."""

    folder: Any = Path()  # that biglp fit wrote
    without_rows: str | None = None  # why the rows cannot be looked at; the report has none then

    verb = "report"
    columns: ClassVar[tuple[str, ...]] = ()

    @property
    def neighbour(self) -> Any:
        """The report."""
        return as_place(self.folder) / REPORT

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
        target = self.table or self.neighbour
        with self._whole_summary():
            settings, n_rows, missing = summary.get("settings", {}), summary["rows"], []
            look = self.without_rows is None
            if not look:
                missing.append(
                    f"There is no map, and there are no rows to look at: {self.without_rows}"
                )
            elif FACTORS[settings.get("factor", "anchors")].pairwise:
                look = False
                missing.append(OWN_GRAPH)
        evidence = self._look(engine, run) if look else None

        def write() -> None:
            with self._whole_summary():
                html = page(summary, self.folder, evidence, missing)
            with atomic_write(target) as file:
                file.write(html)

        engine.once(write)
        return [str(target)], {"rows": n_rows, "missing": missing}

    def _look(self, engine: Engine, run: RunFolder) -> dict[str, np.ndarray]:
        path = as_place(self.folder) / MODEL
        model = Model.load(path)
        seed = int(self.summary["run"].get("option", {}).get("random_state") or 0)
        graph = self.open_graph(engine, run, path, model, seed)
        source = graph.source.inner
        labels = engine.once(lambda: self.label_input.gather(source.n_rows)).labels
        names = [str(name) for name in model.classes.tolist()]
        if [str(name) for name in labels.classes.tolist()] != names:
            raise ParameterError(
                f"the labels have changed since the fit in {self.folder}: their classes are no "
                "longer those of its model. Fit again with --overwrite."
            )
        # What doubtful_lines wrote, by class codes.
        lines = self.summary.get("doubtful_labels", ())
        codes = {name: code for code, name in enumerate(names)}
        doubts = LabelDoubts(
            rows=np.array([line["row"] for line in lines], dtype=np.int64),
            codes=np.array([codes[line["label"]] for line in lines], dtype=np.int64),
            suggested=np.array([codes[line["suggested_label"]] for line in lines], dtype=np.int64),
            probability=np.zeros(len(lines)),
            suggested_probability=np.ones(len(lines)),
            wrong=np.array([line["wrong"] for line in lines], dtype=np.float64),
            error_rate=0.0,
        )
        memory = min(engine.once(lambda: parse_memory(self.memory)) // 4, MEMORY)
        look = EvidenceMaker(graph, model.answer, labels, doubts, seed, memory)
        with explained(source):
            return look_at_rows(look, self.label_input, source)

    @contextmanager
    def _whole_summary(self) -> Iterator[None]:
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


def read_summary(folder: Any) -> dict[str, Any]:
    """The summary of a finished fit; a ParameterError where there is none."""
    try:
        summary = dict(json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
        if summary["run"]["command"] == "fit":
            return summary
    except (OSError, ValueError, KeyError, TypeError, BigLPError):
        pass
    raise ParameterError(
        f"{folder} is not the folder of a finished biglp fit (it has no {SUMMARY} of one); name "
        "the folder that was given to biglp fit -o."
    )


def report_of_fit(folder: Any) -> dict[str, Any]:
    """Arguments of a :class:`ReportJob` for a finished fit, whose rows may be gone."""
    read_summary(folder)
    try:
        fit = FinishedFit.in_folder(
            folder, instead="the folder of one", changed="fit again to see them"
        )
        Model.load(folder / MODEL)
    except MissingExtraError:
        raise
    except (BigLPError, OSError) as error:
        return {"inputs": (), "folder": folder, "without_rows": str(error)}
    return {**fit.as_arguments(), "folder": folder}
