"""Poisson learning: against dense n × n algebra, and through the estimator."""

import numpy as np
import pytest

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._algebra import (
    LabelledRows,
    constant_mode,
    leave_one_out_poisson,
    poisson_coefficients,
    take_apart,
)
from biglp._core import ParameterError, UnreachedRowsWarning
from biglp._graph import Normalisation
from helpers import blobs, model, reference_graph
from small_graphs import anchor_blobs, positive_factor, sums_of


@pytest.mark.parametrize("kind", ["anchors", "weighted", "unequal degrees"])
def test_scores_and_leave_one_out_are_those_of_dense_algebra(kind):
    if kind == "unequal degrees":
        W, features, column_sums, Y = positive_factor()
        solve, graph = ref.normalised_poisson, ref.normalised_graph(W)
    else:
        features, graph, Y = anchor_blobs(n=60, weighted=kind == "weighted")
        solve, column_sums = ref.poisson, None
    spectrum = take_apart(sums_of(features, Y))
    mode = constant_mode(spectrum, column_sums)
    found = ref.centred_labels(Y) + features @ poisson_coefficients(spectrum, mode)
    expected = solve(graph, Y)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    known = np.flatnonzero(Y.any(axis=1))
    labelled = LabelledRows(features[known], Y[known].argmax(axis=1), Y[known])
    expected = ref.leave_one_out_poisson(solve, graph, Y)
    found = leave_one_out_poisson(spectrum, labelled, mode)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_a_mode_that_repairs_have_moved_is_the_largest_eigenvector():
    # A graph: ρ(S) = 19, and √d is not its largest eigenvector.
    W = np.array([[1.0, -0.9], [-0.9, 1.0]])
    values, vectors = np.linalg.eigh(W)
    F = vectors * np.sqrt(values)
    features, _ = Normalisation(F.sum(axis=0), 2).apply(F)
    Y = np.eye(2)
    spectrum = take_apart(sums_of(features, Y))
    mode = constant_mode(spectrum, F.sum(axis=0))
    np.testing.assert_allclose(np.abs(mode @ spectrum.vectors[:, -1]), 1.0)
    found = ref.centred_labels(Y) + features @ poisson_coefficients(spectrum, mode)
    np.testing.assert_allclose(found, ref.normalised_poisson(W / 0.1 / 19.0, Y), atol=1e-9)


def test_parts_that_hardly_connect_do_not_overflow():
    """Two parts without any tie, each with labels of both classes: no eigenvalue gap at all."""
    rng = np.random.default_rng(0)
    Z = np.zeros((80, 10))
    Z[:40, :5], Z[40:, 5:] = rng.random((40, 5)) ** 3, rng.random((40, 5)) ** 3
    Z /= Z.sum(axis=1, keepdims=True)
    features = Z / np.sqrt(Z.sum(axis=0))
    Y = ref.one_hot(np.where(np.arange(80) % 4 == 0, np.arange(80) // 4 % 2, -1))
    spectrum = take_apart(sums_of(features, Y))
    assert spectrum.values[-2] > 1 - 1e-9
    found = ref.centred_labels(Y) + features @ poisson_coefficients(
        spectrum, constant_mode(spectrum, None)
    )
    # Labels are balanced in both parts, so the two problems have answers of their own.
    for part in (slice(0, 40), slice(40, 80)):
        W = (Z[part] / Z.sum(axis=0).clip(1e-300)) @ Z[part].T
        expected = ref.poisson(W, Y[part])
        np.testing.assert_allclose(found[part], expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("balance", ["none", "centre", "mass", [0.2, 0.3, 0.5]])
@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
def test_the_estimator_agrees_with_the_dense_reference(factor, balance):
    X, y, _ = blobs(labelled=25)
    L = X[np.random.default_rng(1).choice(len(X), 20, replace=False)]
    fitted = model(
        factor=factor, landmarks=L, filter="poisson", alpha="auto", class_balance=balance
    ).fit(X, y)
    Y = ref.one_hot(y)
    W = reference_graph(factor, X, L)
    if factor == "anchors":
        scores = ref.poisson(W, Y)
    else:
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


def test_parts_without_labels_get_the_prior():
    X, y, _ = blobs(labelled=30)
    X = np.concatenate([X, X[:50] + 1e4])
    y = np.concatenate([y, np.full(50, -1)])
    L = np.concatenate([X[:10], X[-10:]])
    with pytest.warns(UnreachedRowsWarning, match="50 of 250 rows"):
        fitted = model(filter="poisson", alpha="auto", landmarks=L).fit(X, y)
    np.testing.assert_allclose(fitted.label_distributions_[-50:], 1 / 3)


def test_poisson_with_too_many_landmarks_is_refused():
    rows = np.random.default_rng(0).normal(size=(2600, 3))
    labels = np.where(np.arange(2600) < 20, np.arange(2600) % 2, -1)
    with pytest.raises(ParameterError, match=r"filter='poisson' needs all eigenvectors.*2,500"):
        LowRankLabelPropagation(factor="anchors", n_landmarks=2500, filter="poisson").fit(
            rows, labels
        )
