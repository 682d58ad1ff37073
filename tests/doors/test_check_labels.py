"""Doubtful labels: planted ones are found, however labels are held out; and ``biglp check``."""

import csv
import json
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp._core import ParameterError
from cli_tools import done, failed
from helpers import fitted_blobs

ROWS, TRUTH = load_digits(return_X_y=True)
NAMED = ("rows.npy", "--labels", "labels.csv")
pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


def planted(n_labels=300, n_wrong=30, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(len(TRUTH)) < n_labels, TRUTH, -1)
    wrong = rng.choice(n_labels, n_wrong, replace=False)
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, n_wrong)) % 10
    return labels, wrong


def average_precision(found, wrong):
    hits = np.isin(found.rows, wrong)
    return ((hits.cumsum() / np.arange(1, len(hits) + 1))[hits]).sum() / len(wrong)


def fitted(labels, **more):
    return LowRankLabelPropagation(engine="serial").fit(ROWS, labels, **more)


@pytest.fixture(scope="module")
def digits():
    labels, wrong = planted()
    return fitted(labels), wrong


def test_planted_labels_are_found(digits):
    model, wrong = digits
    found, named = model.doubtful_labels(), model.doubtful_labels(least=0.5)
    assert average_precision(found, wrong) > 0.9
    assert model.report_["probably_wrong_labels"] == found.n_probably_wrong == len(named)
    assert 20 <= len(named) <= 40
    assert (named.suggested_labels == TRUTH[named.rows]).mean() > 0.85
    np.testing.assert_array_equal(model.doubtful_labels().rows, found.rows)


def test_the_list_is_a_table(digits):
    found = digits[0].doubtful_labels()
    assert found["row"] is found.rows
    assert found[0] == next(iter(found)) == found.to_pandas().iloc[0].to_dict()
    assert len(found[:3]) == 3
    assert len(found[found.wrong > 0.5]) == found.n_probably_wrong
    lines = repr(found).splitlines()
    assert lines[0].startswith(f"{len(found)} doubtful labels; {found.n_probably_wrong} of the ")
    assert lines[2].split()[:3] == [str(found[0][key]) for key in list(found.to_dict())[:3]]
    assert lines[-1] == f"… and {len(found) - 10} more"
    assert "0 doubtful labels" in repr(found[:0])
    with pytest.raises(KeyError, match="there are row, label"):
        found["rows"]


def test_the_same_list_for_any_engine_and_cut(engine):
    expected = fitted_blobs()[0].doubtful_labels(least=0.0)
    for rows in (70, 13) if engine.shares_memory else (70,):
        found = fitted_blobs(engine=engine, rows=rows)[0].doubtful_labels(least=0.0)
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_allclose(found.wrong, expected.wrong, rtol=1e-9)


def test_corrected_labels_are_doubtful_no_more():
    labels, _ = planted(seed=1)
    model = fitted(labels)
    named = model.doubtful_labels(least=0.5)
    model.update_labels(named.rows, TRUTH[named.rows])
    after = model.doubtful_labels(least=0.5)
    assert len(after) < 0.5 * len(named)
    assert after.n_checked == 300
    labels[named.rows] = TRUTH[named.rows]
    again = fitted(labels).doubtful_labels()
    np.testing.assert_array_equal(model.doubtful_labels().rows, again.rows)


def test_a_class_of_one_label_is_not_judged():
    labels, _ = planted(n_wrong=0)
    labels[7] = 55
    found = fitted(labels).doubtful_labels(least=0.0)
    assert (found.n_labels, found.n_checked) == (300, 299)
    assert 7 not in found.rows
    paper = LowRankLabelPropagation.paper(k=40).fit(ROWS, labels).doubtful_labels(least=0.0)
    assert (paper.n_checked, 7 in paper.rows) == (299, False)


def test_what_is_refused(digits, tmp_path):
    model, _ = digits
    for least in (-0.1, 1.5, "much"):
        with pytest.raises(ParameterError, match="from 0 to 1"):
            model.doubtful_labels(least)
    model.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    for gone in (loaded, pickle.loads(pickle.dumps(model))):
        with pytest.raises(ParameterError, match="biglp check"):
            gone.doubtful_labels()


# ``biglp check``: from a file with wrong labels to a list of them, and back ----------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS.astype(np.float32))
    rng = np.random.default_rng(0)
    known = np.sort(rng.choice(len(TRUTH), 200, replace=False))
    labels = TRUTH[known].copy()
    wrong = rng.choice(200, 20, replace=False)
    labels[wrong] = (labels[wrong] + 1) % 10
    write_labels(known, labels)
    return known, labels, known[wrong]


def write_labels(rows, labels):
    lines = ["row,label", *(f"{row},{label}" for row, label in zip(rows, labels, strict=True))]
    with open("labels.csv", "w") as file:
        file.write("\n".join(lines) + "\n")


def listed(*command):
    return json.loads(done("check", *command, "--json", "-q").stdout)


def test_round_trip(folder, tmp_path):
    known, labels, wrong = folder
    options = ("-k", "80", "--seed", "3", "--class-balance", "mass")
    said = done("fit", *NAMED, "-o", "out", *options).stdout
    assert "Probably wrong: " in said
    assert "biglp check out" in said
    assert "labels.csv" in done("check", "out", "-o", "doubtful.csv").stdout
    with open("doubtful.csv", newline="") as file:
        table = list(csv.DictReader(file))
    beside = ["suggested_label", "probability", "suggested_probability", "wrong"]
    assert [*table[0]] == ["row", "label", *beside]
    found = [int(line["row"]) for line in table]
    assert np.isin(found[:15], wrong).mean() > 0.8
    given = dict(zip(known, labels, strict=True))
    assert all(int(line["label"]) == given[int(line["row"])] for line in table)
    # The same as the estimator's.
    y = np.full(1797, -1)
    y[known] = labels
    model = LowRankLabelPropagation(n_landmarks=80, random_state=3, class_balance="mass")
    expected = model.fit(np.load("rows.npy"), y).doubtful_labels(least=0.2)
    shown = listed("out", "--least", "0.2")["doubtful"]
    assert [line["row"] for line in shown] == expected.rows.tolist()
    np.testing.assert_allclose([line["wrong"] for line in shown], expected.wrong, atol=1e-4)
    write_labels(known, np.where(np.isin(known, found), TRUTH[known], labels))
    after = listed("out")  # the corrected file
    assert after["probably_wrong_labels"] < 10
    assert after["checked_labels"] == after["labelled_rows"] == 200
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"doubtful.csv", "labels.csv", "out", "rows.npy"}


def test_what_the_command_refuses(folder, tmp_path):
    known, labels, _ = folder
    assert "--labels" in failed(2, "check", "rows.npy")
    (tmp_path / "empty").mkdir()
    assert "finished biglp fit" in failed(2, "check", "empty")
    (tmp_path / "list.csv").write_text("mine")
    assert "--overwrite" in failed(2, "check", *NAMED, "-o", "list.csv")
    assert (tmp_path / "list.csv").read_text() == "mine"
    write_labels(known, np.where(known == known[5], 99, labels))
    assert "Not looked at: 1," in done("check", *NAMED, "-o", "list.csv", "--overwrite").stdout
    done("fit", *NAMED, "-o", "out", "-q")
    np.save("rows.npy", np.zeros((10, 64), dtype=np.float32))
    assert "changed" in failed(2, "check", "out")
