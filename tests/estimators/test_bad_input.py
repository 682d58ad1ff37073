"""Input that cannot be used, or hardly: an error that helps, or a correct result; never NaN."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core.errors import (
    BadRowsError,
    BigLPWarning,
    LabelError,
    LandmarkWarning,
    MemoryBudgetError,
    ParameterError,
)
from biglp._lowrank.sampling import sample_indices
from helpers import blobs, model

FACTORS = ("anchors", "nystrom", "linear", "glnp")
GRAPHS = ("anchors", "nystrom", "linear")
STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


def automatic(factor):
    """An estimator that must find its own bandwidth and scaling."""
    return LowRankLabelPropagation(factor=factor, engine="serial", alpha=0.9, memory="1GB")


def fit_quietly(estimator, X, y):
    """Fit where warnings of our own are part of a correct answer, and check the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)
        estimator.fit(X, y)
    for probabilities in (estimator.label_distributions_, estimator.predict_proba(X)):
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    return estimator


class TestRowsThatAreNotNumbers:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize("factor", FACTORS)
    def test_nan_and_infinity_are_counted_and_placed(self, factor, storage, value):
        X, y, _ = blobs(dtype="float32")
        X[[7, 20, 33, 46, 59, 72], 3] = value
        name = {"dense": "array", "csr": "sparse matrix"}[storage]
        message = rf"NaN or infinity in 6 of 200 rows of {name} .*rows 7, 20, 33, 46, 59\).*Imputer"
        with pytest.raises(BadRowsError, match=message):
            model(factor=factor, n_landmarks=8).fit(STORAGE[storage](X), y)

    @pytest.mark.parametrize("landmarks", ["kmeans", "kmeans-full", "random"])
    @pytest.mark.parametrize("factor", FACTORS)
    def test_also_in_rows_outside_every_sample(self, factor, landmarks, monkeypatch):
        monkeypatch.setattr("biglp._fit.prepare.SAMPLE_ROWS", 50)
        X, y, _ = blobs(n=2000, features=3)
        sampled = np.union1d(sample_indices(2000, 50, 0), sample_indices(2000, 800, 0))
        outside = np.setdiff1d(np.arange(2000), sampled)[:3]
        X[outside, 1] = np.nan
        places = ", ".join(map(str, outside))
        with pytest.raises(BadRowsError, match=rf"in 3 of 2,000 rows .*first: rows {places}\)"):
            model(factor=factor, n_landmarks=8, landmarks=landmarks).fit(X, y)

    @pytest.mark.parametrize("factor", FACTORS)
    def test_also_in_new_rows(self, factor):
        X, y, _ = blobs()
        fitted = model(factor=factor, n_landmarks=8).fit(X, y)
        X[4] = np.nan
        with pytest.raises(BadRowsError, match=r"in 1 of 200 rows .*first: rows 4\)"):
            fitted.predict(X)

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            ([["1", "two"], ["3", "4"]], r"must hold real numbers.*'two'.*one-hot"),
            ([[1, None], [3, 4]], r"real numbers|NaN or infinity"),
            (np.array([[1 + 2j, 0], [0, 1]]), r"real numbers.*Complex data not supported"),
            (np.array([["2020-01-01"], ["2021-01-01"]], dtype="datetime64[D]"), r"real numbers"),
            (np.array([[{}, 1], [2, 3]], dtype=object), r"real numbers"),
        ],
    )
    def test_values_that_are_no_real_numbers(self, X, message):
        with pytest.raises(BadRowsError, match=message):
            automatic("anchors").fit(X, [0, 1])

    def test_objects_and_text_that_are_numbers_are_accepted(self):
        X, y, _ = blobs()
        expected = model().fit(X, y).label_distributions_
        found = model().fit(X.astype(object), y).label_distributions_
        np.testing.assert_array_equal(found, expected)


class TestShapes:
    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.ones(3), r"two-dimensional.*shape \(3,\).*Reshape your data"),
            (np.ones((3, 2, 2)), r"two-dimensional.*shape \(3, 2, 2\)"),
            (5.0, r"two-dimensional.*shape \(\)"),
            (np.ones((0, 3)), r"0 sample\(s\).*shape=\(0, 3\).*minimum of 1.*no rows"),
            (np.ones((3, 0)), r"0 feature\(s\).*shape=\(3, 0\).*minimum of 1.*no columns"),
            (sparse.csr_matrix((0, 4)), r"0 sample\(s\)"),
            ([], r"shape \(0,\)"),
        ],
    )
    def test_wrong_shapes(self, X, message):
        with pytest.raises(BadRowsError, match=message):
            automatic("anchors").fit(X, [0, 1, -1])

    def test_another_number_of_columns_than_in_fit(self):
        X, y, _ = blobs()
        fitted = model().fit(X, y)
        with pytest.raises(ValueError, match=r"X has 4 features, but .* expecting 5 features"):
            fitted.predict(X[:, :4])
        with pytest.raises(ValueError, match="Reshape your data"):
            fitted.predict(X[0])

    def test_a_file_that_is_not_there(self):
        with pytest.raises(BadRowsError, match=r"there is no file .*absent\.npy"):
            automatic("anchors").fit("absent.npy", [0, 1])

    @pytest.mark.parametrize("factor", FACTORS)
    @pytest.mark.parametrize("n", [2, 3])
    def test_as_few_rows_as_there_are_classes(self, factor, n):
        X, y = np.array([[0.0, 1.0], [5.0, 6.0], [0.1, 1.2]])[:n], np.array([0, 1, -1])[:n]
        fitted = fit_quietly(automatic(factor), X, y)
        assert fitted.transduction_[:2].tolist() == [0, 1]

    @pytest.mark.parametrize("factor", FACTORS)
    def test_one_feature(self, factor):
        X, y, truth = blobs(classes=2, features=2, spread=0.3)
        fitted = fit_quietly(automatic(factor), X[:, :1], y)
        assert (fitted.transduction_ == truth).mean() > (0.9 if factor in GRAPHS[:2] else 0)


class TestLabels:
    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (np.full(200, -1), r"none of the 200 rows has a label"),
            (np.where(np.arange(200) < 9, 1, -1), r"only one class, 1, .* 9 labelled rows"),
            (np.zeros(150), r"y has 150 entries but X has 200 rows"),
            (np.linspace(0, 1, 200), r"Unknown label type"),
            (None, r"requires y"),
        ],
    )
    def test_labels_that_cannot_be_used(self, y, message):
        with pytest.raises(LabelError, match=message):
            model().fit(blobs()[0], y)

    @pytest.mark.parametrize("prior", [[0.5, 0.5], [1, 2, 3, 4], [0, 1, 1], [1, -1, 1], 0.5, None])
    def test_a_prior_that_does_not_fit_is_refused_before_any_work(self, prior, monkeypatch):
        X, y, _ = blobs()
        monkeypatch.setattr("biglp._fit.pipeline.prepare_rows", None)  # no row is touched
        with pytest.raises(ParameterError, match=r"class_balance=.* 3 positive numbers"):
            model(class_balance=prior).fit(X, y)


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "values", "message"),
        [
            ("alpha", (0, 1, -0.1, 1.5, np.nan, "0.5", None, True), r"alpha=.* outside \(0, 1\)"),
            ("factor", ("nyström", None, 3), r"factor=.* not known; use one of auto, anchors"),
            ("solver", ("cg", None), r"solver=.* use one of closed_form, iterative"),
            (
                "class_balance",
                ("equal",),
                r"class_balance='equal' .* auto, mass, share, centre, none",
            ),
            ("n_landmarks", (0, -3, 2.5, "many", True), r"n_landmarks=.* integer of 1 or more"),
            ("bandwidth", (0, -1.0, np.inf, np.nan, "wide"), r"bandwidth=.* number above 0"),
            ("bandwidth", (1e-30, 1e200), r"bandwidth=1e[-+]\d+ is outside \["),
            ("scaling", ("robust", None), r"scaling=.* not known; use one of auto, none"),
            ("max_iter", (0, 1.5, None), r"max_iter=.* integer of 1 or more"),
            ("tol", (0, -1, "small"), r"tol=.* number above 0"),
            ("landmarks", ("grid",), r"landmarks='grid' is not known; use one of kmeans"),
            ("memory", ("plenty", "-1GB", 0), r"memory=.* not an amount of memory; use 'auto'"),
            ("device", ("gpu", None, 3), r"device=.* not known; use 'cpu', 'cuda'"),
            ("engine", ("spark", None), r"engine=.* not known; use 'serial', 'threads'"),
            ("random_state", (-1, "seed", 1.5), r"random_state=.* integer of 0 or more"),
            ("factor_params", ({"nearest": 3},), r"'nearest', which .* allowed: .*n_nearest"),
            ("factor_params", ("n_nearest",), r"factor_params='n_nearest' .* dict"),
            ("factor_params", ({"n_nearest": 0},), r"n_nearest=0 .* integer of 1 or more"),
        ],
    )
    def test_values_outside_their_range(self, name, values, message):
        X, y, _ = blobs()
        for value in values:
            with pytest.raises(ParameterError, match=message):
                model(**{name: value}).fit(X, y)

    @pytest.mark.parametrize("factor", ["anchors", "nystrom", "glnp"])
    def test_more_landmarks_than_rows(self, factor):
        X, y, _ = blobs(n=30, labelled=9)
        with pytest.warns(LandmarkWarning, match=r"n_landmarks=50 is more than the 30 rows"):
            fitted = model(factor=factor, n_landmarks=50).fit(X, y)
        assert np.isfinite(fitted.label_distributions_).all()

    @pytest.mark.parametrize("factor", ["anchors", "nystrom"])
    def test_one_landmark(self, factor):
        X, y, _ = blobs()
        fitted = fit_quietly(model(factor=factor, n_landmarks=1), X, y)
        assert (fitted.transduction_ == y)[y >= 0].all()

    def test_a_rank_too_large_for_the_budget(self):
        X, y, _ = blobs()
        with pytest.raises(MemoryBudgetError, match=r"rank 200 needs 1\.83 MB .* memory=1 MB"):
            model(n_landmarks=200, memory="1MB").fit(X, y)


class TestHardButUsable:
    @pytest.mark.parametrize("factor", FACTORS)
    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize("value", [0.0, 1.0, -7.5])
    def test_identical_rows(self, factor, storage, value):
        y = np.repeat([0, 1, -1], [5, 10, 45])
        fitted = fit_quietly(automatic(factor), STORAGE[storage](np.full((60, 3), value)), y)
        rest = fitted.label_distributions_[15:]
        np.testing.assert_allclose(rest, np.tile(rest[0], (45, 1)), atol=1e-12)

    @pytest.mark.parametrize("factor", GRAPHS)
    def test_constant_features_change_nothing(self, factor):
        X, y, _ = blobs()
        wider = np.hstack([X, np.full((200, 2), 1e3)])
        for scaling in ("none", "standard", "minmax"):
            plain = model(factor=factor, scaling=scaling, n_landmarks=15).fit(X, y)
            padded = model(factor=factor, scaling=scaling, n_landmarks=15).fit(wider, y)
            if factor == "linear" and scaling == "none":  # there a constant is a similarity
                assert np.isfinite(padded.label_distributions_).all()
                continue
            np.testing.assert_allclose(
                padded.label_distributions_, plain.label_distributions_, atol=1e-6
            )

    @pytest.mark.parametrize("factor", ["anchors", "nystrom"])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_few_distinct_rows(self, factor, dtype):
        points = np.array([[0, 0], [0, 3], [9, 0], [9, 3]], dtype=dtype)
        X, truth = np.repeat(points, 50, axis=0), np.repeat([0, 0, 1, 1], 50)
        y = np.where(np.arange(200) % 10 == 0, truth, -1)
        fitted = fit_quietly(automatic(factor), X, y)
        np.testing.assert_array_equal(fitted.transduction_, truth)
        assert fitted.report_["landmarks"] == 4
        assert fitted.report_["unreached_rows"] == 0

    @pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int32", "int64", "bool"])
    @pytest.mark.parametrize("factor", GRAPHS)
    def test_other_types_of_number(self, factor, dtype):
        X, y, _ = blobs()
        X = (np.abs(X) * 10).astype(dtype)
        fitted = fit_quietly(model(factor=factor, bandwidth=6.0), X, y)
        wide = fit_quietly(model(factor=factor, bandwidth=6.0), X.astype("float64"), y)
        np.testing.assert_allclose(
            fitted.label_distributions_, wide.label_distributions_, atol=2e-4
        )
        exact_in_single = dtype in ("float16", "int8", "uint8", "bool")
        assert fitted.label_distributions_.dtype == ("float32" if exact_in_single else "float64")

    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize(
        ("dtype", "size"),
        [("float64", 1e200), ("float64", 1e-200), ("float32", 1e30), ("float32", 1e-30)],
    )
    @pytest.mark.parametrize("factor", GRAPHS)
    def test_huge_and_tiny_values(self, factor, dtype, size, storage):
        X, y, truth = blobs()
        X -= X.min()  # sparse rows are not centred, so keep zero where it is
        expected = fit_quietly(automatic(factor), STORAGE[storage](X.astype(dtype)), y)
        fitted = fit_quietly(automatic(factor), STORAGE[storage]((X * size).astype(dtype)), y)
        same = fitted.transduction_ == expected.transduction_
        assert same.mean() > 0.97
        assert (fitted.transduction_ == truth).mean() > 0.8

    @pytest.mark.parametrize("factor", FACTORS)
    def test_one_huge_value_among_many(self, factor):
        X, y, _ = blobs(dtype="float32")
        X[50, 2] = 1e30
        fit_quietly(automatic(factor), X, y)

    def test_huge_values_that_the_sample_missed_are_placed(self, monkeypatch):
        monkeypatch.setattr("biglp._fit.prepare.SAMPLE_ROWS", 50)
        X, y, _ = blobs(dtype="float32")
        row = int(np.setdiff1d(np.arange(200), sample_indices(200, 50, 0))[0])
        X[row, 0] = 1e30
        message = rf"1 of 200 rows with values too large for float32.*rows {row}\).*float64"
        for storage in STORAGE.values():
            with pytest.raises(BadRowsError, match=message):
                model().fit(storage(X), y)
        X = X.astype("float64")
        X[row, 0] = 1e200
        with pytest.raises(BadRowsError, match=r"too large for float64 .*divide its features"):
            model().fit(X, y)

    @pytest.mark.parametrize("factor", GRAPHS)
    def test_new_rows_far_from_everything(self, factor):
        X, y, _ = blobs(dtype="float32")
        fitted = model(factor=factor).fit(X, y)
        for far in (1e4, -1e4, 1e15):
            probabilities = fitted.predict_proba(np.full((3, 5), far, dtype="float32"))
            assert np.isfinite(probabilities).all()
            np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)

    def test_rows_in_any_memory_order_and_read_only(self):
        X, y, _ = blobs(dtype="float32")
        expected = model().fit(X, y).label_distributions_
        frozen = X.copy()
        frozen.flags.writeable = False
        strided = np.repeat(X, 2, axis=1)[:, ::2]
        for rows in (np.asfortranarray(X), frozen, strided, X.astype(">f4"), X.tolist()):
            np.testing.assert_allclose(
                model().fit(rows, y).label_distributions_, expected, atol=1e-5
            )
