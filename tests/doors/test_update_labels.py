"""Later labels without a sweep, as a fit with all labels; labels that are probably wrong."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp._core import LabelError, ParameterError
from helpers import Counting, blobs, fitted_blobs, model, quick_model, rows_in_a_block

FACTORS = ("auto", "anchors", "nystrom", "glnp", "linear")


pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.mark.parametrize("factor", FACTORS)
def test_update_is_a_fit_with_all_labels(factor):
    found, X, y, truth = fitted_blobs(factor)
    rows = found.suggest(9)
    labels = truth[rows].copy()
    labels[:2] = 7  # a new class
    wrong = np.flatnonzero(y >= 0)[:2]
    rows, labels = np.append(rows, wrong), np.append(labels, [0, -1])  # one other, one withdrawn
    found.update_labels(rows[:5], labels[:5]).update_labels(rows[5:], labels[5:])
    y = y.copy()
    y[rows] = labels
    with rows_in_a_block(70):
        fresh = quick_model(factor).fit(X, y)
    np.testing.assert_array_equal(found.classes_, [0, 1, 2, 7])
    np.testing.assert_array_equal(found.transduction_, fresh.transduction_)
    np.testing.assert_allclose(found.label_distributions_, fresh.label_distributions_, atol=1e-9)
    np.testing.assert_array_equal(found.predict(X), fresh.predict(X))
    assert found.report_["labelled_rows"] == fresh.report_["labelled_rows"]
    np.testing.assert_array_equal(found.suggest(5), fresh.suggest(5))


def test_sweeps_are_counted():
    engine = Counting()
    found, *_, truth = fitted_blobs(engine=engine)
    engine.sweeps.clear()
    rows = found.suggest(6)
    assert engine.sweeps == ["suggestions"]
    engine.sweeps.clear()
    found.update_labels(rows, truth[rows])
    found.update_labels(rows[:1], [2])
    assert engine.sweeps == []
    assert found.transduction_[rows[0]] == 2
    assert len(found.label_distributions_) == len(truth)
    assert engine.sweeps == ["labels"]


@pytest.mark.parametrize(
    ("factor", "sweeps"),
    [("anchors", ["Gram", "labels"]), ("nystrom", ["degrees", "Gram", "labels"])],
)
def test_sweeps_over_all_rows(factor, sweeps):
    X, y, _ = blobs()
    engine = Counting()
    model(factor=factor, landmarks="random", engine=engine).fit(X, y)
    assert [name for name in engine.sweeps if name in ("degrees", "Gram", "labels")] == sweeps


@pytest.mark.parametrize(
    ("rows", "labels", "error", "words"),
    [
        ([400], [1], ParameterError, "numbered 0 to 399"),
        ([-1], [1], ParameterError, "numbered 0 to 399"),
        ([3, 3], [1, 1], ParameterError, "more than once"),
        ([3.5], [1], ParameterError, "whole"),
        ([3, 4], [1], LabelError, "one label a row"),
        ([3], [1.5], LabelError, "fractions"),
    ],
)
def test_wrong_updates_change_nothing(rows, labels, error, words):
    found, *_ = fitted_blobs()
    before = found.transduction_
    with pytest.raises(error, match=words):
        found.update_labels(rows, labels)
    assert found.transduction_ is before


def test_pickles_without_the_rows():
    found, X, _, truth = fitted_blobs()
    rows = found.suggest(4)
    found.update_labels(rows, truth[rows])
    packed = pickle.dumps(found)
    again = pickle.loads(packed)
    np.testing.assert_array_equal(again.transduction_, found.transduction_)
    with pytest.raises(ParameterError, match="training rows"):
        again.update_labels(rows, truth[rows])
    with pytest.raises(ParameterError, match="suggest"):
        again.suggest(3)
    assert len(again.suggest(3, X)) == 3
    with pytest.raises(AttributeError, match="transduction_"):
        _ = LowRankLabelPropagation().transduction_


def test_weights_and_clamped_labels_are_kept():
    X, _, truth = blobs(n=200)
    known = np.where(np.arange(200) < 20, truth, -1)
    weights = 1.0 + np.arange(200) % 3
    later = np.where(np.arange(200) < 25, truth, -1)
    all_weights = np.where(np.arange(200) < 20, weights, 1.0)
    updated = model(factor="anchors", clamp="hard").fit(X, known, weights)
    updated.update_labels(np.arange(20, 25), truth[20:25])
    refit = model(factor="anchors", clamp="hard").fit(X, later, all_weights)
    wanted = refit.label_distributions_
    np.testing.assert_allclose(updated.label_distributions_, wanted, atol=1e-10)
    np.testing.assert_array_equal(updated.label_distributions_[:25], np.eye(3)[truth[:25]])
    shares = np.where(np.arange(200)[:, None] < 10, 0.8 * np.eye(3)[truth], 0.0)
    shares[:10] += 0.2 / 3
    fitted = model(factor="anchors").fit(X, shares)
    with pytest.raises(ParameterError, match="fitted on label distributions"):
        fitted.update_labels([20], [truth[20]])


# Labels that are probably wrong count less, where there are such labels ---------------------------


EXPECTED = "biglp._learn.committee.method.EXPECTED"
"""The share of wrong labels from which on they are lowered."""
ROWS, TRUTH = load_digits(return_X_y=True)


def digits(n_labels=300, rate=0.15, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(len(TRUTH)) < n_labels, TRUTH, -1)
    wrong = rng.choice(n_labels, int(rate * n_labels), replace=False)
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, len(wrong))) % 10
    return labels, wrong


def hidden_loss(model, labels):
    shares = model.predict_proba(ROWS)[labels < 0]
    return -np.log(shares[np.arange(len(shares)), TRUTH[labels < 0]]).mean()


def test_wrong_labels_are_lowered_and_do_less_harm(monkeypatch):
    labels, _ = digits()
    model = LowRankLabelPropagation().fit(ROWS, labels)
    assert model.report_["label_error_rate"] == pytest.approx(0.15, abs=0.05)
    assert model.report_["labels_lowered"] > 25
    monkeypatch.setattr(EXPECTED, 1.0)
    plain = LowRankLabelPropagation().fit(ROWS, labels)
    assert plain.report_["labels_lowered"] == 0
    assert hidden_loss(model, labels) < 0.8 * hidden_loss(plain, labels)


def test_right_labels_are_left_alone(monkeypatch):
    labels, _ = digits(rate=0.0)
    model = LowRankLabelPropagation().fit(ROWS, labels)
    assert model.report_["labels_lowered"] == 0
    assert model.report_["probably_wrong_labels"] < 5
    monkeypatch.setattr(EXPECTED, 1.0)
    plain = LowRankLabelPropagation().fit(ROWS, labels)
    np.testing.assert_array_equal(model.label_distributions_, plain.label_distributions_)
