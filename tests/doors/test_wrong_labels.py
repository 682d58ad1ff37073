"""Labels that are probably wrong count less, where there are such labels."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.UnlikeLabelsWarning")

EXPECTED = "biglp._learn.committee.method.EXPECTED"
"""The share of wrong labels from which on they are lowered."""
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


def test_few_labels_are_left_alone():
    labels, _ = digits(n_labels=28, rate=0.5)
    report = LowRankLabelPropagation().fit(ROWS, labels).report_
    assert report["label_error_rate"] > 0.1  # enough to lower some where there are more labels
    assert report["labels_lowered"] == 0


def test_a_class_of_wrong_labels_alone_remains():
    labels, _ = digits()
    labels[[5, 80, 120]] = 77
    model = LowRankLabelPropagation().fit(ROWS, labels)
    assert model.report_["labels_lowered"] > 25
    assert 77 in model.classes_
    assert np.isfinite(model.label_distributions_).all()
