"""Regression against the dense truth, and on data with and without shape."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1, make_swiss_roll
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reference as ref
from biglp import LowRankLabelPropagationRegressor
from helpers import measured_problem, reference_graph, regressor


def by_graph_alone(fitted, X):
    shares = np.zeros_like(fitted._model.answer.weights)
    shares[0] = 1.0
    fitted._model.answer = replace(fitted._model.answer, weights=shares)
    return fitted.predict(X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
def test_the_graph_smooths_as_the_dense_reference_does(factor, dtype):
    X, y, _, weights, L = measured_problem(dtype=dtype)
    fitted = regressor(factor=factor, landmarks=L).fit(X, y, sample_weight=weights)
    S = ref.normalised_graph(reference_graph(factor, X, L))
    expected = ref.dense_smoothing(S, y, weights, 0.9)
    expected = np.clip(expected, np.nanmin(y), np.nanmax(y))
    tolerance = 1e-8 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(by_graph_alone(fitted, X), expected, rtol=tolerance)


def errors(X, truth, labelled, draws=4):
    found = []
    for draw in range(draws):
        known = np.random.default_rng(draw).permutation(len(X))[:labelled]
        unknown = np.setdiff1d(np.arange(len(X)), known)
        y = np.full(len(X), np.nan)
        y[known] = truth[known]
        ours = LowRankLabelPropagationRegressor(engine="serial").fit(X, y).transduction_
        ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
        theirs = ridge.fit(X[known], y[known]).predict(X)
        found.append([np.sqrt(((p - truth)[unknown] ** 2).mean()) for p in (ours, theirs)])
    return np.mean(found, axis=0)


def test_where_the_graph_does_not_help_ridge_regression_decides():
    for X, truth in (
        load_diabetes(return_X_y=True),
        make_friedman1(1000, noise=1.0, random_state=0),
    ):
        for labelled in (20, 100):
            ours, ridge = errors(X, truth, labelled)
            assert ours < 1.03 * ridge


def test_on_a_swiss_roll_a_few_labels_are_enough():
    X, truth = make_swiss_roll(2000, noise=0.3, random_state=0)
    for labelled, most in ((10, 0.5), (40, 0.15)):
        ours, ridge = errors(X, truth, labelled, draws=3)
        assert ours < most * ridge


def test_large_offsets_keep_their_digits():
    X, y, _, _, _ = measured_problem(dtype="float32")
    near = regressor(n_landmarks=15).fit(X, y).transduction_
    far = regressor(n_landmarks=15).fit(X, y + 1e9).transduction_
    np.testing.assert_allclose(far - 1e9, near, atol=1e-4)
