"""The page that shows a fit: written with the fit, or made again by ``biglp report``.

While the rows of a fit are open, a sample of them is looked at; the arrays are a step of its run
folder. At the end the page is written from these and the summary.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.errors import BigLPError, MissingExtraError, ParameterError
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._files.uri import as_place, split_inside
from biglp._fit.evidence import MEMORY, EvidenceMaker, Examples, ReportSample
from biglp._fit.model import Model
from biglp._graph import FACTORS
from biglp._jobs.job import ModelJob, TableJob, from_stdin, typed_options, unused_table
from biglp._jobs.results import MODEL, REPORT, SUMMARY, FinishedFit
from biglp._labels.doubts import LabelDoubts
from biglp._labels.reading import LabelInput
from biglp._report.charts import side_of
from biglp._report.page import TOLD, Content, Step, pictures_of, report_html, telling
from biglp._rows import Source
from biglp._rows.format import ending
from biglp._rows.options import LAYOUT
from biglp._rows.source import explained

EVIDENCE, KNOWN = "evidence", "known"
"""Names of the step in the run folder, and of what is known of the shown rows in it."""
MOST_NAMES = 10_000
"""Features whose names are kept."""
OWN_GRAPH = "The rows are ties of a graph of your own: there is no map, and no row to look at."
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
    examples, side = once(lambda: with_side_table(evidence.examples, table, source))
    names = source.feature_names
    known = {"beside": side, "names": names and list(names[:MOST_NAMES])}
    evidence = replace(evidence, examples=examples)
    return {**evidence.state(), KNOWN: np.array(json.dumps(known))}


def with_side_table(
    examples: Examples, table: LabelInput, source: Source
) -> tuple[Examples, list[dict[str, str]]]:
    """Examples with what their table says: all pixels, and ID, texts and most telling columns."""
    encoding = source.encoding
    if table.table_files is None:
        return examples, []
    names = table.side_table.names

    # Pixels that are the same in all rows are no features: they are put back as zeros.
    if (
        encoding is not None
        and encoding.columns
        and encoding.left_out
        and not len(examples.columns)
    ):
        index = {name: at for at, name in enumerate(encoding.names)}
        pixels = [name for name in names if name in encoding.left_out or name in index]
        if side_of(len(pixels)) is not None and set(encoding.widths) == {1}:
            values = np.zeros((len(examples.rows), len(pixels)), dtype=np.float32)
            for at, name in enumerate(pixels):
                if name in index:
                    values[:, at] = examples.values[:, index[name]]
            whole = replace(examples, values=values)
            examples = examples if pictures_of(whole) is None else whole

    # A few rows of a table in one piece are read by decoding all of it.
    files = () if table.side_table.tables[0].part_rows else table.side_table.files.files
    if not len(examples.rows) or sum(Path(name).stat().st_size for name in files) > TEXT_BYTES:
        return examples, []
    wanted = [table.id_column]
    if encoding is not None and table.metadata is None:
        wanted += [column.name for column in encoding.columns or () if column.sparse]
        wanted += [name for name, why in encoding.left_out.items() if why.startswith(FREE_TEXT)]
        if encoding.columns and pictures_of(examples) is None:
            owners = np.repeat(encoding.names, encoding.widths)
            owned = [str(owners[at]) for at in telling(examples) if at < len(owners)]
            wanted += list(dict.fromkeys(owned))[:TOLD]
    columns = [name for name in dict.fromkeys(wanted) if name is not None and name in names]
    if not columns:
        return examples, []
    rows, lines = np.unique(examples.rows, return_inverse=True)
    taken = table.side_table.table(columns, rows).to_pydict()
    for name, values in taken.items():
        shown = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in values]
        taken[name] = [
            "–" if x is None else text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
            for x, text in zip(values, shown, strict=True)
        ]
    return examples, [{name: taken[name][line] for name in columns} for line in lines.tolist()]


def page(
    summary: Mapping[str, Any],
    folder: Any,
    evidence: dict[str, np.ndarray] | None,
    missing: Sequence[str] = (),
) -> bytes:
    """Make the page from a summary and what :func:`look_at_rows` has seen.

    The commands that go on name ``folder``; ``missing`` says what is not shown, and why.
    """
    inputs, settings = list(summary["run"]["input"]), summary.get("settings", {})
    name = summary["run"]["input"].get("simulation") or as_place(inputs[0]).name
    rest = f" and {len(inputs) - 1:,} more" if len(inputs) > 1 else ""
    more: dict[str, Any] = {}
    if evidence is not None:
        known = json.loads(str(evidence[KNOWN]))
        more = {"beside": known["beside"], "feature_names": known["names"]}
        more["evidence"] = ReportSample.from_state(evidence)

    # Commands that come next; all but the last need the rows again.
    steps, results = [], shlex.quote(str(folder))
    if not from_stdin(inputs):
        table = unused_table(summary["run"]["labels"]["named"])
        what, command = "a table of them to fill in", f"biglp suggest {results} -n 20 -o {table}"
        if summary.get("label_more"):
            what = f"{what}, or a page in the browser"
            command = f"{command}\n{summary['label_more']}"
        steps.append(Step(f"Label the rows that would help most: {what}.", command))
        if settings.get("probably_wrong_labels") or summary.get("doubtful_labels"):
            what, command = "are probably wrong", f"biglp check {results} -o doubtful.csv"
            steps.append(Step(f"See which given labels {what}.", command))
    # New rows are thought to be in a file like those of the fit.
    file, inside = split_inside(inputs[0])
    made = ".npy" if "simulation" in summary["run"]["input"] else ""
    new = f"new{made or ending(file) or '.parquet'}{inside}"
    given, labels = summary["run"]["option"], summary["run"]["labels"]
    reading = {name: given[name] for name in LAYOUT if name in given}
    if labels.get("metadata") is None:
        reading["id_column"] = labels["id column"]
    words = ["biglp", "predict", str(as_place(str(folder)) / MODEL), new, *typed_options(reading)]
    command = shlex.join([*words, "-o", "new-labels.parquet"])
    content = Content(
        title=f"{name}{rest}: {summary['rows']:,} rows labelled from "
        f"{summary['labelled_rows']:,} labels",
        facts=summary,
        classes=tuple(summary["found"]),
        going_on=[*steps, Step("Label new rows.", command)],
        missing=missing,
        **more,
    )
    return report_html(content).encode()


@dataclass(frozen=True)
class ReportJob(TableJob, ModelJob):
    """Write the report of a finished fit again."""

    folder: Any = Path()  # that biglp fit wrote
    summary: dict[str, Any] = field(default_factory=dict)  # what the fit says of itself
    without_rows: str | None = None  # why the rows cannot be looked at; the report has none then

    verb = "report"
    columns: ClassVar[tuple[str, ...]] = ()

    @property
    def neighbour(self) -> Any:
        """The report."""
        return as_place(self.folder) / REPORT

    def identity(self) -> dict[str, Any]:
        """The folder."""
        _ = self.memory
        if self.table is not None:
            self.refuse_to_replace()
        return {"command": self.verb, "folder": str(self.folder)}

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Look at the rows where they are there, and write the page."""
        target, missing = self.table or self.neighbour, []
        with self._whole_summary():
            n_rows, factor = self.summary["rows"], self.summary["settings"]["factor"]
            if self.without_rows is not None:
                missing = [
                    f"There is no map, and there are no rows to look at: {self.without_rows}"
                ]
            elif FACTORS[factor].pairwise:
                missing = [OWN_GRAPH]
        evidence = None
        if not missing:
            path = as_place(self.folder) / MODEL
            model = Model.load(path)
            seed = int(self.summary["run"]["option"].get("random_state") or 0)
            graph = self.open_graph(engine, run, path, model, seed)
            source = graph.source.inner
            labels = engine.once(lambda: self.label_input.gather(source.n_rows)).labels
            names = [str(name) for name in model.classes.tolist()]
            if [str(name) for name in labels.classes.tolist()] != names:
                raise ParameterError(
                    f"the labels have changed since the fit in {self.folder}: their classes are no "
                    "longer those of its model. Fit again with --overwrite."
                )
            lines = self.summary.get("doubtful_labels", ())  # as FitJob.work wrote them
            codes = {name: code for code, name in enumerate(names)}
            suggested = [codes[line["suggested_label"]] for line in lines]
            doubts = LabelDoubts(
                rows=np.array([line["row"] for line in lines], dtype=np.int64),
                codes=np.array([codes[line["label"]] for line in lines], dtype=np.int64),
                suggested=np.array(suggested, dtype=np.int64),
                probability=np.zeros(len(lines)),
                suggested_probability=np.ones(len(lines)),
                wrong=np.array([line["wrong"] for line in lines], dtype=np.float64),
                error_rate=0.0,
            )
            memory = min(engine.once(lambda: self.memory) // 4, MEMORY)
            look = EvidenceMaker(graph, model.answer, labels, doubts, seed, memory)
            with explained(source):
                evidence = look_at_rows(look, self.label_input, source)

        def write() -> None:
            with self._whole_summary():
                html = page(self.summary, self.folder, evidence, missing)
            with atomic_write(target) as file:
                file.write(html)

        engine.once(write)
        return [str(target)], {"rows": n_rows, "missing": missing}

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


def report_of_fit(folder: Any) -> dict[str, Any]:
    """Arguments of a :class:`ReportJob` for a finished fit, whose rows may be gone."""
    try:
        summary = dict(json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
        wrong: Any = summary["run"]["command"] != "fit"
    except (OSError, ValueError, KeyError, TypeError, BigLPError):
        wrong = True
    if wrong:
        raise ParameterError(
            f"{folder} is not the folder of a finished biglp fit (it has no {SUMMARY} of one); "
            "name the folder that was given to biglp fit -o."
        )
    arguments = {"folder": folder, "summary": summary}
    try:
        fit = FinishedFit.in_folder(
            folder, instead="the folder of one", changed="fit again to see them"
        )
        Model.load(folder / MODEL)
    except MissingExtraError:
        raise
    except (BigLPError, OSError) as error:
        return {**arguments, "inputs": (), "without_rows": str(error)}
    return {**fit.as_arguments(), **arguments}
