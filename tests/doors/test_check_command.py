"""``biglp check``: from a file with wrong labels to a list of them, and back."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from cli_tools import done, failed

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with digits, labels of which some are wrong, and the rows of those."""
    monkeypatch.chdir(tmp_path)
    rows, truth = load_digits(return_X_y=True)
    np.save("rows.npy", rows.astype(np.float32))
    rng = np.random.default_rng(0)
    known = np.sort(rng.choice(len(truth), 200, replace=False))
    labels = truth[known].copy()
    wrong = rng.choice(200, 20, replace=False)
    labels[wrong] = (labels[wrong] + 1) % 10
    write_labels(known, labels)
    return known, labels, truth, known[wrong]


def write_labels(rows, labels):
    """A file of ``row,label`` pairs."""
    lines = ["row,label", *(f"{row},{label}" for row, label in zip(rows, labels, strict=True))]
    with open("labels.csv", "w") as file:
        file.write("\n".join(lines) + "\n")


def test_round_trip(folder, tmp_path):
    known, labels, truth, wrong = folder
    named = ("rows.npy", "--labels", "labels.csv")
    fitted = done("fit", *named, "-o", "out").stdout
    assert "Probably wrong: " in fitted
    assert "biglp check out" in fitted
    shown = done("check", "out", "-o", "doubtful.csv").stdout
    with open("doubtful.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == [
        "row",
        "label",
        "suggested_label",
        "probability",
        "suggested_probability",
        "wrong",
    ]
    found = [int(line["row"]) for line in table]
    assert np.isin(found[:15], wrong).mean() > 0.8
    assert f"{found[0]}" in shown
    assert "labels.csv" in shown
    given = dict(zip(known, labels, strict=True))
    assert all(int(line["label"]) == given[int(line["row"])] for line in table)
    corrected = np.where(np.isin(known, found), truth[known], labels)
    write_labels(known, corrected)
    before = json.loads(done("check", *named, "--json", "-q").stdout)["probably_wrong_labels"]
    after = json.loads(done("check", "out", "--json").stdout)  # the corrected file
    assert after["probably_wrong_labels"] == before < 10
    assert after["checked_labels"] == after["labelled_rows"] == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "doubtful.csv",
        "labels.csv",
        "out",
        "rows.npy",
    ]


def test_same_as_the_estimator(folder):
    known, labels, _, _ = folder
    options = ("-k", "80", "--seed", "3", "--class-balance", "mass")
    done("fit", "rows.npy", "--labels", "labels.csv", "-o", "out", "-q", *options)
    y = np.full(1797, -1)
    y[known] = labels
    model = LowRankLabelPropagation(n_landmarks=80, random_state=3, class_balance="mass")
    expected = model.fit(np.load("rows.npy"), y).doubtful_labels(least=0.2)
    found = json.loads(done("check", "out", "--json", "--least", "0.2").stdout)["doubtful"]
    assert [line["row"] for line in found] == expected.rows.tolist()
    assert [line["suggested_label"] for line in found] == expected.suggested_labels.tolist()
    np.testing.assert_allclose([line["wrong"] for line in found], expected.wrong, atol=1e-4)


def test_a_table_with_text_labels_and_weights(folder):
    known, labels, _, wrong = folder
    rows = np.load("rows.npy")
    header = [f"p{i}" for i in range(64)] + ["digit", "sure"]
    names = {row: f"digit {label}" for row, label in zip(known, labels, strict=True)}
    with open("table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([*row, names.get(i, ""), 1.5] for i, row in enumerate(rows.tolist()))
    options = ("--label-column", "digit", "--weight-column", "sure")
    done("fit", "table.csv", *options, "-o", "out", "-q")
    found = json.loads(done("check", "out", "--json").stdout)
    again = json.loads(done("check", "table.csv", *options, "--json").stdout)
    assert found["doubtful"] == again["doubtful"]
    assert found["doubtful"][0]["label"] == names[found["doubtful"][0]["row"]]
    assert np.isin([line["row"] for line in found["doubtful"][:10]], wrong).mean() > 0.7


def test_labels_that_cannot_be_looked_at_are_counted(folder):
    known, labels, _, _ = folder
    write_labels(known, np.where(known == known[5], 99, labels))
    shown = done("check", "rows.npy", "--labels", "labels.csv").stdout
    assert "Not looked at: 1," in shown


def test_what_is_refused(folder, tmp_path):
    assert "--labels" in failed(2, "check", "rows.npy")
    (tmp_path / "empty").mkdir()
    assert "finished biglp fit" in failed(2, "check", "empty")
    named = ("rows.npy", "--labels", "labels.csv")
    (tmp_path / "list.csv").write_text("mine")
    assert "--overwrite" in failed(2, "check", *named, "-o", "list.csv")
    assert (tmp_path / "list.csv").read_text() == "mine"
    done("check", *named, "-o", "list.csv", "--overwrite", "-q")
    done("fit", *named, "-o", "out", "-q")
    np.save("rows.npy", np.zeros((10, 64), dtype=np.float32))
    assert "changed" in failed(2, "check", "out")
