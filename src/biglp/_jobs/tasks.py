"""Suggestions as files: a table, lines of JSON, or tasks of a labelling tool.

The tools' own fields, as their documentation has them. Each task carries its row number and ID, so
that what the tool exports is a file of labels (:mod:`biglp._sources.formats.exports`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from biglp._version import __version__

CONTROL, SHOWN = "label", "text"
"""Names of Label Studio's tags: the choices, and what is shown."""
AGENT = f"biglp {__version__}"


@dataclass(frozen=True)
class Tasks:
    """Rows to label.

    Attributes
    ----------
    lines : list of dict
        ``row``, and where there is a model ``current_label``, ``confidence`` and ``doubt``; the ID,
        and what people want to see.
    columns : sequence of str
        All of these, in order.
    shown : sequence of str
        Columns that people want to see.
    id_column : str or None
    """

    lines: list[dict[str, Any]]
    columns: Sequence[str]
    shown: Sequence[str] = ()
    id_column: str | None = None


def as_csv(tasks: Tasks) -> str:
    """A table with an empty column ``label`` to fill in."""
    text = io.StringIO()
    writer = csv.DictWriter(text, tasks.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(tasks.lines)
    return text.getvalue()


def as_lines(tasks: Tasks) -> str:
    """The same, an object a line."""
    return "".join(_json(line) + "\n" for line in tasks.lines)


def for_label_studio(tasks: Tasks) -> str:
    """Tasks with predictions: https://labelstud.io/guide/predictions."""
    found = []
    for line in tasks.lines:
        task: dict[str, Any] = {"data": {name: line[name] for name in line if name != "label"}}
        if "current_label" in line:
            choice = {
                "from_name": CONTROL,
                "to_name": SHOWN,
                "type": "choices",
                "value": {"choices": [str(line["current_label"])]},
            }
            said = {"model_version": AGENT, "score": line["confidence"], "result": [choice]}
            task["predictions"] = [said]
        found.append(task)
    return _json(found, indent=1) + "\n"


def for_argilla(tasks: Tasks) -> str:
    """Records as ``Dataset.records.from_json`` takes them: https://docs.argilla.io."""
    found = []
    for line in tasks.lines:
        key = str(line["row"] if tasks.id_column is None else line[tasks.id_column])
        texts = {name: str(line[name]) for name in tasks.shown} or {"row": str(line["row"])}
        about = {name: line[name] for name in line if name not in ("label", *tasks.shown)}
        suggestions = {}
        if "current_label" in line:
            suggestions[CONTROL] = {
                "value": str(line["current_label"]),
                "score": line["confidence"],
                "agent": AGENT,
            }
        found.append(
            {
                "id": key,
                "external_id": key,
                "fields": texts,
                "metadata": about,
                "suggestions": suggestions,
                "responses": {},
                "vectors": {},
            }
        )
    return _json(found, indent=1) + "\n"


TASK_FORMATS: dict[str, Callable[[Tasks], str]] = {
    "csv": as_csv,
    "jsonl": as_lines,
    "label-studio": for_label_studio,
    "argilla": for_argilla,
}


def labelling_interface(shown: str, classes: Sequence[Any]) -> str:
    """Label Studio's configuration for these tasks, to be pasted into the project."""
    choices = "".join(f"<Choice value={quoteattr(str(name))}/>" for name in classes)
    return (
        f'<View><Text name="{SHOWN}" value={quoteattr("$" + shown)}/>'
        f'<Choices name="{CONTROL}" toName="{SHOWN}" choice="single">{choices}</Choices></View>'
    )


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
