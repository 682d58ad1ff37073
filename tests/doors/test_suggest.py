"""Which rows to label: typical ones first, doubtful ones next, those unlike all labels; and
``biglp suggest``, to a table or to tasks of labelling tools, answered, read back and fitted."""

import csv
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp._core import ParameterError, UnlikeLabelsWarning
from cli_tools import done, failed
from helpers import blobs, fitted_blobs, model, rows_in_a_block

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")

# The first rows, before there is a label ----------------------------------------------------------


def groups(n=400, classes=8):
    rng = np.random.default_rng(0)
    shares = np.linspace(4, 1, classes)
    truth = rng.choice(classes, n, p=shares / shares.sum())
    centres = 12.0 * np.eye(classes, 10)
    return centres[truth] + rng.normal(size=(n, 10)), truth


def first(X, n=8, **changes):
    settings = {"n_landmarks": 60, "engine": "serial", "scaling": "none", **changes}
    return LowRankLabelPropagation(**settings).suggest_first(X, n)


@pytest.mark.parametrize("factor", ["auto", "nystrom", "glnp", "linear"])
def test_first_rows_are_each_named_once(factor):
    X, _ = groups()
    k = {} if factor != "linear" else {"n_landmarks": "auto"}
    assert len(np.unique(first(X, 30, factor=factor, **k))) == 30


def test_first_rows_are_typical_and_of_every_group():
    X, truth = groups()
    means = np.array([X[truth == code].mean(axis=0) for code in range(8)])
    far = np.linalg.norm(X - means[truth], axis=1)
    assert far[first(X)].mean() < 0.9 * far.mean()
    for seed in range(3):
        assert len(np.unique(truth[first(X, random_state=seed)])) == 8


@pytest.mark.parametrize("factor", ["auto", "nystrom"])
def test_the_same_first_rows_on_every_engine(engine, factor):
    X, _ = groups()
    np.testing.assert_array_equal(first(X, factor=factor, engine=engine), first(X, factor=factor))


def test_the_same_first_rows_for_any_cut(monkeypatch):
    X, _ = groups()
    monkeypatch.setattr("biglp._fit.choose_rows.TYPICAL_SAMPLE", 150)
    expected = first(X)
    for rows in (13, 400):
        with rows_in_a_block(rows):
            np.testing.assert_array_equal(first(X), expected)


def test_more_than_there_are_clusters(monkeypatch):
    X, *_ = blobs(n=90)
    monkeypatch.setattr("biglp._fit.choose_rows.MOST_CLUSTERS", 5)
    np.testing.assert_array_equal(np.sort(first(X, 1000)), np.arange(90))
    few = np.repeat(np.eye(3), 20, axis=0)  # three distinct rows
    assert len(np.unique(first(few, 10, n_landmarks=3))) == 10


@pytest.mark.parametrize("n", [0, -1, 2.5, "ten"])
def test_the_number_is_checked(n):
    for ask in (lambda: first(groups()[0], n), lambda: fitted_blobs()[0].suggest(n)):
        with pytest.raises(ParameterError, match="n="):
            ask()


# The next rows, by the doubts of a model ----------------------------------------------------------


@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "glnp", "linear"])
def test_unlabelled_rows_each_once(factor):
    found, X, y, _ = fitted_blobs(factor)
    rows = found.suggest(15)
    assert len(np.unique(rows)) == 15
    assert (y[rows] == -1).all()
    np.testing.assert_array_equal(rows, found.suggest(15))
    every = np.sort(found.suggest(10_000))
    np.testing.assert_array_equal(every, np.flatnonzero(y == -1))
    rows = found.suggest(7, X[:100])
    assert len(np.unique(rows)) == 7
    assert rows.max() < 100
    with pytest.raises(ValueError, match="features"):
        found.suggest(3, X[:100, :2])


@pytest.fixture
def few_candidates(monkeypatch):
    monkeypatch.setattr("biglp._fit.choose_rows.CANDIDATES", 40)
    monkeypatch.setattr("biglp._fit.choose_rows.POOL_SAMPLE", 100)


@pytest.mark.parametrize("factor", ["auto", "nystrom", "glnp"])
def test_the_same_rows_on_every_engine_and_cut(engine, factor, few_candidates):
    expected = fitted_blobs(factor)[0].suggest(8)
    np.testing.assert_array_equal(fitted_blobs(factor, engine=engine)[0].suggest(8), expected)
    for rows in (13, 400) if engine.shares_memory and factor != "glnp" else ():
        np.testing.assert_array_equal(fitted_blobs(factor, rows=rows)[0].suggest(8), expected)


def test_doubtful_rows_come_first():
    found, *_ = fitted_blobs()
    doubts = 1.0 - np.sort(found.label_distributions_)[:, -1]
    assert doubts[found.suggest(20)].mean() > 2 * doubts.mean()
    X, _, truth = blobs(n=60)
    assert model().fit(X, truth).suggest(3).shape == (0,)  # nothing is left to label


# Rows unlike all labels: found when a class has none, not found otherwise -------------------------


def digits(missing=(), seed=0, each=6, **changes):
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), -1)
    for code in set(range(10)) - set(missing):
        y[rng.choice(np.flatnonzero(truth == code), each, replace=False)] = code
    settings = {"engine": "serial", "random_state": 0, **changes}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = LowRankLabelPropagation(**settings).fit(X, y)
    about = [str(w.message) for w in caught if issubclass(w.category, UnlikeLabelsWarning)]
    return found, truth, about


@pytest.fixture(scope="module")
def without_two():
    return digits((0, 6))


def test_missing_classes_are_found(without_two):
    """Of labels and graphs drawn at random five in six find them; here half of eight must."""
    suggested, groups, last = 0, 0, None
    for seed, missing in enumerate([(0, 6), (2, 7), (4, 5), (1, 3)] * 2):
        found, truth, warned = digits(missing, seed) if seed else without_two
        suggested += len(set(missing) & set(truth[found.suggest(20)]))
        group = found.report_["unlike_labels"]
        assert len(warned) == (group is not None)
        if group is not None:
            groups += 1
            last = found, missing
            assert 0.05 <= group["share"] <= 0.4
            assert np.isin(truth[group["rows"]], missing).any()
            assert all(f"{row:,}" in warned[0] for row in group["rows"])
    assert groups >= 4
    assert suggested >= 14  # of sixteen classes; one graph in forty leaves one out
    # Nothing is missing any more when the classes are labelled.
    found, missing = last
    rng = np.random.default_rng(1)
    more = [rng.choice(np.flatnonzero(truth == code), 12, replace=False) for code in missing]
    rows = np.concatenate(more)
    found.update_labels(rows, truth[rows])
    assert found.report_["unlike_labels"] is None


def test_nothing_is_missing(monkeypatch):
    assert not any(digits(seed=seed)[2] for seed in range(3))
    monkeypatch.setattr("biglp._fit.novelty.LEAST_ROWS", 2000)
    found, _, warned = digits((0, 6))  # not looked for in few rows
    assert (found.report_["unlike_labels"], warned) == (None, [])


def test_the_same_group_for_any_cut(without_two):
    expected = without_two[0].report_["unlike_labels"]
    with rows_in_a_block(250):
        assert digits((0, 6), engine="threads")[0].report_["unlike_labels"] == expected


# ``biglp suggest`` --------------------------------------------------------------------------------


def read_json(name):
    with open(name) as file:
        return json.load(file)


def rows_shown(*command):
    firsts = (line.split() for line in done("suggest", *command).stdout.splitlines()[2:])
    return [int(words[0]) for words in firsts if words and words[0].isdecimal()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
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
    named = ("rows.npy", "--model", "out/model.biglp", "--labels", "labels.csv")
    done("suggest", *named, "-n", "6", "-o", "next.csv", "--quiet")
    with open("next.csv", newline="") as file:
        table = list(csv.DictReader(file))
    rows = [int(line["row"]) for line in table]
    assert len(set(rows) - set(known)) == 6
    expected = LowRankLabelPropagation.load("out/model.biglp").suggest(5, np.load("rows.npy"))
    assert rows_shown(*named[:3], "-n", "5") == expected.tolist()
    with open("next.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows({**line, "label": truth[int(line["row"])]} for line in table)
    labels = tmp_path / "labels.csv"
    labels.write_text(labels.read_text() + "".join(f"{row},{truth[row]}\n" for row in rows))
    done("fit", "rows.npy", "--labels", "labels.csv", "-o", "out", "-k", "60", "-q", "--overwrite")
    done("fit", "rows.npy", "--labels", "next.csv", "-o", "alone", "-k", "60", "-q")
    assert not set(rows) & set(rows_shown("out", "-n", "6"))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"alone", "labels.csv", "next.csv", "out", "rows.npy"}


def test_first_rows_are_those_of_the_estimator(folder):
    shown = done("suggest", "rows.npy", "-n", "5", "--seed", "3", "--memory", "600MB").stdout
    found = LowRankLabelPropagation(random_state=3).suggest_first(np.load("rows.npy"), 5)
    assert [int(line) for line in shown.splitlines()[2:7]] == found.tolist()


def test_what_is_refused(folder, tmp_path):
    assert "biglp fit" in failed(2, "suggest", "rows.npy", "--labels", "labels.csv")
    (tmp_path / "empty").mkdir()
    assert "finished biglp fit" in failed(2, "suggest", "empty")
    (tmp_path / "next.csv").write_text("mine")
    for options, named in (
        ("--scaling none", "--scaling"),
        ("--columns a,b", "--columns"),
        ("-o next.csv", "--overwrite"),
        ("-o new.csv --show nix", "--metadata FILE"),
        ("--format argilla", "-o FILE"),
        ("--format doccano -o x.json", "--format"),
        ("-o x.json", "label-studio"),
    ):
        assert named in failed(2, "suggest", "out", *options.split())
    np.save("rows.npy", np.zeros((10, 5), dtype=np.float32))
    assert "changed" in failed(2, "suggest", "out")


NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture(params=[True, False], ids=["IDs", "row numbers"])
def project(request, tmp_path, monkeypatch):
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


def label_studio(tasks, truth):
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
    own = {"annotator": 1, "annotation_id": 1, "lead_time": 2.0}
    return [
        {**task["data"], **own, "id": 100 + number, "label": str(truth[task["data"]["row"]])}
        for number, task in enumerate(tasks)
    ]


def argilla(records, truth):
    for item in records:
        assert set(item["suggestions"]["label"]) == {"value", "score", "agent"}
        assert all(isinstance(value, str) for value in item["fields"].values())
        right = str(truth[item["metadata"]["row"]])
        item["responses"] = {"label": [{"value": right, "user_id": "u1", "status": "submitted"}]}
    return [{**item, "_server_id": "7", "status": "completed"} for item in records]


def lines(records, truth):
    return [item | {"label": str(truth[item["row"]])} for item in records]


@pytest.mark.parametrize(
    ("tool", "answered"),
    [("label-studio", label_studio), ("label-studio", minimal), ("argilla", argilla), ("", lines)],
)
def test_round_trip_of_tasks(project, tool, answered):
    options, truth = project
    name = "tasks.json" if tool else "tasks.jsonl"
    chosen = ("--format", tool, "--show", "x1") if tool else ()
    done("suggest", "out", "-n", "8", *chosen, "-o", name, "-q")
    with open(name) as file:
        tasks = json.load(file) if tool else [json.loads(line) for line in file]
    assert len(tasks) == 8
    if tool:
        assert all("x1" in (task.get("data") or task["fields"]) for task in tasks)
    answers = answered(tasks, truth)
    with open(f"export.{name}", "w") as file:
        if tool:
            json.dump(answers, file)
        else:
            file.writelines(json.dumps(each) + "\n" for each in answers)
    done("fit", *options, "--labels", f"export.{name}", "-o", "more")
    summary = read_json("more/summary.json")
    assert summary["labelled_rows"] == 20
    assert "IDs" not in "".join(summary["warnings"])
    rows = {(task.get("data") or task.get("metadata") or task)["row"] for task in tasks}
    again = json.loads(done("suggest", "more", "-n", "8", "--json").stdout)
    assert not rows & {line["row"] for line in again["suggestions"]}


def test_tasks_before_any_label(project):
    options, _ = project
    common = ("suggest", *options[:3], "--drop", "key,kind", "-n", "3", "--format")
    shown = done(*common, "label-studio", "-o", "first.json").stdout
    assert '<Choices name="label" toName="text"' in shown
    assert all(set(task) == {"data"} for task in read_json("first.json"))
    done(*common, "argilla", "-o", "a.json", "-q")
    assert all(item["suggestions"] == {} for item in read_json("a.json"))
    assert "--show" in failed(2, "suggest", "out", "--show", "nix", "-o", "x.csv")
