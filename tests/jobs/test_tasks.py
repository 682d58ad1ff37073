"""Suggestions as tasks of labelling tools, answered as the tools do, read back and fitted."""

import json

import numpy as np
import pandas as pd
import pytest

from cli_tools import done, failed
from helpers import blobs

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture(params=[True, False], ids=["IDs", "row numbers"])
def run(request, tmp_path, monkeypatch):
    """A finished fit, the options of another, and the true classes."""
    monkeypatch.chdir(tmp_path)
    X, y, truth = blobs(n=600, labelled=12, dtype=np.float32)
    frame = pd.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])])
    frame["key"] = [f"K{number}" for number in range(600)]
    frame["kind"] = np.where(y < 0, None, NAMES[y])
    frame.to_csv("rows.csv", index=False)
    ids = ("--id-column", "key") if request.param else ("--drop", "key")
    options = ("rows.csv", *ids, "--label-column", "kind", "-k", "60", "--quiet")
    done("fit", *options, "-o", "out")
    return options, NAMES[truth]


def read(name):
    with open(name) as file:
        return json.load(file)


def write(name, entries):
    with open(name, "w") as file:
        json.dump(entries, file)


def label_studio(tasks, truth):
    """What Label Studio exports: an annotation of one person, and of two who agree or skip."""
    exported = []
    for number, task in enumerate(tasks):
        (prediction,) = task["predictions"]
        assert set(prediction) == {"model_version", "score", "result"}
        (said,) = prediction["result"]
        assert (said["from_name"], said["to_name"], said["type"]) == ("label", "text", "choices")
        right = {**said, "value": {"choices": [str(truth[task["data"]["row"]])]}}
        answer = {"result": [{**right, "id": "q"}], "was_cancelled": False, "completed_by": 1}
        skipped = {"result": [], "was_cancelled": True, "completed_by": 2}
        annotations = [answer, dict(answer, completed_by=2)] if number % 2 else [answer, skipped]
        exported.append({"id": 100 + number, "annotations": annotations, **task})
    return exported


def minimal(tasks, truth):
    """The same as JSON-MIN, where "id" is the tool's own."""
    return [
        {
            **task["data"],
            "id": 100 + number,
            "label": str(truth[task["data"]["row"]]),
            "annotator": 1,
            "annotation_id": number,
            "lead_time": 2.0,
        }
        for number, task in enumerate(tasks)
    ]


def argilla(records, truth):
    """What Argilla's ``records.to_json`` writes."""
    for item in records:
        assert set(item["suggestions"]["label"]) == {"value", "score", "agent"}
        assert all(isinstance(value, str) for value in item["fields"].values())
        right = str(truth[item["metadata"]["row"]])
        item["responses"] = {"label": [{"value": right, "user_id": "u1", "status": "submitted"}]}
    return [{**item, "_server_id": "7", "status": "completed"} for item in records]


@pytest.mark.parametrize(
    ("tool", "answered"),
    [("label-studio", label_studio), ("label-studio", minimal), ("argilla", argilla)],
)
def test_round_trip(run, tool, answered):
    options, truth = run
    done("suggest", "out", "-n", "8", "--format", tool, "--show", "x1", "-o", "tasks.json", "-q")
    tasks = read("tasks.json")
    assert len(tasks) == 8
    shown = [task["data"] if "data" in task else task["fields"] for task in tasks]
    assert all("x1" in data for data in shown)
    write("export.json", answered(tasks, truth))
    done("fit", *options, "--labels", "export.json", "-o", "more")
    summary = read("more/summary.json")
    assert summary["labelled_rows"] == 20
    assert not summary["warnings"] or "IDs" not in "".join(summary["warnings"])
    rows = {(task.get("data") or task.get("metadata"))["row"] for task in tasks}
    again = done("suggest", "more", "-n", "8", "--json").stdout
    assert not rows & {line["row"] for line in json.loads(again)["suggestions"]}


def test_lines_of_json(run):
    options, truth = run
    done("suggest", "out", "-n", "4", "-o", "next.jsonl", "-q")
    with open("next.jsonl") as file:
        lines = [json.loads(line) for line in file]
    with open("next.jsonl", "w") as file:
        file.writelines(json.dumps(line | {"label": truth[line["row"]]}) + "\n" for line in lines)
    done("fit", *options, "--labels", "next.jsonl", "-o", "more")
    assert read("more/summary.json")["labelled_rows"] == 16


def test_tasks_before_any_label(run):
    options, _ = run
    shown = done(
        "suggest",
        *options[:3],
        "--drop",
        "key,kind",
        "--format",
        "label-studio",
        "-n",
        "3",
        "-o",
        "first.json",
    ).stdout
    assert '<Choices name="label" toName="text"' in shown
    assert all(set(task) == {"data"} for task in read("first.json"))
    done("suggest", *options[:3], "--drop", "key,kind", "--format", "argilla", "-o", "a.json", "-q")
    assert all(item["suggestions"] == {} for item in read("a.json"))


def test_what_is_refused(run):
    assert "-o FILE" in failed(2, "suggest", "out", "--format", "argilla")
    assert "--format" in failed(2, "suggest", "out", "--format", "doccano", "-o", "x.json")
    assert "label-studio" in failed(2, "suggest", "out", "-o", "x.json")
    assert "--show" in failed(2, "suggest", "out", "--show", "nix", "-o", "x.csv")
