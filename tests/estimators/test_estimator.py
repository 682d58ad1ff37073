"""The estimator as a scikit-learn user meets it."""

import io
import json
import logging
import pickle
import re
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import biglp
from biglp import LowRankLabelPropagation
from biglp._core.errors import (
    DegreeWarning,
    LandmarkWarning,
    MemoryBudgetError,
    ModelFileError,
    ParameterError,
    StoppedShortWarning,
    UnreachedRowsWarning,
)
from biglp.estimators.classifier import PAPER_METHODS
from helpers import blobs, model, rows_in_a_block

FACTORS = ("anchors", "nystrom", "linear", "glnp")


@pytest.fixture(scope="module")
def digits():
    X, truth = load_digits(return_X_y=True)
    y = np.full(len(truth), -1)
    rows = np.random.default_rng(0).choice(len(truth), 100, replace=False)
    y[rows] = truth[rows]
    return X.astype(np.float32), y, truth


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a good model file."""
    X, y, _ = blobs()
    path = tmp_path_factory.mktemp("models") / "whole.model"
    model().fit(X, y).save(path)
    return path.read_bytes()


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


class TestAnswers:
    def test_digits_with_a_hundred_labels(self, digits):
        X, y, truth = digits
        fitted = LowRankLabelPropagation().fit(X, y)
        unlabelled = y == -1
        assert (fitted.transduction_ == truth)[unlabelled].mean() > 0.93
        assert fitted.classes_.tolist() == list(range(10))
        assert fitted.label_distributions_.shape == (1797, 10)
        assert fitted.n_features_in_ == 64
        assert fitted.n_iter_ == 1

    def test_two_moons_with_one_label_each(self):
        X, truth = make_moons(400, noise=0.05, random_state=0)
        y = np.full(400, -1)
        y[[np.flatnonzero(truth == 0)[0], np.flatnonzero(truth == 1)[0]]] = [0, 1]
        fitted = LowRankLabelPropagation().fit(X, y)
        assert (fitted.transduction_ == truth).mean() > 0.97

    @pytest.mark.parametrize("factor", FACTORS)
    def test_prediction_of_training_rows_is_the_transduction(self, factor):
        X, y, _ = blobs(n=400)
        X = np.abs(X)  # so that GLNP need not shift
        params = {"max_iter": 500, "tol": 1e-6} if factor == "glnp" else None
        fitted = model(factor=factor, n_landmarks=8, factor_params=params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedShortWarning)
            fitted.fit(X, y)
        unlabelled = y == -1
        agree = fitted.predict(X)[unlabelled] == fitted.transduction_[unlabelled]
        if factor == "glnp":  # the iterate is close to, not at, the minimum of each row
            assert agree.mean() > 0.9
            return
        assert agree.all()
        np.testing.assert_allclose(
            fitted.predict_proba(X)[unlabelled],
            fitted.label_distributions_[unlabelled],
            atol=1e-9,
        )

    @pytest.mark.parametrize("factor", FACTORS)
    def test_csr_rows_give_what_dense_rows_give(self, factor):
        X, y, _ = blobs(n=300)
        X = np.where(X > 0.5, X, 0.0)
        X[:, 0] += 0.1  # no row is empty
        dense = model(factor=factor, n_landmarks=10).fit(X, y)
        from_csr = model(factor=factor, n_landmarks=10).fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(
            from_csr.label_distributions_, dense.label_distributions_, atol=1e-6
        )
        np.testing.assert_allclose(
            from_csr.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-6
        )

    @pytest.mark.parametrize("layout", ["csc_matrix", "coo_array", "csr_array"])
    def test_other_sparse_layouts(self, layout):
        X, y, _ = blobs()
        expected = model().fit(sparse.csr_matrix(X), y).label_distributions_
        found = model().fit(getattr(sparse, layout)(X), y).label_distributions_
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("factor", FACTORS)
    @pytest.mark.parametrize("solver", ["closed_form", "iterative"])
    def test_probabilities_add_up_to_one(self, factor, solver):
        X, y, _ = blobs(dtype="float32")
        fitted = model(factor=factor, n_landmarks=10, solver=solver).fit(X, y)
        for probabilities in (fitted.label_distributions_, fitted.predict_proba(X + 3)):
            assert np.isfinite(probabilities).all()
            assert probabilities.min() >= 0
            np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)

    def test_both_solvers_agree_and_the_iterative_one_counts(self):
        X, y, _ = blobs()
        exact = model().fit(X, y)
        iterated = model(solver="iterative", tol=1e-10).fit(X, y)
        np.testing.assert_allclose(
            iterated.label_distributions_, exact.label_distributions_, atol=1e-8
        )
        assert iterated.n_iter_ > 10
        with pytest.warns(StoppedShortWarning, match="max_iter=3") as caught:
            short = model(solver="iterative", max_iter=3).fit(X, y)
        assert short.n_iter_ == 3
        assert len(caught) == 1

    def test_nystrom_of_few_rows_chooses_a_sensible_bandwidth(self):
        # Every row is its own landmark: the distance to the nearest one is zero or rounding.
        for dtype in ("float32", "float64"):
            X, y, truth = blobs(n=45, labelled=12, dtype=dtype, spread=0.5)
            fitted = LowRankLabelPropagation(factor="nystrom").fit(X, y)
            assert (fitted.transduction_ == truth).mean() > 0.9

    @pytest.mark.parametrize("alpha", [0.5, 0.99])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("factor", ["anchors", "nystrom"])
    def test_unreached_rows_get_the_prior_and_are_counted(self, factor, dtype, alpha):
        # Two islands of 30 rows without a label: rounding must not look like labels there.
        X, y, _ = blobs(n=300, classes=2)
        X[240:] += 200.0
        X[270:, 1] += 300.0
        y[240:] = -1
        prior = [0.3, 0.7]
        estimator = model(
            factor=factor, alpha=alpha, bandwidth=1.0, class_balance=prior, n_landmarks=50
        )
        with pytest.warns(UnreachedRowsWarning, match=r"60 of 300 rows .* class prior; label"):
            fitted = estimator.fit(X.astype(dtype), y)
        assert fitted.report_["unreached_rows"] == 60
        np.testing.assert_allclose(fitted.label_distributions_[240:], [prior] * 60, rtol=1e-6)
        np.testing.assert_allclose(fitted.predict_proba(X[240:]), [prior] * 60, rtol=1e-6)
        assert (np.abs(fitted.label_distributions_[:240] - prior).max(axis=1) > 1e-3).mean() > 0.9

    def test_new_rows_that_nothing_reaches_get_the_prior(self):
        X, y, _ = blobs(classes=2)
        fitted = model(factor="nystrom", class_balance=[0.3, 0.7]).fit(X, y)
        np.testing.assert_allclose(fitted.predict_proba([[-1e5] * 5]), [[0.3, 0.7]])

    def test_a_label_reaches_the_end_of_a_long_chain(self):
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

    def test_class_balance_saves_the_minority(self):
        """scikit-learn issues #7276 and #21783: everything becomes the majority class."""
        rng = np.random.default_rng(0)
        truth = (np.arange(1000) % 20 == 0).astype(int)
        X = rng.normal(size=(1000, 4)) + 2.5 * truth[:, None]
        y = np.where(rng.random(1000) < 0.3, truth, -1)
        unlabelled = y == -1

        def minority_recall(balance):
            fitted = model(alpha=0.99, class_balance=balance).fit(X, y)
            return (fitted.transduction_ == 1)[unlabelled & (truth == 1)].mean()

        assert minority_recall("none") < 0.3
        assert minority_recall("mass") > 0.9

    def test_automatic_choices_are_reported(self, digits):
        X, y, _ = digits
        report = LowRankLabelPropagation(factor="anchors").fit(X, y).report_
        assert 0 < report["alpha"] < 1
        assert report["bandwidth"] > 0
        assert 0.8 < report["leave_one_out_accuracy"] <= 1
        best = max(candidate["accuracy"] for candidate in report["candidates"])
        assert report["leave_one_out_accuracy"] == best
        assert (report["rows"], report["labelled_rows"]) == (1797, 100)
        json.dumps(report)  # it is stored in the model file

    def test_the_seed_alone_decides(self):
        X, y, _ = blobs(n=300)
        one = model(random_state=1).fit(X, y).label_distributions_
        np.testing.assert_array_equal(model(random_state=1).fit(X, y).label_distributions_, one)
        assert not np.array_equal(model(random_state=2).fit(X, y).label_distributions_, one)
        for same in (None, 0):
            np.testing.assert_array_equal(
                model(random_state=same).fit(X, y).label_distributions_,
                model().fit(X, y).label_distributions_,
            )
        for generator in (np.random.RandomState(3), np.random.default_rng(3)):
            model(random_state=generator).fit(X, y)


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


class TestModelFiles:
    @pytest.mark.parametrize("bandwidth", [0.3, 3.0])  # with and without mixing of the sums
    @pytest.mark.parametrize("factor", FACTORS)
    def test_a_saved_model_predicts_the_same(self, factor, bandwidth, tmp_path):
        X, y, _ = blobs(n=300, dtype="float32")
        fitted = model(factor=factor, n_landmarks=12, bandwidth=bandwidth, scaling="standard")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (UnreachedRowsWarning, DegreeWarning))
            fitted.fit(X[:250], y[:250])
        fitted.save(tmp_path / "a.model")
        loaded = LowRankLabelPropagation.load(str(tmp_path / "a.model"))
        np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
        np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
        assert loaded.report_ == fitted.report_
        assert loaded.n_features_in_ == 5
        assert [path.name for path in tmp_path.iterdir()] == ["a.model"]

    @pytest.mark.parametrize(
        "names", [["a", "bé"], [3, 5], [0.0, 1.0], [False, True], np.array([1, "b"], dtype=object)]
    )
    def test_classes_survive(self, names, tmp_path):
        X, codes, _ = blobs(classes=2)
        y = np.array([None if code == -1 else names[code] for code in codes], dtype=object)
        fitted = model().fit(X, y)
        fitted.save(tmp_path / "a.model")
        classes = LowRankLabelPropagation.load(tmp_path / "a.model").classes_
        assert classes.tolist() == fitted.classes_.tolist()
        assert classes.dtype == fitted.classes_.dtype

    def test_classes_that_are_no_text_and_no_numbers_are_refused(self, tmp_path):
        X, codes, _ = blobs(classes=2)
        y = np.where(codes < 0, np.datetime64("NaT"), np.datetime64("2020-01-01") + codes)
        with pytest.raises(ModelFileError, match=r"numbers or text can be saved.* pickle"):
            model().fit(X, y).save(tmp_path / "a.model")
        assert not list(tmp_path.iterdir())

    def refused(self, content, path, message):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=message) as caught:
            LowRankLabelPropagation.load(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
    def test_a_truncated_file_is_refused(self, share, whole, tmp_path):
        part = whole[: int(share * len(whole))]
        self.refused(part, tmp_path / "a.model", r"not a whole biglp model .* fit and save it anew")

    def test_a_damaged_file_is_refused_wherever_the_damage_is(self, whole, tmp_path):
        rng = np.random.default_rng(0)
        X, _, _ = blobs()
        good = LowRankLabelPropagation.load(self.written(whole, tmp_path)).predict_proba(X)
        refused = 0
        for place in rng.integers(len(whole), size=60):
            damaged = bytearray(whole)
            damaged[place] ^= 0xFF
            path = self.written(bytes(damaged), tmp_path)
            try:
                loaded = LowRankLabelPropagation.load(path)
            except ModelFileError:
                refused += 1
            else:  # a byte of no meaning, such as a time stamp: the model is the same
                np.testing.assert_array_equal(loaded.predict_proba(X), good)
        assert refused > 40

    def written(self, content, folder):
        path = folder / "b.model"
        path.write_bytes(content)
        return path

    @pytest.mark.parametrize(
        "content", [b"", b"not a model", pickle.dumps([1, 2]), b"PK\x03\x04" + b"x" * 50]
    )
    def test_a_foreign_file_is_refused(self, content, tmp_path):
        self.refused(content, tmp_path / "a.model", r"not a whole biglp model")

    def test_a_foreign_archive_is_refused(self, tmp_path):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("header.json", json.dumps({"format": "other"}))
        self.refused(buffer.getvalue(), tmp_path / "a.model", r"not one that biglp wrote")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"version": 99}, r"model format 99, this biglp reads up to \d+; upgrade"),
            ({"factor": "quantum"}, r"not a whole biglp model"),
            ({"classes": None}, r"not a whole biglp model"),
            ({"n_features": None, "arrays": ["missing"]}, r"not a whole biglp model"),
            ({"dtype": "no such type"}, r"not a whole biglp model"),
        ],
    )
    def test_a_header_of_another_kind_is_refused(self, change, message, whole, tmp_path):
        buffer = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(buffer, "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if name == "header.json":
                    content = json.dumps(json.loads(content) | change).encode()
                new.writestr(name, content)
        self.refused(buffer.getvalue(), tmp_path / "a.model", message)

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(ModelFileError, match=r"there is no model file .*none\.model; save one"):
            LowRankLabelPropagation.load(tmp_path / "none.model")

    def test_no_pickle_is_in_the_file(self, whole):
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            names = archive.namelist()
            arrays = [name for name in names if name.endswith(".npy")]
            assert set(names) - set(arrays) == {"header.json"}
            for name in arrays:
                np.load(io.BytesIO(archive.read(name)), allow_pickle=False)

    def test_a_model_file_is_small(self, whole):
        assert len(whole) < 20_000


class TestTellingTheUser:
    def test_verbose_logs_every_sweep(self, caplog):
        X, y, _ = blobs()
        with caplog.at_level(logging.INFO, logger="biglp"):
            model(factor="nystrom", verbose=True).fit(X, y)
        for sweep in ("k-means", "degrees", "Gram", "labels"):
            assert any(line.startswith(sweep) and "200 rows" in line for line in caplog.messages)

    def test_a_long_sweep_says_how_far_it_is(self, caplog, monkeypatch):
        monkeypatch.setattr("biglp._core.progress.LogTask.SECONDS_BETWEEN_LINES", 0.0)
        X, y, _ = blobs()
        with rows_in_a_block(50), caplog.at_level(logging.INFO, logger="biglp"):
            model(factor="nystrom", verbose=True).fit(X, y)
        assert any("50 % (100 of 200 rows" in line and "s left" in line for line in caplog.messages)

    def test_quiet_by_default(self, caplog, capfd):
        X, y, _ = blobs()
        with caplog.at_level(logging.INFO, logger="biglp"):
            model().fit(X, y)
        assert not caplog.messages
        assert capfd.readouterr() == ("", "")

    def test_verbose_is_seen_without_any_set_up_of_logging(self):
        code = (
            "import numpy as np; from biglp import LowRankLabelPropagation;"
            "X = np.random.default_rng(0).normal(size=(50, 2)); y = np.arange(50) % 3 - 1;"
            "LowRankLabelPropagation(verbose=True).fit(X, y)"
        )
        done = run_python(code)
        assert "biglp: labels: 50 rows in" in done.stderr

    @pytest.mark.parametrize(
        ("category", "settings"),
        [
            (LandmarkWarning, {"n_landmarks": 5000, "factor_params": {"n_nearest": 20}}),
            (UnreachedRowsWarning, {"factor": "nystrom", "bandwidth": 1e-4}),
            (StoppedShortWarning, {"solver": "iterative", "max_iter": 2}),
        ],
    )
    def test_warnings_point_to_the_line_that_called_fit(self, category, settings):
        X, y, _ = blobs()
        with pytest.warns(category) as caught:
            model(**settings).fit(X, y)
        ours = [warning for warning in caught if warning.category is category]
        assert {warning.filename for warning in ours} == {__file__}

    def test_a_budget_that_is_too_small_names_what_is_needed(self):
        X, y, _ = blobs()
        with pytest.raises(MemoryBudgetError, match=r"memory=1 KB") as caught:
            model(memory="1KB").fit(X, y)
        needed = re.search(r"[Gg]ive at least ([\d.]+ [KMG]B)", str(caught.value)).group(1)
        with pytest.raises(MemoryBudgetError, match=r"memory="):
            model(memory="500KB").fit(X, y)
        assert needed == "18.8 KB"


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )


def test_importing_biglp_loads_no_heavy_library():
    heavy = ("torch", "dask", "distributed", "mpi4py", "matplotlib")
    code = (
        "import sys, biglp, numpy as np; X = np.random.default_rng(0).normal(size=(60, 2));"
        "biglp.LowRankLabelPropagation().fit(X, np.arange(60) % 3 - 1).predict(X);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert run_python(code).stdout.strip() == "[]"


def test_public_names():
    assert biglp.__all__[-1] == "__version__"
    for name in biglp.__all__:
        assert hasattr(biglp, name)
    assert "LowRankLabelPropagation" in biglp.__all__
    visible = {
        name
        for name, value in vars(biglp).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("biglp")
    }
    assert visible <= set(biglp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'LabelSpreading'"):
        _ = biglp.LabelSpreading
