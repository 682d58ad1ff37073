"""New rows of GLNP: they end where a training row of the same features ended."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons

from biglp import LowRankLabelPropagation
from biglp._core.blocks import cut_rows
from biglp._graph.glnp.factor import GlnpFactor
from biglp._graph.glnp.new_rows import NewRowSteps, Patterns
from glnp_tools import SOLVERS, fitted, gathered, prepared, relative, some_rows


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_iter", [0, 1, 25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_taken_for_new_ones_have_the_same_factor(solver, max_iter, dtype):
    """With more prototypes than features, and before training has settled."""
    X = (some_rows() - 0.1).astype(dtype)[:, :3]
    factor, _, F = fitted(X, k=9, solver=solver, max_iter=max_iter, tol=0.0)
    stored = GlnpFactor.from_state(factor.for_new_rows().state())
    for known in (factor, factor.for_new_rows(), stored):
        found = gathered(known, cut_rows(prepared(X), 7))
        assert found.dtype == dtype
        assert relative(found, F) < 1e-3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_multiplicative_steps_of_rows_that_are_mostly_zero_or_below_all_others(storage):
    """Rounding makes of zeros negative numbers, which have no root."""
    X = np.zeros((6, 3))
    X[1:, 0], X[4] = [3, 7, 255, 0, 5], [0, 0, 255]
    factor, _, F = fitted(X, k=6, solver="multiplicative", max_iter=200, tol=0.0)
    assert relative(factor.features(storage(X)), F) < 1e-3
    assert np.isfinite(factor.features(storage(X - 50.0))).all()


def test_a_start_that_is_drawn_by_row_has_no_course():
    factor, _, _ = fitted(some_rows(), k=4, start="uniform", max_iter=5)
    assert factor.new_rows is None
    assert "course_moves" not in factor.state()


def test_rows_take_their_steps_in_parts(monkeypatch):
    X = some_rows()
    course = fitted(X, k=4, max_iter=10)[0].new_rows
    assert isinstance(course, NewRowSteps)
    whole = course.follow(X)
    monkeypatch.setattr("biglp._graph.glnp.new_rows.PART_BYTES", 8 * 4 * 13)
    np.testing.assert_allclose(course.follow(X), whole, rtol=1e-12)


def test_patterns_tell_arrays_that_change_little():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 5, 3))
    arrays = [first + second / step for step in range(1, 40)]
    found = Patterns.from_arrays(arrays, (5, 3))
    assert found.weights.shape == (39, 2)
    for place, array in enumerate(arrays):
        assert relative(found[place], array) < 1e-3


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("solver", ["glnp", "glnp-mu"])
def test_predict_agrees_with_transduction(solver, tmp_path):
    """A quarter of the rows of two moons had another label, and a third of overlapping blobs."""
    X, truth = make_moons(300, noise=0.2, random_state=0)
    y = np.where(np.arange(300) < 20, truth, -1)
    params = {"max_iter": 60, "tol": 0.0}
    model = LowRankLabelPropagation(solver, n_landmarks=20, factor_params=params)
    model.fit(X, y)
    assert (model.predict(X) != model.transduction_).mean() < 0.01
    model.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
