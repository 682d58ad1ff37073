"""The answer of label spreading: probabilities from scores, and centred labels."""

import numpy as np
import pytest

import reference as ref
from biglp._labels.labels import OwnLabels
from biglp._learn.spreading import SpreadingPredictor
from helpers import blobs, model, raw_scores

ALPHA = 0.9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_add_up_to_one_and_unreached_rows_get_the_prior(dtype):
    prior = np.array([0.2, 0.3, 0.5])
    answer = SpreadingPredictor(np.eye(3), np.array([10.0, 20.0, 30.0]), prior)
    features = np.array([[1, 1, 2], [0, 0, 0], [-1, -2, -3], [-1, 3, 1], [0, 0, 0]], dtype=dtype)
    own = OwnLabels(np.array([4]), np.array([[0.0, 1.0, 0.0]]), np.ones(1))
    found, n_unreached = answer.outputs(features, own=own)
    expected = [[0.25, 0.25, 0.5], prior, [2 / 3, 1 / 3, 0], [0, 0.75, 0.25], [0, 1, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert n_unreached == 1
    assert found.dtype == dtype


@pytest.mark.parametrize("size", [1e-38, 1e-42, 1e-30, 1e30])
def test_probabilities_of_tiny_and_huge_scores_are_never_nan(size):
    answer = SpreadingPredictor(np.eye(2), np.ones(2), np.array([0.5, 0.5]))
    found, _ = answer.outputs(np.array([[size, 3 * size]], dtype=np.float32))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("factor", ["anchors", "linear"])
def test_centred_labels_spread_as_in_the_dense_reference(factor):
    X, y, _ = blobs(labelled=25)
    L = X[np.random.default_rng(1).choice(len(X), 20, replace=False)]
    fitted = model(factor=factor, landmarks=L, class_balance="centre").fit(X, y)
    Y = ref.one_hot(y)
    W = ref.anchor_graph(X, L, 1.5, 5) if factor == "anchors" else ref.linear_graph(X)
    scores = ref.closed_form(ref.normalised_graph(W), ref.centred_labels(Y), ALPHA)
    expected = ref.probabilities(scores, Y.sum(axis=0) / Y.sum())
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-8)
    np.testing.assert_allclose(
        raw_scores(fitted, X)[y < 0], scores[y < 0], atol=1e-9 * np.abs(scores).max()
    )
