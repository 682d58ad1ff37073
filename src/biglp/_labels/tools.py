"""Labels in JSON: what labelling tools export, and lines of ``{"row": …, "label": …}``.

=====================  ========================================================================
Label Studio, JSON     tasks with ``data`` and ``annotations``, each with a ``result``
Label Studio, JSON-MIN one object an annotation: the task's data, and each control's answer
Argilla                records with ``fields``, ``metadata`` and ``responses`` (``to_json``, the
                       server's, or flattened: ``label.responses``)
lines                  one object a line, also what ``biglp suggest --format jsonl`` writes
=====================  ========================================================================

Which of them an object is shows in its keys. Rows are known by their number (``row``) or ID, where
``biglp suggest`` put them or the user did. Answers of several people are votes.
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
from biglp._rows.encoding import some
from biglp._rows.format import LABEL_NAMES, Format, LabelColumns, LabelPiece
from biglp._rows.textfiles import open_text
from biglp._version import __version__

ANSWERED = ("submitted", None)
"""States of an answer in Argilla that count; drafts and discarded ones do not."""
MINIMAL = ("annotation_id", "annotator", "lead_time")
"""Keys by which an object of JSON-MIN is known."""


class Entry(NamedTuple):
    """What a tool says of one row.

    Attributes
    ----------
    about : list of dict
        Where its row number or ID may be found, the likeliest place first.
    answers : list of str
        A label for each vote.
    skipped : int
        Answers that do not count.
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
        labels: list[str] = []
        rows: list[Any] = []
        ids: list[Any] = []
        skipped = 0
        for entry in objects(files[0]):
            found = read_entry(entry, columns.label, files[0])
            skipped += found.skipped
            labels += found.answers
            row, key = _known_by(found.about, columns.id)
            rows += [row] * len(found.answers)
            ids += [key] * len(found.answers)
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


def objects(path: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list in JSON, or of lines of JSON."""
    with open_text(path) as file:
        text = file.read().decode("utf-8-sig", errors="replace")
    found: Any
    try:
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
        if len(found) == 1 and isinstance(found[0], list):
            found = found[0]
    except ValueError:
        try:
            found = json.loads(text)
        except ValueError as error:
            raise LabelError(
                f"{path} cannot be read as JSON: {error}. Give an export of Label Studio (JSON or "
                "JSON-MIN) or Argilla (records), or lines such as "
                '{"row": 7, "label": "cat"}.'
            ) from error
    found = [found] if isinstance(found, dict) else found
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise LabelError(f"{path} must hold a list of objects, as labelling tools export it.")
    yield from found


def read_entry(entry: dict[str, Any], wanted: str | None, path: str) -> Entry:
    """Read one object of any of the formats.

    Parameters
    ----------
    entry : dict
    wanted : str or None
        The control (Label Studio) or question (Argilla) that holds the labels; found by its name,
        or being the only one, by default.
    path : str
        What messages call the file.
    """
    for key in ("annotations", "completions"):
        if isinstance(entry.get(key), list):
            return _label_studio(entry, entry[key], wanted, path)
    if "responses" in entry or any(name.endswith(".responses") for name in entry):
        return _argilla(entry, wanted, path)
    plain = dict(entry)
    if any(name in entry for name in MINIMAL):
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
        found = _texts(choices[_chosen(list(choices), wanted, path)], path) if choices else []
        answers += found
        skipped += not found
    about = task.get("data") if isinstance(task.get("data"), dict) else {}
    return Entry([about or {}, task.get("meta") or {}], answers, skipped or int(not annotations))


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
            found = _texts(value, path) if status in ANSWERED else []
            answers += found
            skipped += not found
    own = {"id": record.get("external_id") or record.get("id")}
    flat = {name: record[name] for name in record if name not in ("id", "external_id")}
    places = [record.get("metadata") or {}, record.get("fields") or {}, flat, own]
    return Entry(places, answers, skipped)


def _chosen(names: list[str], wanted: str | None, path: str) -> str:
    """The control, question or field that holds the labels."""
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
    found = [item.get("choices") if isinstance(item, dict) else item for item in values]
    flat = [one for item in found for one in (item if isinstance(item, list) else [item])]
    texts = [str(one) for one in flat if one is not None and str(one) != ""]
    if len(set(texts)) > 1:
        raise LabelError(
            f"{path} has an answer that names several classes: {some(list(dict.fromkeys(texts)))}. "
            "Give one class an answer (answers of several people are one each); several tags a row "
            "are not supported yet."
        )
    return texts


def _known_by(about: list[Mapping[str, Any]], id_column: str | None) -> tuple[int | None, Any]:
    """Row number and ID of an entry, as far as it says them."""
    row = next((place["row"] for place in about if place.get("row") is not None), None)
    key = None
    if id_column is not None:
        names = (id_column, "id", "external_id")
        keys = (place[name] for place in about for name in names if place.get(name) is not None)
        key = next(keys, None)
    try:
        return (None if row is None else int(row)), key
    except (TypeError, ValueError):
        return None, key


EXPORTS = ExportsFormat()


# --------------------------------------------------------------------------------------------------
# Suggestions as files: a table, lines of JSON, or tasks of a labelling tool.
#
# The tools' own fields, as their documentation has them. Each task carries its row number and ID,
# so that what the tool exports is a file of labels (:mod:`biglp._labels.tools`).


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
