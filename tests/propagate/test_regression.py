"""Smoothing, its leave-one-out and the blend, against refitting and the dense truth."""

import numpy as np
import pytest

import reference as ref
from biglp._algebra.ridge import START, blend, held_out_mean, held_out_values
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import Spectrum
from biglp._labels.targets import encode_targets
from helpers import measured_problem


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_leave_one_out_is_refitting_without_each_label(alpha):
    X, y, _, weights, L = measured_problem(n=60, labelled=12)
    S = ref.normalised_graph(ref.anchor_graph(X, L, 1.5, 3))
    Z = ref.anchor_weights(X, L, 1.5, 3)
    features = Z / np.sqrt(Z.sum(axis=0))
    measured = encode_targets(y, len(X), weights)
    rows, columns = measured.rows, measured.columns
    sums = GramSums(
        features.T @ features,
        features[rows].T @ columns,
        features.sum(axis=0),
        measured.counts,
        len(X),
    )
    found = held_out_values(Spectrum.from_sums(sums), features[rows], columns, alpha)[:, 0]
    expected = []
    for row in rows:
        without = y.copy()
        without[row] = np.nan
        expected.append(ref.dense_smoothing(S, without, weights, alpha)[row])
    found = measured.mean + measured.spread * found
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    others = [np.average(np.delete(y[rows], i), weights=np.delete(weights[rows], i))
              for i in range(len(rows))]  # fmt: skip
    means = held_out_mean(measured.values, measured.weights)[:, 0]
    np.testing.assert_allclose(measured.mean + measured.spread * means, others, rtol=1e-12)


def test_the_blend_follows_whoever_is_right():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 3))
    opinions = rng.normal(size=(3, 200, 3))
    opinions[2] = 0.0  # the mean
    opinions[0, :, 0] = truth[:, 0] + 0.1 * rng.normal(size=200)
    opinions[1, :, 1] = truth[:, 1] + 0.1 * rng.normal(size=200)
    shares = blend(opinions, truth, np.ones(200))
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert (shares >= 0).all()
    assert shares.argmax(axis=0).tolist() == [0, 1, 2]
    assert shares.max(axis=0).min() > 0.8
    np.testing.assert_array_equal(
        blend(opinions[:, :2, :1], truth[:2, :1], np.ones(2))[:, 0], START
    )
