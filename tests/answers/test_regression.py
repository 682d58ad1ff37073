"""Regression: against the dense truth, brute-force leave-one-out, ridge, and on data with shape."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, make_friedman1, make_swiss_roll
from sklearn.linear_model import Ridge as DenseRidge
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reference as ref
from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core.errors import LabelError, ModelFileError, ParameterError, UnreachedRowsWarning
from biglp._jobs.fit import PredictJob
from biglp._labels.targets import encode_targets
from biglp._lowrank.nystrom import eigenvalue_cutoff
from biglp._propagate.regression import START, blend, held_out_mean, held_out_values
from biglp._propagate.ridge import PENALTIES, fit_ridge
from biglp._propagate.sums import GramSums
from biglp._propagate.systems import Spectrum
from helpers import blobs, rows_in_a_block

ALPHA = 0.9


def problem(n=150, labelled=30, targets=None, seed=0, dtype=np.float64):
    """Rows, labels (NaN where unknown), the truth, weights and landmarks."""
    X, _, _ = blobs(n=n, seed=seed, dtype=dtype)
    rng = np.random.default_rng(seed)
    truth = 100.0 + 5.0 * np.sin(X[:, :1]) + X[:, 1:2] * (1.0 + np.arange(targets or 1))
    y = np.full_like(truth, np.nan)
    known = np.sort(rng.choice(n, labelled, replace=False))
    y[known] = truth[known] + 0.1 * rng.normal(size=(labelled, truth.shape[1]))
    weights = rng.integers(1, 4, n).astype(float)
    y, truth = (y, truth) if targets else (y[:, 0], truth[:, 0])
    return X, y, truth, weights, X[rng.choice(n, 15, replace=False)]


def regressor(**changes):
    settings = {"factor": "anchors", "alpha": ALPHA, "bandwidth": 1.5, "scaling": "none"}
    return LowRankLabelPropagationRegressor(**{**settings, "engine": "serial", **changes})


def by_graph_alone(fitted, X):
    shares = np.zeros_like(fitted._model.decision.weights)
    shares[0] = 1.0
    fitted._model.decision = replace(fitted._model.decision, weights=shares)
    return fitted.predict(X)


def dense_smoothing(S, y, weights, alpha):
    """Σ_l K_il·w_l·y_l / Σ_l K_il·w_l with K = ((I − αS)⁻¹ − I)/α, in n-space."""
    K = (np.linalg.inv(np.eye(len(S)) - alpha * S) - np.eye(len(S))) / alpha
    known = ~np.isnan(y)
    return K[:, known] @ (weights * y)[known] / (K[:, known] @ weights[known])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
def test_the_graph_smooths_as_the_dense_reference_does(factor, dtype):
    X, y, _, weights, L = problem(dtype=dtype)
    fitted = regressor(factor=factor, landmarks=L).fit(X, y, sample_weight=weights)
    if factor == "anchors":
        W = ref.anchor_graph(X, L, 1.5, 3)
    else:
        W = ref.nystrom_graph(X, L, 1.5, eigenvalue_cutoff(len(L), X.dtype))
    expected = dense_smoothing(ref.normalised_graph(W), y, weights, ALPHA)
    expected = np.clip(expected, np.nanmin(y), np.nanmax(y))
    tolerance = 1e-8 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(by_graph_alone(fitted, X), expected, rtol=tolerance)


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_leave_one_out_is_refitting_without_each_label(alpha):
    X, y, _, weights, L = problem(n=60, labelled=12)
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
    found = held_out_values(Spectrum.of(sums), features[rows], columns, alpha)[:, 0]
    expected = []
    for row in rows:
        without = y.copy()
        without[row] = np.nan
        expected.append(dense_smoothing(S, without, weights, alpha)[row])
    found = measured.mean + measured.spread * found
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    others = [np.average(np.delete(y[rows], i), weights=np.delete(weights[rows], i))
              for i in range(len(rows))]  # fmt: skip
    means = held_out_mean(measured.values, measured.weights)[:, 0]
    np.testing.assert_allclose(measured.mean + measured.spread * means, others, rtol=1e-12)


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


def errors(X, truth, labelled, draws=4):
    """Mean errors on unlabelled rows: ours, and those of ridge regression on the labelled."""
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


@pytest.mark.parametrize("kind", ["array", "float32", "csr", "file", "blocks", "threads", "torch"])
def test_predicting_training_rows_gives_their_transduction(kind, tmp_path):
    X, y, _, _, _ = problem()
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
    X, y, truth, _, _ = problem()
    few = {"max_iter": 20} if factor == "glnp" else None
    fitted = regressor(factor=factor, n_landmarks=8, factor_params=few).fit(np.abs(X), y)
    assert np.isfinite(fitted.transduction_).all()
    assert np.abs(fitted.transduction_ - truth).mean() < np.std(truth)


def test_several_targets_are_those_of_each_alone():
    X, y, _, _, _ = problem(targets=3)
    together = regressor(n_landmarks=15).fit(X, y)
    assert together.transduction_.shape == y.shape
    for j in range(3):
        alone = regressor(n_landmarks=15).fit(X, y[:, j])
        np.testing.assert_allclose(together.transduction_[:, j], alone.transduction_, rtol=1e-9)


def test_labels_without_weight_are_unknown_and_weights_count():
    X, y, _, weights, _ = problem()
    known = np.flatnonzero(~np.isnan(y))
    weights[known[::3]] = 0.0
    fewer = y.copy()
    fewer[known[::3]] = np.nan
    one = regressor(n_landmarks=15).fit(X, y, sample_weight=weights)
    two = regressor(n_landmarks=15).fit(X, fewer, sample_weight=np.where(weights > 0, weights, 9))
    np.testing.assert_array_equal(one.transduction_, two.transduction_)
    plain = regressor(n_landmarks=15).fit(X, fewer)
    assert np.abs(one.transduction_ - plain.transduction_).max() > 1e-3


def test_large_offsets_keep_their_digits():
    X, y, _, _, _ = problem(dtype="float32")
    near = regressor(n_landmarks=15).fit(X, y).transduction_
    far = regressor(n_landmarks=15).fit(X, y + 1e9).transduction_
    np.testing.assert_allclose(far - 1e9, near, atol=1e-4)


def test_rows_that_no_label_reaches_get_the_mean():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), 1e4 + rng.normal(size=(40, 2))])
    y = np.full(80, np.nan)
    y[:10] = X[:10, 0]
    L = X[[0, 1, 2, 3, 40, 41, 42, 43]]
    with pytest.warns(UnreachedRowsWarning, match=r"40 of 80 rows .* the mean of the labels"):
        fitted = regressor(landmarks=L).fit(X, y)
    np.testing.assert_allclose(by_graph_alone(fitted, X[40:]), np.nanmean(y))


@pytest.mark.parametrize("labelled", [1, 2, 3])
def test_a_handful_of_labels_and_labels_that_are_all_the_same(labelled):
    X, y, truth, _, _ = problem(labelled=labelled)
    found = LowRankLabelPropagationRegressor(n_landmarks=15, engine="serial").fit(X, y)
    assert np.isfinite(found.transduction_).all()
    assert np.abs(found.transduction_ - truth).max() < 100
    same = np.where(np.isnan(y), np.nan, 7.0)
    np.testing.assert_allclose(regressor(n_landmarks=15).fit(X, same).transduction_, 7.0)


def test_saved_models_say_the_same_and_the_other_kind_is_refused(tmp_path):
    X, y, _, _, _ = problem()
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


def test_the_report_says_what_was_chosen():
    X, y, _, _, _ = problem()
    report = LowRankLabelPropagationRegressor(n_landmarks=15, engine="serial").fit(X, y).report_
    assert [member["member"] for member in report["members"]] == ["graph", "ridge", "mean"]
    best = min(report["candidates"], key=lambda candidate: candidate["error"])
    assert report["alpha"] == best["alpha"]
    assert report["held_out_labels"] == 30
    alone = [member["error"][0] for member in report["members"]]
    assert report["held_out_error"][0] < 1.05 * min(alone)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0], r"y has 2 rows but X has 3 rows"),
        ([np.nan] * 3, r"none of the 3 rows has a target"),
        ([1.0, np.inf, 2.0], r"infinity, or NaN beside a number, in row 1"),
        ([[1.0, np.nan], [1, 1], [1, 1]], r"NaN beside a number, in row 0"),
        (["a", "b", "c"], r"no numbers .* For classes use LowRankLabelPropagation"),
        ([1j, 0, 1], "Complex data not supported"),
        (np.zeros((3, 1, 1)), r"got shape \(3, 1, 1\)"),
    ],
)
def test_targets_that_cannot_be_used_are_refused(y, message):
    with pytest.raises(LabelError, match=message):
        encode_targets(y, 3)
