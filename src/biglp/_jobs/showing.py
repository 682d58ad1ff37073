"""The report of a run: looking at the rows while they are open, writing the page at the end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from biglp._files.runfolder import RunFolder
from biglp._files.uri import as_place
from biglp._fit.evidence import Evidence, Examples, Look
from biglp._jobs.inputs import from_stdin
from biglp._jobs.results import MODEL
from biglp._labels.doubts import LabelDoubts
from biglp._labels.labels import Labels
from biglp._labels.reading import LabelInput
from biglp._report.page import report_html
from biglp._report.rows import TOLD, Content, Step, pictures_of, side_of, telling
from biglp._rows import Source

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
        taken = self.label_input.beside.take(columns, rows)
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
            for name in self.label_input.beside.names
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
        beside = self.label_input.beside
        if beside.tables[0].part_rows:
            return True
        return sum(Path(name).stat().st_size for name in beside.files.files) <= TEXT_BYTES

    def _columns(self, examples: Examples) -> list[str]:
        """Columns that are shown: the ID, texts, and what tells classes apart."""
        available, encoding = self.label_input.beside.names, self.source.encoding
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


def evidence_state(look: Look, rows: ShownRows) -> dict[str, np.ndarray]:
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
        more["evidence"] = Evidence.from_state(state)
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
