"""The classifier as a scikit-learn user meets it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from biglp import LowRankLabelPropagation
from biglp._core.errors import (
    ParameterError,
    StoppedShortWarning,
)
from biglp.estimators.classifier import PAPER_METHODS
from helpers import blobs, model

FACTORS = ("anchors", "nystrom", "linear", "glnp")


class TestScikitLearn:
    def test_parameters_can_be_read_set_and_cloned(self):
        landmarks = np.ones((2, 5))
        estimator = LowRankLabelPropagation(alpha=0.5, landmarks=landmarks)
        assert estimator.get_params()["alpha"] == 0.5
        copy = clone(estimator).set_params(alpha=0.7)
        assert (copy.alpha, estimator.alpha) == (0.7, 0.5)
        np.testing.assert_array_equal(copy.landmarks, landmarks)
        assert is_classifier(estimator)

    def test_the_parameters_are_those_of_the_design(self):
        settled = {
            "factor": "auto",
            "n_landmarks": "auto",
            "landmarks": "kmeans",
            "bandwidth": "auto",
            "alpha": "auto",
            "class_balance": "auto",
            "solver": "closed_form",
            "engine": "threads",
            "device": "cpu",
            "memory": "auto",
            "random_state": None,
            "verbose": False,
        }
        assert settled.items() <= LowRankLabelPropagation().get_params().items()

    def test_fitting_leaves_parameters_and_data_alone(self):
        X, y, _ = blobs()
        rows, labels = X.copy(), y.copy()
        estimator = model(random_state=np.random.RandomState(0), factor_params={"n_nearest": 2})
        before = estimator.get_params()
        estimator.fit(X, y)
        assert all(estimator.get_params()[name] is value for name, value in before.items())
        np.testing.assert_array_equal(X, rows)
        np.testing.assert_array_equal(y, labels)

    def test_a_pipeline(self):
        X, y, truth = blobs()
        pipeline = make_pipeline(StandardScaler(), model(alpha="auto")).fit(X * 1000, y)
        assert (pipeline.predict(X * 1000) == truth).mean() > 0.85
        assert pipeline.predict_proba(X * 1000).shape == (200, 3)

    def test_a_grid_search(self):
        X, _, truth = blobs(n=120)
        search = GridSearchCV(
            model(n_landmarks=15),
            {"alpha": [0.1, 0.9], "factor": ["anchors", "nystrom"], "bandwidth": [0.5, 1.5]},
            scoring=make_scorer(accuracy_score),
            cv=3,
            error_score="raise",
        ).fit(X, truth)
        assert search.best_score_ > 0.8
        assert len(search.cv_results_["params"]) == 8

    @pytest.mark.parametrize("factor", FACTORS)
    def test_a_pickle_predicts_the_same(self, factor, digits):
        X, y, _ = digits
        fitted = LowRankLabelPropagation(factor=factor, n_landmarks=30, engine="serial")
        fitted.fit(np.abs(X[:400]), y[:400])
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.predict_proba(X[400:]), fitted.predict_proba(X[400:]))
        np.testing.assert_array_equal(again.transduction_, fitted.transduction_)

    def test_a_data_frame_and_its_column_names(self):
        X, y, _ = blobs(features=3)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        fitted = model().fit(frame, y)
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(fitted.transduction_, model().fit(X, y).transduction_)
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(frame[["c", "a", "b"]])

    def test_not_fitted(self):
        for call in ("predict", "predict_proba", "save"):
            with pytest.raises(NotFittedError):
                getattr(LowRankLabelPropagation(), call)("rows.npy")

    def test_score_is_the_accuracy(self):
        X, y, truth = blobs()
        fitted = model().fit(X, y)
        assert fitted.score(X, truth) == (fitted.predict(X) == truth).mean()


@pytest.mark.parametrize(
    ("names", "unknown"),
    [
        (["cat", "dog", "eel"], ""),
        (["cat", "dog", "eel"], None),
        (["cat", "dog", "eel"], float("nan")),
        (["cat", "dog", "eel"], -1),
        ([10, 20, 30], -1),
        ([10, 20, 30], None),
        ([10.0, 20.0, 30.0], float("nan")),
        ([False, True, None], None),
    ],
)
def test_labels_of_any_type(names, unknown):
    X, codes, _ = blobs(classes=2 if None in names else 3)
    y = [unknown if code == -1 else names[code] for code in codes]
    expected = model().fit(X, codes)
    fitted = model().fit(X, y)
    assert fitted.classes_.tolist() == [name for name in names if name is not None]
    np.testing.assert_array_equal(fitted.transduction_, fitted.classes_[expected.transduction_])
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[expected.predict(X)])


def test_booleans_have_no_way_to_say_unknown():
    X, _, truth = blobs(classes=2)
    fitted = model().fit(X, truth == 1)
    assert fitted.classes_.tolist() == [False, True]
    assert fitted.report_["labelled_rows"] == 200


class TestPaper:
    @pytest.mark.parametrize("method", PAPER_METHODS)
    def test_presets_have_the_settings_of_the_paper(self, method):
        estimator = LowRankLabelPropagation.paper(method, k=12, random_state=4)
        params = estimator.get_params()
        assert params["alpha"] == 0.01
        assert params["class_balance"] == "share"
        assert params["scaling"] == "none"
        assert params["n_landmarks"] == 12
        assert params["random_state"] == 4
        assert params["factor"] == {"glnp-apgd": "glnp"}.get(method, params["factor"])
        assert params["factor"] in method

    @pytest.mark.parametrize("method", PAPER_METHODS)
    def test_presets_fit(self, method):
        X, y, truth = blobs(n=300, classes=2, labelled=40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedShortWarning)
            fitted = LowRankLabelPropagation.paper(method, k=12).fit(X, y)
        assert (fitted.transduction_ == truth).mean() > 0.75
        assert np.isfinite(fitted.label_distributions_).all()

    def test_defaults_and_unknown_methods(self):
        default = LowRankLabelPropagation.paper()
        assert (default.factor, default.landmarks, default.n_landmarks) == (
            "nystrom",
            "kmeans",
            100,
        )
        with pytest.raises(ParameterError, match=r"method='svm' .* nystrom-random, nystrom-kmeans"):
            LowRankLabelPropagation.paper("svm")
