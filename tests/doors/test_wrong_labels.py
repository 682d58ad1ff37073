"""Labels that are probably wrong count less, where there are such labels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp._fit.check_labels import known_doubts
from biglp._learn.committee import method as robust
from biglp._learn.committee.method import CommitteeMethod

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.UnlikeLabelsWarning")

ROWS, TRUTH = load_digits(return_X_y=True)


def digits(n_labels=300, rate=0.15, seed=0):
    """Labels of the first rows, some of them wrong, and the rows of those."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(len(TRUTH)) < n_labels, TRUTH, -1)
    wrong = rng.choice(n_labels, int(rate * n_labels), replace=False)
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, len(wrong))) % 10
    return labels, wrong


def hidden_loss(model, labels):
    """Log-loss on the rows without a label."""
    shares = model.predict_proba(ROWS)[labels < 0]
    return -np.log(shares[np.arange(len(shares)), TRUTH[labels < 0]]).mean()


def test_wrong_labels_are_lowered_and_do_less_harm(monkeypatch):
    labels, _ = digits()
    model = LowRankLabelPropagation().fit(ROWS, labels)
    assert model.report_["label_error_rate"] == pytest.approx(0.15, abs=0.05)
    assert model.report_["labels_lowered"] > 25
    monkeypatch.setattr(robust, "EXPECTED", 1.0)
    plain = LowRankLabelPropagation().fit(ROWS, labels)
    assert plain.report_["labels_lowered"] == 0
    assert hidden_loss(model, labels) < 0.8 * hidden_loss(plain, labels)


def test_right_labels_are_left_alone(monkeypatch):
    labels, _ = digits(rate=0.0)
    model = LowRankLabelPropagation().fit(ROWS, labels)
    assert model.report_["labels_lowered"] == 0
    assert model.report_["probably_wrong_labels"] < 5
    monkeypatch.setattr(robust, "EXPECTED", 1.0)
    plain = LowRankLabelPropagation().fit(ROWS, labels)
    np.testing.assert_array_equal(model.label_distributions_, plain.label_distributions_)


def test_nothing_is_known_where_nothing_can_be_held_out():
    labels = np.full(len(TRUTH), -1)
    first = np.array([np.equal(TRUTH, code).argmax() for code in np.unique(TRUTH)])
    labels[first] = TRUTH[first]
    report = LowRankLabelPropagation().fit(ROWS, labels).report_
    assert report["probably_wrong_labels"] is None
    assert report["label_error_rate"] is None
    assert report["labels_lowered"] == 0


def test_few_labels_are_left_alone():
    labels, _ = digits(n_labels=28, rate=0.5)
    report = LowRankLabelPropagation().fit(ROWS, labels).report_
    assert report["label_error_rate"] > robust.EXPECTED
    assert report["labels_lowered"] == 0


def test_less_trust_is_a_fit_with_weights():
    labels, _ = digits()
    problem = LowRankLabelPropagation().fit(ROWS, labels)._problem
    doubts = known_doubts(problem.labels, CommitteeMethod.learn_once(problem).held_out)
    lowered = robust.with_less_trust(problem, doubts)
    weights = np.ones(len(labels))
    weights[problem.labels.rows] = np.maximum(1.0 - doubts.wrong, robust.LEAST_TRUST)
    again = LowRankLabelPropagation().fit(ROWS, labels, sample_weight=weights)._problem
    np.testing.assert_allclose(lowered.sums.targets, again.sums.targets, atol=1e-5)
    np.testing.assert_allclose(lowered.sums.counts, again.sums.counts)
    np.testing.assert_array_equal(lowered.labels.rows, problem.labels.rows)


def test_a_class_of_wrong_labels_alone_remains():
    labels, _ = digits()
    labels[[5, 80, 120]] = 77
    model = LowRankLabelPropagation().fit(ROWS, labels)
    assert model.report_["labels_lowered"] > 25
    assert 77 in model.classes_
    assert np.isfinite(model.label_distributions_).all()
