"""Poisson learning: against dense n × n algebra, in the estimator, and where labels are few."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import reference as ref
from biglp import LowRankLabelPropagation
from biglp._algebra import (
    GramSums,
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


@pytest.mark.parametrize("weighted", [False, True])
def test_poisson_learning_on_anchors_is_that_of_the_laplacian(weighted):
    features, W, Y = anchor_blobs(weighted=weighted)
    spectrum = take_apart(sums_of(features, Y))
    found = ref.centred_labels(Y) + features @ poisson_coefficients(
        spectrum, constant_mode(spectrum, None)
    )
    expected = ref.poisson(W, Y)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-9)


def test_poisson_learning_with_unequal_degrees_is_that_of_the_normalised_graph():
    W, features, column_sums, Y = positive_factor()
    spectrum = take_apart(sums_of(features, Y))
    mode = constant_mode(spectrum, column_sums)
    d = W.sum(axis=1)
    np.testing.assert_allclose(features @ mode * np.sqrt(d.sum()), np.sqrt(d), rtol=1e-9)
    found = ref.centred_labels(Y) + features @ poisson_coefficients(spectrum, mode)
    expected = ref.normalised_poisson(ref.normalised_graph(W), Y)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(np.sqrt(d) @ found, 0.0, atol=1e-8)


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


@pytest.mark.parametrize("kind", ["anchors", "weighted", "unequal degrees"])
def test_leave_one_out_of_poisson_learning_is_refitting_without_each_label(kind):
    if kind == "unequal degrees":
        W, features, column_sums, Y = positive_factor()
        solve, graph = ref.normalised_poisson, ref.normalised_graph(W)
    else:
        features, graph, Y = anchor_blobs(n=60, weighted=kind == "weighted")
        solve, column_sums = ref.poisson, None
    spectrum = take_apart(sums_of(features, Y))
    mode = constant_mode(spectrum, column_sums)
    known = np.flatnonzero(Y.any(axis=1))
    labelled = LabelledRows(features[known], Y[known].argmax(axis=1), Y[known])
    expected = ref.leave_one_out_poisson(solve, graph, Y)
    found = leave_one_out_poisson(spectrum, labelled, mode)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("copies", [1, 10**8])
def test_float32_sums_of_very_many_rows_are_enough(copies):
    """Every row stands for many: H stays, B shrinks and t grows by the root of their number."""
    features, W, Y = anchor_blobs()
    root = np.sqrt(copies)
    exact = sums_of(features, Y)
    rough = GramSums(
        exact.gram.astype(np.float32).astype(np.float64),
        (exact.targets / root).astype(np.float32).astype(np.float64),
        (exact.totals * root).astype(np.float32).astype(np.float64),
        exact.counts,
        len(Y) * copies,
    )
    spectrum = take_apart(rough)
    coefficients = poisson_coefficients(spectrum, constant_mode(spectrum, None)).astype(np.float32)
    scores = (features / root).astype(np.float32) @ coefficients * np.float32(copies)
    expected = ref.poisson(W, Y) - ref.centred_labels(Y)
    np.testing.assert_allclose(scores, expected, atol=2e-5 * np.abs(expected).max())


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
    for draw in range(2):
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
