"""Poisson learning through the estimator: against the dense truth, and where labels are few."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._core import ParameterError, UnreachedRowsWarning
from biglp._graph.nystrom import eigenvalue_cutoff
from helpers import blobs, model


@pytest.mark.parametrize("balance", ["none", "centre", "mass", [0.2, 0.3, 0.5]])
@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
def test_the_estimator_agrees_with_the_dense_reference(factor, balance):
    X, y, _ = blobs(labelled=25)
    L = X[np.random.default_rng(1).choice(len(X), 20, replace=False)]
    fitted = model(
        factor=factor, landmarks=L, filter="poisson", alpha="auto", class_balance=balance
    ).fit(X, y)
    Y = ref.one_hot(y)
    if factor == "anchors":
        scores = ref.poisson(ref.anchor_graph(X, L, 1.5, 5), Y)
    else:
        W = ref.nystrom_graph(X, L, 1.5, eigenvalue_cutoff(len(L), X.dtype))
        scores = ref.normalised_poisson(ref.normalised_graph(W), Y)
    share = Y.sum(axis=0) / Y.sum()
    if balance not in ("none", "centre"):
        prior = np.full(3, 1 / 3) if balance == "mass" else np.array(balance)
        scores = scores * (prior / share)
    expected = ref.probabilities(scores, share)
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-7)
    unlabelled = y < 0
    np.testing.assert_allclose(fitted.predict_proba(X[unlabelled]), expected[unlabelled], atol=1e-7)
    assert fitted.report_["alpha"] is None
    assert fitted.report_["filter"] == "poisson"


def test_the_prior_is_chosen_by_leave_one_out_and_models_are_kept(tmp_path):
    X, y, truth = blobs(labelled=30)
    fitted = model(filter="poisson", alpha="auto", class_balance="auto").fit(X, y)
    powers = [candidate["prior_power"] for candidate in fitted.report_["candidates"]]
    assert powers == [0.0, 0.5, 1.0]
    assert fitted.report_["leave_one_out_accuracy"] > 0.5
    assert (fitted.transduction_ == truth).mean() > 0.7
    fitted.save(tmp_path / "poisson.biglp")
    again = LowRankLabelPropagation.load(tmp_path / "poisson.biglp")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_parts_without_labels_get_the_prior():
    X, y, _ = blobs(labelled=30)
    X = np.concatenate([X, X[:50] + 1e4])
    y = np.concatenate([y, np.full(50, -1)])
    L = np.concatenate([X[:10], X[-10:]])
    with pytest.warns(UnreachedRowsWarning, match="50 of 250 rows"):
        fitted = model(filter="poisson", alpha="auto", landmarks=L).fit(X, y)
    np.testing.assert_allclose(fitted.label_distributions_[-50:], 1 / 3)


def test_poisson_learning_needs_few_labels():
    X, truth = load_digits(return_X_y=True)
    found = []
    for draw in range(3):
        rng = np.random.default_rng(draw)
        y = np.full(len(X), -1)
        for j in range(10):
            y[rng.choice(np.flatnonzero(truth == j))] = j
        fitted = LowRankLabelPropagation(filter="poisson", engine="serial").fit(X, y)
        found.append((fitted.transduction_ == truth)[y < 0].mean())
    assert np.mean(found) > 0.8


def test_poisson_with_too_many_landmarks_is_refused():
    rows = np.random.default_rng(0).normal(size=(2600, 3))
    labels = np.where(np.arange(2600) < 20, np.arange(2600) % 2, -1)
    with pytest.raises(ParameterError, match=r"filter='poisson' needs all eigenvectors.*2,500"):
        LowRankLabelPropagation(factor="anchors", n_landmarks=2500, filter="poisson").fit(
            rows, labels
        )
