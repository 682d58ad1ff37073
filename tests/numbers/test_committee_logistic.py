"""Logistic regression: units of the features, folds found together, and scikit-learn's numbers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from biglp import LowRankLabelPropagation
from biglp._learn.base import centre_and_spread
from biglp._learn.committee import logistic
from biglp._learn.committee.logistic import STRENGTH, fit_logistic, folds, held_out_loss
from helpers import threshold_table

NOBODY = np.empty(0, dtype=np.int64)
PLAIN = (np.zeros(6), np.ones(6))


def by_scikit_learn(rows, codes, left):
    kept = np.delete(np.arange(len(codes)), left)
    model = LogisticRegression(C=STRENGTH, tol=1e-8, max_iter=1000).fit(rows[kept], codes[kept])
    return model.predict_log_proba(rows)


def log_shares(logits):
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_logistic_regression_does_not_depend_on_the_features_units(make):
    rows, codes = threshold_table(60)
    units = np.array([1e-3, 1.0, 1e4, 1.0, 7.0, 1.0])
    targets, other = np.eye(4)[codes], rows * units
    (plain,), (scaled,) = (
        fit_logistic(make(each), targets, centre_and_spread(make(each)), [NOBODY])
        for each in (rows.astype(float), other)
    )
    np.testing.assert_allclose(plain.of(rows), scaled.of(other), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("together", [0, 1 << 16])
def test_each_fold_is_that_of_scikit_learn(n_classes, together, monkeypatch):
    monkeypatch.setattr(logistic, "TOGETHER", together)
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-7)
    rows, codes = threshold_table(80)
    rows, codes = rows.astype(float), codes % n_classes
    asked = [NOBODY, *(left for _, left in folds(codes, 0))]
    found = fit_logistic(rows, np.eye(n_classes)[codes], PLAIN, asked)
    assert len(found) == 6
    for one, left in zip(found, asked, strict=True):
        expected = by_scikit_learn(rows, codes, left)
        np.testing.assert_allclose(log_shares(one.of(rows)), expected, atol=1e-4)


def test_a_class_that_one_fit_does_not_see():
    rows, codes = threshold_table(40)
    rows, targets = rows.astype(float), np.eye(5)[codes]  # of the fifth there is no label
    alone = np.flatnonzero(codes == 3)
    every, some = fit_logistic(rows, targets, PLAIN, [NOBODY, alone])
    assert every.intercepts[4] < every.intercepts[:4].min()
    assert some.intercepts[3] == some.intercepts[4] < some.intercepts[:3].min()
    assert not some.slopes[:, 3:].any()


def nearly_the_same_columns(n=600):
    """Columns that are nearly copies of each other; what differs between them is the class."""
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(n, 4)), 2, axis=1) + 0.3 * rng.normal(size=(n, 8))
    return rows, (rows[:, 0] - rows[:, 1] + rows[:, 2] - rows[:, 3] > 0).astype(int)


def test_many_labels_loosen_the_pull_where_slopes_must_be_steep(monkeypatch):
    rows, truth = nearly_the_same_columns()
    labels = np.where(np.arange(len(truth)) < 80, truth, -1)

    def accuracy():
        model = LowRankLabelPropagation(random_state=0).fit(rows, labels)
        return (model.transduction_ == truth)[labels < 0].mean()

    found = accuracy()
    monkeypatch.setattr(logistic, "ENOUGH", 41)  # 40 labels a class are too few then
    assert found > accuracy() + 0.1


def test_the_loss_of_held_out_labels_does_not_depend_on_the_size_of_logits():
    rng = np.random.default_rng(0)
    targets = np.eye(3)[rng.integers(3, size=50)]
    logits = targets + rng.normal(size=targets.shape)
    loss = held_out_loss(logits, targets)
    assert held_out_loss(4.0 * logits, targets) == pytest.approx(loss)
    assert loss <= 50 * np.log(3)
    logits[:10] = np.nan  # labels that could not be held out
    assert np.isfinite(held_out_loss(logits, targets))
    assert held_out_loss(np.full((2, 3), np.nan), targets[:2]) == 0.0
