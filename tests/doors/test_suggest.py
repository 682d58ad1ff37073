"""``biglp suggest``: to a table or to tasks of labelling tools, answered, read back and fitted."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest

from biglp import LowRankLabelPropagation
from cli_tools import done, failed
from helpers import blobs

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with rows, a few labels and a finished fit."""
    monkeypatch.chdir(tmp_path)
    X, y, truth = blobs(n=2000, labelled=9, dtype=np.float32)
    np.save("rows.npy", X)
    known = np.flatnonzero(y >= 0)
    lines = ["row,label", *(f"{row},{y[row]}" for row in known)]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    done("fit", "rows.npy", "--labels", "labels.csv", "-o", "out", "-k", "60", "--quiet")
    return known, truth


def test_round_trip(folder, tmp_path):
    known, truth = folder
    shown = done("suggest", "out", "-n", "6").stdout
    named = ("rows.npy", "--model", "out/model.biglp", "--labels", "labels.csv")
    done("suggest", *named, "-n", "6", "-o", "next.csv", "--quiet")
    with open("next.csv", newline="") as file:
        table = list(csv.DictReader(file))
    rows = [int(line["row"]) for line in table]
    assert len(set(rows)) == 6
    assert not set(rows) & set(known)
    assert all(str(row) in shown for row in rows)
    with open("next.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows({**line, "label": truth[int(line["row"])]} for line in table)
    more = "".join(f"{row},{truth[row]}\n" for row in rows)
    labels = tmp_path / "labels.csv"
    labels.write_text(labels.read_text() + more)
    done("fit", "rows.npy", "--labels", "labels.csv", "-o", "out", "-k", "60", "-q", "--overwrite")
    done("fit", "rows.npy", "--labels", "next.csv", "-o", "alone", "-k", "60", "-q")
    assert not set(rows) & {
        int(line.split()[0]) for line in done("suggest", "out", "-n", "6").stdout.splitlines()[2:]
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "alone",
        "labels.csv",
        "next.csv",
        "out",
        "rows.npy",
    ]


def test_same_as_the_estimator(folder):
    found = LowRankLabelPropagation.load("out/model.biglp")
    lines = done("suggest", "rows.npy", "--model", "out/model.biglp", "-n", "5").stdout.splitlines()
    expected = found.suggest(5, np.load("rows.npy"))
    assert [int(line.split()[0]) for line in lines[2:]] == expected.tolist()


def test_from_zero_labels_to_the_next_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, _, truth = blobs(n=600, spread=0.5)
    columns = [f"x{number}" for number in range(X.shape[1])]
    lines = [",".join([*columns, "colour", "y"])]
    lines += [",".join([*(f"{v:.3f}" for v in row), "rg"[i % 2], ""]) for i, row in enumerate(X)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    reading = ("--categorical", "onehot", "--label-column", "y", "-n", "12")
    shown = done("suggest", "rows.csv", *reading, "-o", "next.csv").stdout
    assert "biglp fit rows.csv --labels next.csv --categorical onehot --drop y -o out/" in shown
    with open("next.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [*table[0]] == ["row", "label"]
    rows = [int(line["row"]) for line in table]
    assert len(set(rows)) == 12
    assert set(truth[rows]) == {0, 1, 2}
    filled = "".join(f"{row},{truth[row]}\n" for row in rows)
    (tmp_path / "next.csv").write_text("row,label\n" + filled)
    fit = ("--labels", "next.csv", "--categorical", "onehot", "--drop", "y", "-o", "out", "-q")
    done("fit", "rows.csv", *fit)
    again = done("suggest", "out", "-n", "6").stdout.splitlines()[2:]
    assert not {int(line.split()[0]) for line in again} & set(rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["next.csv", "out", "rows.csv"]


def test_first_rows_are_those_of_the_estimator(folder):
    shown = done("suggest", "rows.npy", "-n", "5", "--seed", "3", "--memory", "600MB").stdout
    found = LowRankLabelPropagation(random_state=3).suggest_first(np.load("rows.npy"), 5)
    assert [int(line) for line in shown.splitlines()[2:7]] == found.tolist()


def test_what_is_refused(folder, tmp_path):
    assert "biglp fit" in failed(2, "suggest", "rows.npy", "--labels", "labels.csv")
    assert "--scaling" in failed(2, "suggest", "out", "--scaling", "none")
    assert "--columns" in failed(2, "suggest", "out", "--columns", "a,b")
    (tmp_path / "empty").mkdir()
    assert "finished biglp fit" in failed(2, "suggest", "empty")
    (tmp_path / "next.csv").write_text("mine")
    assert "--overwrite" in failed(2, "suggest", "out", "-o", "next.csv")
    np.save("rows.npy", np.zeros((10, 5), dtype=np.float32))
    assert "changed" in failed(2, "suggest", "out")


NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture(params=[True, False], ids=["IDs", "row numbers"])
def project(request, tmp_path, monkeypatch):
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


def read_json(name):
    with open(name) as file:
        return json.load(file)


def write_json(name, entries):
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
def test_round_trip_of_tasks(project, tool, answered):
    options, truth = project
    done("suggest", "out", "-n", "8", "--format", tool, "--show", "x1", "-o", "tasks.json", "-q")
    tasks = read_json("tasks.json")
    assert len(tasks) == 8
    shown = [task["data"] if "data" in task else task["fields"] for task in tasks]
    assert all("x1" in data for data in shown)
    write_json("export.json", answered(tasks, truth))
    done("fit", *options, "--labels", "export.json", "-o", "more")
    summary = read_json("more/summary.json")
    assert summary["labelled_rows"] == 20
    assert not summary["warnings"] or "IDs" not in "".join(summary["warnings"])
    rows = {(task.get("data") or task.get("metadata"))["row"] for task in tasks}
    again = done("suggest", "more", "-n", "8", "--json").stdout
    assert not rows & {line["row"] for line in json.loads(again)["suggestions"]}


def test_lines_of_json(project):
    options, truth = project
    done("suggest", "out", "-n", "4", "-o", "next.jsonl", "-q")
    with open("next.jsonl") as file:
        lines = [json.loads(line) for line in file]
    with open("next.jsonl", "w") as file:
        file.writelines(json.dumps(line | {"label": truth[line["row"]]}) + "\n" for line in lines)
    done("fit", *options, "--labels", "next.jsonl", "-o", "more")
    assert read_json("more/summary.json")["labelled_rows"] == 16


def test_tasks_before_any_label(project):
    options, _ = project
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
    assert all(set(task) == {"data"} for task in read_json("first.json"))
    done("suggest", *options[:3], "--drop", "key,kind", "--format", "argilla", "-o", "a.json", "-q")
    assert all(item["suggestions"] == {} for item in read_json("a.json"))


def test_tasks_that_are_refused(project):
    assert "-o FILE" in failed(2, "suggest", "out", "--format", "argilla")
    assert "--format" in failed(2, "suggest", "out", "--format", "doccano", "-o", "x.json")
    assert "label-studio" in failed(2, "suggest", "out", "-o", "x.json")
    assert "--show" in failed(2, "suggest", "out", "--show", "nix", "-o", "x.csv")
