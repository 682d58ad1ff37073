"""The regressor as a scikit-learn user meets it."""

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core.errors import ModelFileError, ParameterError
from biglp._jobs.predict import PredictJob
from helpers import blobs, measured_problem, regressor, rows_in_a_block


@pytest.mark.parametrize("kind", ["array", "float32", "csr", "file", "blocks", "threads", "torch"])
def test_predicting_training_rows_gives_their_transduction(kind, tmp_path):
    X, y, _, _, _ = measured_problem()
    rows, changes = X, {}
    if kind == "float32":
        rows = X.astype("float32")
    if kind == "csr":
        rows = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    if kind == "file":
        rows = tmp_path / "rows.npy"
        np.save(rows, X)
    if kind == "threads":
        changes = {"engine": "threads"}
    if kind == "torch":
        pytest.importorskip("torch")
        changes = {"device": "torch:cpu"}
    with rows_in_a_block(17 if kind == "blocks" else 1000):
        fitted = regressor(factor="auto", n_landmarks=15, alpha="auto", **changes).fit(rows, y)
    np.testing.assert_allclose(
        fitted.predict(rows), fitted.transduction_, rtol=1e-5 if kind == "float32" else 1e-9
    )
    assert fitted.transduction_.shape == y.shape
    if kind in ("file", "blocks", "threads", "torch"):
        plain = regressor(factor="auto", n_landmarks=15, alpha="auto").fit(X, y)
        np.testing.assert_allclose(fitted.transduction_, plain.transduction_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("factor", ["glnp", "linear"])
def test_other_factors_give_finite_values(factor):
    X, y, truth, _, _ = measured_problem()
    few = {"max_iter": 20} if factor == "glnp" else None
    fitted = regressor(factor=factor, n_landmarks=8, factor_params=few).fit(np.abs(X), y)
    assert np.isfinite(fitted.transduction_).all()
    assert np.abs(fitted.transduction_ - truth).mean() < np.std(truth)


def test_several_targets_are_those_of_each_alone():
    X, y, _, _, _ = measured_problem(targets=3)
    together = regressor(n_landmarks=15).fit(X, y)
    assert together.transduction_.shape == y.shape
    for j in range(3):
        alone = regressor(n_landmarks=15).fit(X, y[:, j])
        np.testing.assert_allclose(together.transduction_[:, j], alone.transduction_, rtol=1e-9)


def test_labels_without_weight_are_unknown_and_weights_count():
    X, y, _, weights, _ = measured_problem()
    known = np.flatnonzero(~np.isnan(y))
    weights[known[::3]] = 0.0
    fewer = y.copy()
    fewer[known[::3]] = np.nan
    one = regressor(n_landmarks=15).fit(X, y, sample_weight=weights)
    two = regressor(n_landmarks=15).fit(X, fewer, sample_weight=np.where(weights > 0, weights, 9))
    np.testing.assert_array_equal(one.transduction_, two.transduction_)
    plain = regressor(n_landmarks=15).fit(X, fewer)
    assert np.abs(one.transduction_ - plain.transduction_).max() > 1e-3


@pytest.mark.parametrize("labelled", [1, 2, 3])
def test_a_handful_of_labels_and_labels_that_are_all_the_same(labelled):
    X, y, truth, _, _ = measured_problem(labelled=labelled)
    found = LowRankLabelPropagationRegressor(n_landmarks=15, engine="serial").fit(X, y)
    assert np.isfinite(found.transduction_).all()
    assert np.abs(found.transduction_ - truth).max() < 100
    same = np.where(np.isnan(y), np.nan, 7.0)
    np.testing.assert_allclose(regressor(n_landmarks=15).fit(X, same).transduction_, 7.0)


def test_saved_models_say_the_same_and_the_other_kind_is_refused(tmp_path):
    X, y, _, _, _ = measured_problem()
    fitted = regressor(n_landmarks=15).fit(X, y)
    fitted.save(tmp_path / "numbers.biglp")
    again = LowRankLabelPropagationRegressor.load(tmp_path / "numbers.biglp")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.report_ == fitted.report_
    with pytest.raises(ModelFileError, match=r"predicts numbers.*PropagationRegressor\.load"):
        LowRankLabelPropagation.load(tmp_path / "numbers.biglp")
    rows, labels, _ = blobs()
    LowRankLabelPropagation(engine="serial").fit(rows, labels).save(tmp_path / "classes.biglp")
    with pytest.raises(ModelFileError, match=r"predicts classes.*LowRankLabelPropagation\.load"):
        LowRankLabelPropagationRegressor.load(tmp_path / "classes.biglp")
    np.save(tmp_path / "rows.npy", X)
    job = PredictJob(
        (str(tmp_path / "rows.npy"),), tmp_path / "out", model=tmp_path / "numbers.biglp"
    )
    with pytest.raises(ParameterError, match="predicts numbers, and biglp predict writes classes"):
        job.run()
