"""Labels in JSON, to and from labelling tools.

=====================  ========================================================================
Label Studio, JSON     tasks with ``data`` and ``annotations``, each with a ``result``
Label Studio, JSON-MIN one object an annotation: the task's data, and each control's answer
Argilla                records with ``fields``, ``metadata`` and ``responses`` (``to_json``, the
                       server's, or flattened: ``label.responses``)
lines                  one object a line, also what ``biglp suggest --format jsonl`` writes
=====================  ========================================================================

Which of them an object is shows in its keys. Rows are known by their number (``row``) or ID, where
``biglp suggest`` put them or the user did: each task carries both, so that what a tool exports is a
file of labels. Answers of several people are votes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from biglp._core.errors import LabelError
from biglp._rows.format import LABEL_NAMES, Format, LabelColumns, LabelPiece
from biglp._rows.source import some
from biglp._rows.textfiles import open_text
from biglp._version import __version__

ANSWERED = ("submitted", None)
"""States of an answer in Argilla that count; drafts and discarded ones do not."""
MINIMAL = ("annotation_id", "annotator", "lead_time")
"""Keys by which an object of JSON-MIN is known."""


class Entry(NamedTuple):
    """What a tool says of one row: a label for each vote, and how many answers do not count.

    Its number or ID is in one of ``about``, the likeliest first.
    """

    about: list[Mapping[str, Any]]
    answers: list[str]
    skipped: int


class ExportsFormat(Format):
    """JSON of a labelling tool, or lines of JSON."""

    name = "JSON"
    names_labels = True

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the answers of the first file."""
        labels, rows, ids, skipped = list[str](), list[Any](), list[Any](), 0
        for item in _objects(files[0]):
            entry = _read_entry(item, columns.label, files[0])
            skipped += entry.skipped
            labels += entry.answers
            row, key = _row_and_id(entry.about, columns.id)
            rows += [row] * len(entry.answers)
            ids += [key] * len(entry.answers)
        if not labels:
            raise LabelError(
                f"{files[0]} holds no answer ({skipped:,} entries without one); it must be "
                "an export of Label Studio (JSON or JSON-MIN) or Argilla (records), or lines such "
                'as {"row": 7, "label": "cat"}. Labels that are not called \'label\' are named '
                "with column= (--label-column)."
            )
        if columns.id is not None and all(key is not None for key in ids):
            import pyarrow as pa  # a table has the IDs: pyarrow is there

            keys = pa.array(map(str, ids), type=pa.string())
            yield LabelPiece(labels, ids=keys, text=True, skipped=skipped)
            return
        missing = sum(row is None for row in rows)
        if missing:
            known = "row" if columns.id is None else f"row' or {columns.id!r}, as 'id"
            raise LabelError(
                f"{files[0]}: {missing:,} of {len(rows):,} answers do not say which row they are "
                f"about; each needs a field {known!r} in its data (biglp suggest --format puts it "
                "there). Rows are counted from 0; for IDs give id_column= (--id-column)."
            )
        numbers = np.array(rows, dtype=np.int64)
        yield LabelPiece(labels, rows=numbers, text=True, skipped=skipped)


EXPORTS = ExportsFormat()


def _objects(path: str) -> list[dict[str, Any]]:
    """The objects of a list in JSON, or of lines of JSON."""
    with open_text(path) as file:
        text = file.read().decode("utf-8-sig", errors="replace")
    objects: Any
    try:
        objects = [json.loads(line) for line in text.splitlines() if line.strip()]
        if len(objects) == 1 and isinstance(objects[0], list):
            objects = objects[0]
    except ValueError:
        try:
            objects = json.loads(text)
        except ValueError as error:
            raise LabelError(
                f"{path} cannot be read as JSON: {error}. Give an export of Label Studio (JSON or "
                "JSON-MIN) or Argilla (records), or lines such as "
                '{"row": 7, "label": "cat"}.'
            ) from error
    objects = [objects] if isinstance(objects, dict) else objects
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise LabelError(f"{path} must hold a list of objects, as labelling tools export it.")
    return objects


def _read_entry(item: dict[str, Any], wanted: str | None, path: str) -> Entry:
    """Read an object of any tool; ``wanted`` is the control or question that holds the labels."""
    for key in ("annotations", "completions"):
        if isinstance(item.get(key), list):
            return _label_studio(item, item[key], wanted, path)
    if "responses" in item or any(name.endswith(".responses") for name in item):
        return _argilla(item, wanted, path)
    plain = dict(item)
    if any(name in item for name in MINIMAL):
        plain.pop("id", None)  # the tool's own
    label = next((name for name in (wanted, *LABEL_NAMES) if name in plain), None)
    answers = [] if label is None else _texts(plain[label], path)
    return Entry([plain], answers, int(not answers))


def _label_studio(
    task: dict[str, Any], annotations: list[dict[str, Any]], wanted: str | None, path: str
) -> Entry:
    answers, skipped = list[str](), 0
    for annotation in annotations:
        result = [] if annotation.get("was_cancelled") else annotation.get("result") or []
        choices = {
            str(item.get("from_name")): item["value"]["choices"]
            for item in result
            if isinstance(item.get("value"), dict) and "choices" in item["value"]
        }
        texts = _texts(choices[_chosen(list(choices), wanted, path)], path) if choices else []
        answers += texts
        skipped += not texts
    data = task.get("data") if isinstance(task.get("data"), dict) else {}
    return Entry([data or {}, task.get("meta") or {}], answers, skipped or int(not annotations))


def _argilla(record: dict[str, Any], wanted: str | None, path: str) -> Entry:
    questions: dict[str, list[tuple[Any, Any]]] = {}
    responses = record.get("responses")
    if isinstance(responses, list):  # the server's: one a user, with all questions
        for response in responses:
            for name, value in (response.get("values") or {}).items():
                questions.setdefault(name, []).append((value.get("value"), response.get("status")))
    elif isinstance(responses, dict):
        for name, given in responses.items():
            questions[name] = [(item.get("value"), item.get("status")) for item in given or []]
    else:
        for key in (name for name in record if name.endswith(".responses")):
            values = record[key] or []
            states = record.get(f"{key}.status") or [None] * len(values)
            questions[key.removesuffix(".responses")] = list(zip(values, states, strict=False))
    questions = {name: given for name, given in questions.items() if given}
    answers, skipped = list[str](), int(not questions)
    if questions:
        for value, status in questions[_chosen(list(questions), wanted, path)]:
            texts = _texts(value, path) if status in ANSWERED else []
            answers += texts
            skipped += not texts
    own = {"id": record.get("external_id") or record.get("id")}
    flat = {name: record[name] for name in record if name not in ("id", "external_id")}
    about = [record.get("metadata") or {}, record.get("fields") or {}, flat, own]
    return Entry(about, answers, skipped)


def _chosen(names: list[str], wanted: str | None, path: str) -> str:
    """The control or question that holds the labels."""
    if wanted in names:
        return str(wanted)
    named = [name for name in names if name.lower() in LABEL_NAMES]
    if len(named) == 1 or len(names) == 1:
        return (named or names)[0]
    raise LabelError(
        f"{path} has answers to {some(names)}; say which holds the labels with column= "
        "(--label-column), or call it 'label'."
    )


def _texts(value: Any, path: str) -> list[str]:
    """Labels of one answer: a text or number, a list, or an object of choices."""
    if isinstance(value, dict):
        value = value.get("choices", value.get("value"))
    values = value if isinstance(value, list) else [value]
    choices = [item.get("choices") if isinstance(item, dict) else item for item in values]
    flat = [name for item in choices for name in (item if isinstance(item, list) else [item])]
    texts = [str(name) for name in flat if name is not None and str(name) != ""]
    if len(set(texts)) > 1:
        raise LabelError(
            f"{path} has an answer that names several classes: {some(list(dict.fromkeys(texts)))}. "
            "Give one class an answer (answers of several people are one each); several tags a row "
            "are not supported yet."
        )
    return texts


def _row_and_id(about: list[Mapping[str, Any]], id_column: str | None) -> tuple[int | None, Any]:
    """Row number and ID of an entry, as far as it says them."""
    row = next((fields["row"] for fields in about if fields.get("row") is not None), None)
    names = () if id_column is None else (id_column, "id", "external_id")
    keys = (fields[name] for fields in about for name in names if fields.get(name) is not None)
    key = next(keys, None)
    try:
        return (None if row is None else int(row)), key
    except (TypeError, ValueError):
        return None, key


# --------------------------------------------------------------------------------------------------
# Suggestions as files: a table, lines of JSON, or tasks, in the fields of the tools' documentation.


CONTROL, SHOWN = "label", "text"
"""Names of Label Studio's tags: the choices, and what is shown."""
AGENT = f"biglp {__version__}"


@dataclass(frozen=True)
class Tasks:
    """Rows to label, a dict each: ``row``, the ID, and what people want to see.

    Where there is a model they have ``current_label``, ``confidence`` and ``doubt`` as well.
    ``columns`` are all of these in order, ``shown`` those that people want to see.
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
    made = []
    for line in tasks.lines:
        task: dict[str, Any] = {"data": {name: line[name] for name in line if name != "label"}}
        if "current_label" in line:
            choice = {
                "from_name": CONTROL,
                "to_name": SHOWN,
                "type": "choices",
                "value": {"choices": [str(line["current_label"])]},
            }
            task["predictions"] = [
                {"model_version": AGENT, "score": line["confidence"], "result": [choice]}
            ]
        made.append(task)
    return _json(made, indent=1) + "\n"


def for_argilla(tasks: Tasks) -> str:
    """Records as ``Dataset.records.from_json`` takes them: https://docs.argilla.io."""
    records = []
    for line in tasks.lines:
        key = str(line["row"] if tasks.id_column is None else line[tasks.id_column])
        suggestion = "current_label" in line and {
            "value": str(line["current_label"]),
            "score": line["confidence"],
            "agent": AGENT,
        }
        records.append(
            {
                "id": key,
                "external_id": key,
                "fields": {name: str(line[name]) for name in tasks.shown}
                or {"row": str(line["row"])},
                "metadata": {n: line[n] for n in line if n not in ("label", *tasks.shown)},
                "suggestions": {CONTROL: suggestion} if suggestion else {},
                "responses": {},
                "vectors": {},
            }
        )
    return _json(records, indent=1) + "\n"


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
