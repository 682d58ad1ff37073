"""The estimators: what they answer, keep, report and take later."""

import pickle
import warnings
from copy import copy, deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import ModelFileError, ParameterError, StoppedShortWarning, UnreachedRowsWarning
from biglp._jobs import PredictJob
from biglp.estimators.classifier import PAPER_METHODS
from helpers import blobs, measured_problem, model, regressor


@pytest.mark.parametrize("method", PAPER_METHODS)
def test_presets_have_the_settings_of_the_paper_and_fit(method):
    X, y, truth = blobs(n=300, classes=2, labelled=40)
    preset = LowRankLabelPropagation.paper(method, k=12, random_state=4)
    params = preset.get_params()
    expected = {"alpha": 0.01, "class_balance": "share", "scaling": "none", "n_landmarks": 12}
    assert params | expected == params
    assert params["factor"] in method
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedShortWarning)
        fitted = preset.fit(X, y)
    assert (fitted.transduction_ == truth).mean() > 0.75
    assert np.isfinite(fitted.label_distributions_).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
def test_unreached_rows_get_the_prior_and_are_counted(factor, dtype):
    # Two islands of 30 rows without a label: rounding must not look like labels there.
    X, y, _ = blobs(n=300, classes=2)
    X[240:] += 200.0
    X[270:, 1] += 300.0
    y[240:] = -1
    prior = [0.3, 0.7]
    for alpha in (0.5, 0.99):
        chosen = {"factor": factor, "alpha": alpha, "bandwidth": 1.0, "n_landmarks": 50}
        with pytest.warns(UnreachedRowsWarning, match=r"60 of 300 rows .* got the class prior\."):
            fitted = model(**chosen, class_balance=prior).fit(X.astype(dtype), y)
        assert fitted.report_["unreached_rows"] == 60
        np.testing.assert_allclose(fitted.label_distributions_[240:], [prior] * 60, rtol=1e-6)
        np.testing.assert_allclose(fitted.predict_proba(X[240:]), [prior] * 60, rtol=1e-6)
        moved = np.abs(fitted.label_distributions_[:240] - prior).max(axis=1) > 1e-3
        assert moved.mean() > 0.9


def test_a_label_reaches_the_end_of_a_long_chain():
    # Each landmark further on has a thousandth of the score: small, but no rounding error.
    X = np.repeat(np.arange(9.0), 20)[:, None]
    y = np.full(180, -1)
    y[[0, 1, 160]] = [0, 0, 1]
    landmarks = np.arange(9.0)[:, None]
    fitted = model(landmarks=landmarks, bandwidth=0.35, alpha=0.3, class_balance="none")
    fitted.fit(X, y)
    assert fitted.report_["unreached_rows"] == 0
    assert fitted.transduction_[:80].tolist() == [0] * 80
    assert fitted.transduction_[100:].tolist() == [1] * 80


def test_class_balance_saves_the_minority():
    """scikit-learn issues #7276 and #21783: everything becomes the majority class."""
    rng = np.random.default_rng(0)
    truth = (np.arange(1000) % 20 == 0).astype(int)
    X = rng.normal(size=(1000, 4)) + 2.5 * truth[:, None]
    y = np.where(rng.random(1000) < 0.3, truth, -1)
    for balance, low, high in (("none", 0, 0.3), ("mass", 0.9, 1)):
        found = model(alpha=0.99, class_balance=balance).fit(X, y).transduction_
        assert low <= (found == 1)[(y == -1) & (truth == 1)].mean() <= high


def test_the_seed_alone_decides():
    X, y, _ = blobs(n=300)

    def fitted(seed):
        return model(random_state=seed).fit(X, y).label_distributions_

    np.testing.assert_array_equal(fitted(1), fitted(1))
    assert not np.array_equal(fitted(2), fitted(1))
    np.testing.assert_array_equal(fitted(None), fitted(0))
    for generator in (np.random.RandomState(3), np.random.default_rng(3)):
        assert np.isfinite(fitted(generator)).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_probabilities_and_decisions_agree_with_predict(classes, dtype):
    X, y, _ = blobs(n=200, labelled=12, classes=classes, dtype=dtype)
    fitted = model().fit(X, y)
    shares, logs = fitted.predict_proba(X), fitted.predict_log_proba(X)
    assert logs.dtype == dtype
    np.testing.assert_allclose(np.exp(logs), shares, rtol=1e-5)
    decisions = fitted.decision_function(X)
    assert np.isfinite(decisions).all()
    codes = decisions.argmax(axis=1) if classes > 2 else (decisions > 0).astype(int)
    assert decisions.shape == ((200, 3) if classes > 2 else (200,))
    assert (fitted.classes_[codes] == fitted.predict(X)).all()


def test_the_likeliest_classes():
    X, y, _ = blobs(n=200, labelled=12)
    names = np.where(y < 0, "", np.char.add("class ", y.astype(str)))
    fitted = model().fit(X, names)
    labels, probabilities = fitted.predict_top(X, 2)
    assert labels.shape == probabilities.shape == (200, 2)
    assert (labels[:, 0] == fitted.predict(X)).all()
    assert (np.diff(probabilities, axis=1) <= 0).all()
    shares = fitted.predict_proba(X)
    assert probabilities.tolist() == (-np.sort(-shares, axis=1))[:, :2].tolist()
    every, _ = fitted.predict_top(X, 3)
    assert {tuple(sorted(row)) for row in every.tolist()} == {tuple(fitted.classes_)}
    with pytest.raises(ParameterError, match="n=4 is more than the 3 classes; give 1 to 3"):
        fitted.predict_top(X, 4)
    with pytest.raises(ParameterError, match="n=0 cannot be used"):
        fitted.predict_top(X, 0)


NEW, ANSWERS = [50, 60, 70], [0, 1, 7]


@pytest.fixture
def fitted():
    X, y, _ = blobs(n=120, labelled=12)
    return model().fit(X, y), X, y


def with_answers(y):
    together = y.copy()
    together[NEW] = ANSWERS
    return together


@pytest.mark.parametrize("duplicate", [copy, deepcopy])
def test_copies_take_labels_and_leave_the_original_alone(fitted, duplicate):
    first, X, y = fitted
    before = first.transduction_.copy()
    second = duplicate(first)
    second.update_labels(NEW, ANSWERS)
    fresh = clone(first).fit(X, with_answers(y))
    assert second.transduction_.tolist() == fresh.transduction_.tolist()
    assert second.report_["labelled_rows"] == 15
    assert first.report_["labelled_rows"] == 12
    assert first.transduction_.tolist() == before.tolist()
    assert first.classes_.tolist() == [0, 1, 2]
    assert len(second.suggest(4)) == len(first.suggest(4)) == 4
    assert second.doubtful_labels(0).rows.tolist() != first.doubtful_labels(0).rows.tolist()


def test_unpickled_and_loaded_models_take_labels_with_the_rows(fitted, tmp_path):
    first, X, y = fitted
    first.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    loaded.set_params(**first.get_params())
    fresh = clone(first).fit(X, with_answers(y))
    for again in (pickle.loads(pickle.dumps(first)), loaded):
        with pytest.raises(ParameterError, match=r"update_labels\(rows, labels, X=X, y=y\)"):
            again.update_labels(NEW, ANSWERS)
        with pytest.raises(ParameterError, match="X has 100 rows, but the model was fitted on 120"):
            again.update_labels(NEW, ANSWERS, X=X[:100], y=y[:100])
        again.update_labels(NEW, ANSWERS, X=X, y=y)
        assert again.transduction_.tolist() == fresh.transduction_.tolist()
        assert again.predict_proba(X).tolist() == fresh.predict_proba(X).tolist()
        again.update_labels(NEW[:1], [-1])  # it holds the rows now
        assert again.report_["labelled_rows"] == 14


def test_a_handful_of_labels_and_labels_that_are_all_the_same():
    for labelled in (1, 2, 3):
        X, y, truth, _, _ = measured_problem(labelled=labelled)
        found = LowRankLabelPropagationRegressor(n_landmarks=15, engine="serial").fit(X, y)
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


DRAWS, LABELS = 5, 16


def test_counts_of_words_are_words_however_they_are_stored():
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 3
    common = rng.gamma(1.0, 0.02, 400) * rng.gamma(2.0, 0.5, (600, 1))
    own = np.repeat(np.eye(3)[truth] * 0.06, [133, 133, 134], axis=1)
    counts = rng.poisson(common + own).astype(np.float32)
    y = np.where(np.arange(600) < 9, truth, -1)
    dense, csr = (
        LowRankLabelPropagation(random_state=0).fit(rows, y)
        for rows in (counts, sparse.csr_matrix(counts))
    )
    assert dense.report_["scaling"] == csr.report_["scaling"] == "text"
    assert (dense.transduction_ == csr.transduction_).all()
    assert (dense.predict(counts) == dense.transduction_).mean() > 0.99
