"""What labels leave open, and measured targets: against dense algebra, refits and naive choices."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge as DenseRidge

import reference as ref
from biglp._algebra import Posterior, choose_batch, fit_ridge, held_out_values, take_apart
from biglp._labels import encode_targets
from helpers import blobs, measured_problem
from small_graphs import sums_of

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


ALPHA, OVERLAP = 0.99, 0.9


@pytest.fixture
def field():
    X, _, _ = blobs(n=40)
    Z = ref.anchor_weights(X, X[::4], 1.5, 3)
    Phi = Z / np.sqrt(Z.sum(axis=0))
    values, vectors = np.linalg.eigh(Phi.T @ Phi)
    return Phi @ vectors, values


def test_variances_agree_with_the_dense_field(field):
    Phi, values = field
    labelled = [3, 17, 29]
    found = Posterior.from_labels(values, len(Phi), Phi[labelled])
    expected = ref.field_covariance(Phi, ALPHA, labelled, found.noise)
    np.testing.assert_allclose(Phi @ found.covariance @ Phi.T, expected, atol=1e-10)
    np.testing.assert_allclose(found.variances(Phi), np.diag(expected), atol=1e-10)
    prior = np.diag(ref.field_covariance(Phi, ALPHA, [], 1.0))
    assert found.noise == pytest.approx(prior.mean())
    assert (np.diag(expected) < prior).all()


def test_the_batch_is_the_naive_one(field):
    """One row after the other, everything about it computed anew from n × n matrices."""
    Phi, values = field
    rng = np.random.default_rng(1)
    weights, logs = rng.random(len(Phi)), rng.normal(size=len(Phi))
    posterior = Posterior.from_labels(values, len(Phi), Phi[[3]])
    found = choose_batch(posterior, Phi, logs, (Phi * weights[:, None]).T @ Phi, 6, (0.5, 2.0))
    labelled, chosen, penalty = [3], [], np.zeros(len(Phi))
    for _ in range(6):
        now = ref.field_covariance(Phi, ALPHA, labelled, posterior.noise)
        gains = [
            (weights @ now[:, j] ** 2) / (posterior.noise + now[j, j]) for j in range(len(Phi))
        ]
        scores = logs + penalty + 0.5 * np.log(gains)
        scores[chosen] = -np.inf
        best = int(np.argmax(scores))
        squared = now[:, best] ** 2 / (np.diag(now) * now[best, best])
        penalty += 2.0 * np.log(1 - OVERLAP * squared)
        labelled.append(best)
        chosen.append(best)
    np.testing.assert_array_equal(found, chosen)


@pytest.mark.parametrize("kind", ["tall", "wide", "sparse"])
def test_ridge_and_its_leave_one_out_are_those_of_refitting(kind):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 40 if kind == "wide" else 6)) + 3.0
    if kind == "sparse":
        rows = np.where(rows > 3, rows, 0.0)
    values = rng.normal(size=(20, 2))
    weights = rng.integers(1, 4, 20).astype(float)
    spread = rows.std(axis=0)
    given = sparse.csr_matrix(rows) if kind == "sparse" else rows
    scaled = rows / spread
    centred = np.sqrt(weights)[:, None] * (scaled - np.average(scaled, axis=0, weights=weights))
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    size = squares[squares > 1e-10 * squares[0]].mean()
    found = fit_ridge(given, values, weights, spread, np.array([0.1]))
    dense = DenseRidge(alpha=0.1 * size).fit(scaled, values, sample_weight=weights)
    np.testing.assert_allclose(
        rows @ found.slopes + found.intercepts, dense.predict(scaled), atol=1e-8
    )
    for i in range(20):
        rest = np.delete(np.arange(20), i)
        dense.fit(scaled[rest], values[rest], sample_weight=weights[rest])
        np.testing.assert_allclose(found.held_out[i], dense.predict(scaled[[i]])[0], atol=1e-8)


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_leave_one_out_of_smoothing_is_refitting_without_each_label(alpha):
    X, y, _, weights, L = measured_problem(n=60, labelled=12)
    S = ref.normalised_graph(ref.anchor_graph(X, L, 1.5, 3))
    Z = ref.anchor_weights(X, L, 1.5, 3)
    features = Z / np.sqrt(Z.sum(axis=0))
    measured = encode_targets(y, len(X), weights)
    rows, columns = measured.rows, measured.columns
    targets = np.zeros((len(X), columns.shape[1]))
    targets[rows] = columns
    system = take_apart(sums_of(features, targets))
    found = held_out_values(system, features[rows], columns, alpha)[:, 0]
    expected = []
    for row in rows:
        without = y.copy()
        without[row] = np.nan
        expected.append(ref.dense_smoothing(S, without, weights, alpha)[row])
    np.testing.assert_allclose(measured.mean + measured.spread * found, expected, rtol=1e-8)
