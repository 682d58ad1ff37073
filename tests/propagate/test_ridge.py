"""Ridge regression and its leave-one-out, against those of refitting."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge as DenseRidge

from biglp._algebra.ridge import PENALTIES, fit_ridge


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


def test_ridge_takes_the_penalty_of_least_error_for_each_target():
    rng = np.random.default_rng(0)
    rows, noise = rng.normal(size=(40, 5)), rng.normal(size=40)
    values = np.column_stack([rows @ np.arange(5.0), noise])
    ones = np.ones(40)
    found = fit_ridge(rows, values, ones, ones[:5])
    alone = [fit_ridge(rows, values, ones, ones[:5], np.array([p])) for p in PENALTIES]
    squares = np.array([((one.held_out - values) ** 2).sum(axis=0) for one in alone])
    best = squares.argmin(axis=0)
    assert best[0] == 0
    assert best[1] > 5
    for j in range(2):
        np.testing.assert_allclose(found.slopes[:, j], alone[best[j]].slopes[:, j], rtol=1e-9)
