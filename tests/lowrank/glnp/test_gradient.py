"""Accelerated projected gradient: when momentum is dropped, and when it stops."""

import numpy as np
from sklearn.datasets import load_digits

import reference_glnp as reference
from biglp._graph.glnp import steps as glnp_gradient
from biglp._graph.glnp.descent import Descent
from biglp._graph.glnp.steps import CHECK_EVERY
from glnp_tools import fitted, some_rows


def test_the_momentum_is_dropped_when_the_objective_would_rise(monkeypatch):
    X = load_digits().data[:300]
    restarts = []
    plain = glnp_gradient.Momentum.restart
    monkeypatch.setattr(
        glnp_gradient.Momentum,
        "restart",
        lambda self: (restarts.append(self.beta), plain(self))[1],
    )
    factor, _, _ = fitted(X, k=2, max_iter=300, tol=0.0, rows_each=300)
    assert restarts
    assert min(restarts) > 0
    assert np.diff(factor.objective_).max() <= 0


def test_stops_when_the_projected_gradient_is_small(monkeypatch):
    monkeypatch.setattr(Descent, "settled", lambda self, tol: False)  # so that no other rule can
    X, tol = some_rows(200, 8, rank=3), 1e-3
    first = fitted(X, k=3, max_iter=0)[2]
    factor, _, F = fitted(X, k=3, max_iter=2000, tol=tol)
    limit = tol * np.linalg.norm(reference.gradient(X, first))
    sizes = {
        n: np.linalg.norm(reference.projected_gradient(X, fitted(X, k=3, max_iter=n, tol=0.0)[2]))
        for n in range(0, (len(factor.objective_) - 1), CHECK_EVERY)
    }
    # It is looked at every few iterations, before the step that is taken there all the same.
    last = (len(factor.objective_) - 1) - 1
    assert sizes.pop(last) <= limit
    assert min(sizes.values()) > limit
    assert np.linalg.norm(reference.gradient(X, F)) > 10 * limit  # on the boundary it stays large
    assert (F == 0).any()
