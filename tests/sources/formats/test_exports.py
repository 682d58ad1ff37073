"""Exports of labelling tools, in every form their documentation shows."""

import json

import pytest

from biglp._core.errors import LabelError
from biglp._labels.reading import LabelInput
from cli_tools import failed


def choice(*labels, name="label"):
    """A result of Label Studio."""
    value = {"choices": list(labels)}
    return {"id": "x1", "from_name": name, "to_name": "text", "type": "choices", "value": value}


def annotation(*results, cancelled=False):
    return {"id": 7, "result": list(results), "was_cancelled": cancelled, "completed_by": 1}


LABEL_STUDIO = [
    {"id": 11, "data": {"row": 3, "t": "a"}, "annotations": [annotation(choice("cat"))]},
    {
        "id": 12,
        "data": {"row": 4},
        "annotations": [
            annotation(choice("cat")),
            annotation(choice("dog"), choice("clear", name="quality")),
            annotation(cancelled=True),
        ],
        "predictions": [{"result": [choice("dog")], "score": 0.4}],
    },
    {"id": 13, "data": {"row": 5}, "annotations": [annotation(choice("dog"), cancelled=True)]},
    {"id": 14, "data": {"row": 6}, "annotations": []},
]
MINIMAL = [
    {"id": 11, "row": 3, "label": "cat", "annotator": 1, "annotation_id": 7, "lead_time": 1.5},
    {"id": 12, "row": 4, "label": "cat", "annotator": 1, "annotation_id": 8, "lead_time": 1.5},
    {"id": 12, "row": 4, "label": {"choices": ["dog"]}, "annotator": 2, "annotation_id": 9},
    {"id": 13, "row": 5, "annotator": 2, "annotation_id": 10, "lead_time": 0.1},
    {"id": 13, "row": 6, "annotator": 3, "annotation_id": 11, "lead_time": 0.1},
    {"id": 13, "row": 7, "annotator": 3, "annotation_id": 12, "lead_time": 0.1},
]


def record(row, responses):
    return {"id": f"r{row}", "fields": {"t": "a"}, "metadata": {"row": row}, "responses": responses}


ARGILLA = [
    record(3, {"label": [{"value": "cat", "user_id": "u"}]}),
    record(4, {"label": [{"value": v, "status": "submitted"} for v in ("cat", "dog")]}),
    record(5, {"label": [{"value": "dog", "user_id": "u", "status": "discarded"}]}),
    record(6, {"label": [{"value": "dog", "user_id": "u", "status": "draft"}]}),
    record(7, {}),
]
SERVER = [
    record(3, [{"status": "submitted", "values": {"label": {"value": "cat"}}}]),
    record(4, [{"status": "submitted", "values": {"label": {"value": v}}} for v in ("cat", "dog")]),
    record(5, [{"status": "discarded", "values": {"label": {"value": "dog"}}}]),
    record(6, [{"status": "draft", "values": {"label": {"value": "dog"}}}]),
    record(7, []),
]
FLAT = [
    {"id": "a", "row": 3, "label.responses": ["cat"], "label.responses.status": ["submitted"]},
    {
        "id": "b",
        "row": 4,
        "label.responses": ["cat", "dog", "dog"],
        "label.responses.status": ["submitted", "submitted", "draft"],
    },
    {"id": "c", "row": 5, "label.responses": ["cat"], "label.responses.status": ["discarded"]},
    {"id": "d", "row": 6, "label.responses": None, "label.responses.status": None},
]
EXPORTS = {
    "Label Studio": LABEL_STUDIO,
    "JSON-MIN": MINIMAL,
    "Argilla": ARGILLA,
    "Argilla's server": SERVER,
    "Argilla, flat": FLAT,
}


@pytest.mark.parametrize("lines", [False, True], ids=["list", "lines"])
@pytest.mark.parametrize("name", EXPORTS)
def test_every_export(tmp_path, name, lines):
    entries = EXPORTS[name]
    path = tmp_path / ("export.jsonl" if lines else "export.json")
    text = "\n".join(map(json.dumps, entries)) if lines else json.dumps(entries, indent=2)
    path.write_text(text)
    found = LabelInput(None, (path,)).gather(10)
    assert found.labels.rows.tolist() == [3, 4]
    assert found.labels.classes.tolist() == ["cat", "dog"]
    assert found.labels.distribution.tolist() == [[1, 0], [0.5, 0.5]]
    assert f"{path}: 3 entries without an answer were left out." in found.told


def test_the_control_is_named_where_there_are_several(tmp_path):
    result = (choice("cat", name="animal"), choice("good", name="quality"))
    tasks = [{"data": {"row": 1}, "annotations": [annotation(*result)]}]
    tasks += [{"data": {"row": 2}, "annotations": [annotation(choice("dog", name="animal"))]}]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with pytest.raises(LabelError, match=r"answers to 'animal', 'quality'; say which"):
        LabelInput(None, (path,)).gather(4)
    labels = LabelInput(None, (path,), label_column="animal").read(4)
    assert labels.classes.tolist() == ["cat", "dog"]


def test_plain_lines(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"row": 2, "label": 1}\n{"row": 0, "label": 0}\n\n{"row": 1, "label": null}\n')
    labels = LabelInput(None, (path,)).read(4)
    assert (labels.rows.tolist(), labels.classes.tolist()) == ([0, 2], [0, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{not json", "cannot be read as JSON"),
        ('[{"data": {"row": 1}, "annotations": []}]', r"holds no answer \(1 entries without one"),
        ('{"label": "cat"}\n{"row": 3, "label": "dog"}', "1 of 2 answers do not say which row"),
        ("[1, 2]", "a list of objects"),
    ],
)
def test_what_cannot_be_read(tmp_path, text, message):
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(LabelError, match=message):
        LabelInput(None, (tmp_path / "export.json",)).gather(4)


@pytest.mark.parametrize(
    "entry",
    [
        {"data": {"row": 3}, "annotations": [annotation(choice("cat", "dog"))]},
        {"row": 3, "label": {"choices": ["cat", "dog"]}},
        {"row": 3, "label": ["cat", "dog"]},
        record(3, {"label": [{"value": ["cat", "dog"]}]}),
    ],
)
def test_several_classes_in_one_answer_are_no_votes(tmp_path, entry):
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps([entry, {"row": 4, "label": "dog"}]))
    message = failed(3, "fit", "sim:1Kx4", "--labels", answers, "-o", tmp_path / "out")
    assert "answers.json has an answer that names several classes: 'cat', 'dog'" in message
    assert "several tags a row are not supported yet" in message
