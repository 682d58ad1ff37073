"""What labels leave open: against the dense Gaussian field; the batch against a naive choice."""

import numpy as np
import pytest

import reference as ref
from biglp._algebra import Posterior, choose_batch
from biglp._fit.sample import leading_eigenpairs
from helpers import blobs

ALPHA, OVERLAP = 0.99, 0.9
"""Those of the module."""
pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.fixture
def field():
    """Features of 40 rows in the basis of the eigenvectors of their Gram matrix, and λ."""
    X, _, _ = blobs(n=40)
    Z = ref.anchor_weights(X, X[::4], 1.5, 3)
    Phi = Z / np.sqrt(Z.sum(axis=0))
    values, vectors = leading_eigenpairs(Phi, 100)
    return Phi @ vectors, values


def weighted_total(Phi, alpha, labelled, noise, weights):
    return weights @ np.diag(ref.field_covariance(Phi, alpha, labelled, noise))


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
    found = choose_batch(
        posterior,
        Phi,
        logs,
        (Phi * weights[:, None]).T @ Phi,
        6,
        (0.5, 2.0),
    )
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


def test_copies_come_last(field):
    Phi, values = field
    twice = np.vstack([Phi[:5], Phi[:5]])
    posterior = Posterior.from_labels(values, len(Phi), Phi[:0])
    chosen = choose_batch(posterior, twice, np.zeros(10), np.eye(len(values)), 99, (1.0, 0.0))
    assert sorted(chosen[:5] % 5) == sorted(chosen[5:] % 5) == list(range(5))
