"""Input that cannot be used, or hardly: an error that helps, or a correct result; never NaN."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BadRowsError, BigLPWarning, LabelError, ParameterError
from biglp._rows import Sample, as_source
from helpers import automatic, blobs, fit_quietly, model

FACTORS = ("anchors", "nystrom", "linear", "glnp")
GRAPHS = ("anchors", "nystrom", "linear")
STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


def test_images_are_told_to_be_rows():
    with pytest.raises(BadRowsError, match=r"X\.reshape\(len\(X\), -1\) if it has 9 rows.* 12 fea"):
        model().fit(np.zeros((9, 3, 4)), [0, 1, *[-1] * 7])


@pytest.mark.parametrize("missing", ["error", "mean", "auto"])
def test_infinite_numbers_of_both_signs_are_refused_without_a_warning(missing):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": [np.inf, np.inf, 1.0], "b": [-np.inf, np.inf, 2.0]})
    with pytest.raises(BadRowsError, match=r"infinit|finite"):
        model(missing=missing).fit(X, [0, 1, -1])


def test_new_rows_beyond_what_the_fit_can_multiply_are_refused():
    """Rows of denormal numbers were scaled up; an ordinary one is then out of range."""
    X = np.linspace(0.0, 3.5e-323, 11)[:, None]
    found = fit_quietly(automatic("auto"), X, [0, 0, 1, 1, *[-1] * 7])
    with pytest.raises(BadRowsError, match=r"so far from the others|too large"):
        found.predict_proba(np.array([[0.125]]))


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
        monkeypatch.setattr("biglp._fit.pipeline.prepare", None)  # no row is touched
        with pytest.raises(ParameterError, match=r"class_balance=.* 3 positive numbers"):
            model(class_balance=prior).fit(X, y)


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
        for size in ("SAMPLE_ROWS", "LEAST", "MOST"):
            monkeypatch.setattr(f"biglp._rows.prepared.{size}", 50)
        X, y, _ = blobs(dtype="float32")
        sampled = Sample(as_source(X), X.dtype, 0).rows(50)
        row = int(np.setdiff1d(np.arange(200), sampled)[0])
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


class TestDenseAndSparse:
    @pytest.mark.parametrize("scaling", ["standard", "minmax", "log", "table", "auto"])
    def test_rows_may_be_stored_otherwise_than_in_fit(self, scaling):
        X, y, _ = blobs(n=150)
        X = np.where(X > 0, X, 0.0)
        for a, b in ((np.asarray, sparse.csr_matrix), (sparse.csr_matrix, np.asarray)):
            fitted = model(scaling=scaling).fit(a(X), y)
            np.testing.assert_array_equal(fitted.predict(b(X)), fitted.predict(a(X)))


class TestExtremes:
    @pytest.mark.parametrize("factor", ["auto", *GRAPHS])
    def test_weights_beyond_reason(self, factor):
        X, y, _ = blobs(n=80)
        with pytest.raises(LabelError, match=r"weight 1e\+300; give finite weights from 0 "):
            model(factor=factor).fit(X, y, sample_weight=np.full(80, 1e300))

    def test_an_alpha_that_is_one_but_for_rounding(self):
        X, y, _ = blobs(n=80)
        with pytest.raises(ParameterError, match=r"alpha=0.9999999999999999 is 1 but for rounding"):
            model(factor="nystrom", alpha=1 - 1e-16).fit(X, y)

    def test_huge_class_priors_are_shares(self):
        X, y, _ = blobs(n=80, classes=2)
        huge = model(factor="auto", class_balance=[1e308, 1e308]).fit(X, y)
        plain = model(factor="auto", class_balance=[1.0, 1.0]).fit(X, y)
        np.testing.assert_array_equal(huge.label_distributions_, plain.label_distributions_)
        with pytest.raises(ParameterError, match="gives a class a share of"):
            model(class_balance=[5e-324, 1.0]).fit(X, y)

    @pytest.mark.parametrize("wrong", [{"max_iter": "a"}, {"tol": "a"}, {"tol": None}])
    def test_factor_params_of_a_wrong_type(self, wrong):
        X, y, _ = blobs(n=80)
        with pytest.raises(ParameterError, match=r"(max_iter|tol)=.* cannot be used; give a"):
            model(factor="glnp", factor_params=wrong).fit(X, y)

    def test_dates_for_integer_classes(self):
        X, y, _ = blobs(n=80)
        fitted = model().fit(X, y)
        with pytest.raises(LabelError, match=r"type datetime64\[D\] and the classes of type int64"):
            fitted.update_labels([70], np.array(["2020-01-01"], dtype="M8[D]"))

    def test_one_label_in_each_of_many_classes_warns_of_nothing_foreign(self):
        X = np.random.default_rng(0).normal(size=(200, 4))
        y = np.full(200, -1)
        y[:30] = np.arange(30)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", BigLPWarning)
            automatic("auto").fit(X, y)


@pytest.mark.parametrize("factor", ["glnp", "glnp-mu", "linear"])
def test_a_constant_column_changes_nothing(factor):
    X, y, _ = blobs(n=150)
    beside = np.column_stack([X, np.full(150, 1e12)])
    # With more landmarks than features several f rebuild a row alike, and rounding chooses one.
    plain, wide = (model(factor=factor, n_landmarks=4).fit(rows, y) for rows in (X, beside))
    np.testing.assert_array_equal(wide.transduction_, plain.transduction_)
    np.testing.assert_array_equal(wide.predict(beside), plain.predict(X))


COMMON = {"engine": "serial", "memory": "1GB"}


def classifier(**changes):
    return LowRankLabelPropagation(**COMMON | {"factor": "anchors"} | changes)


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_sparse_rows_of_denormal_numbers():
    """SciPy divides by multiplying with 1 / size, which is infinite."""
    X = np.zeros((14, 1))
    X[:5, 0] = [5e-324, 1e-323, 5e-324, 2e-323, 5e-324]
    y = np.where(np.arange(14) < 4, np.arange(14) % 2, -1)
    shares = classifier().fit(sparse.csr_matrix(X), y).label_distributions_
    assert np.isfinite(shares).all()


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("size", [1e-300, 1e140])
def test_targets_of_any_size(size):
    """Squares of tiny targets are zero, and those of huge ones were infinite."""
    X = np.linspace(0, 1, 40)[:, None]
    y = np.where(np.arange(40) % 2, np.nan, np.arange(40.0) * size)
    found = LowRankLabelPropagationRegressor(**COMMON).fit(X, y).predict(X)
    plain = LowRankLabelPropagationRegressor(**COMMON).fit(X, y / size).predict(X)
    np.testing.assert_allclose(found / size, plain, rtol=1e-6)


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_targets_of_rows_that_are_one_beside_a_row_far_out():
    """The squares of what is between the others are denormal numbers, whose inverse is infinite."""
    X = np.random.default_rng(0).normal(size=(35, 1)) * 1e8
    X[32] = 7e163
    y = np.full(35, np.nan)
    y[[13, 18, 24, 27]] = [0, 0, 1, -1]
    model = LowRankLabelPropagationRegressor(**COMMON).fit(X, y)
    assert np.isfinite(model.transduction_).all()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_targets_that_are_too_large_are_refused():
    X = np.linspace(0, 1, 10)[:, None]
    with pytest.raises(LabelError, match=r"row 0.*1e\+150.*another unit"):
        LowRankLabelPropagationRegressor(**COMMON).fit(X, np.full(10, 1e299))


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_first_rows_of_one_or_two():
    assert classifier().suggest_first([[0.125]], 1).tolist() == [0]


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
@pytest.mark.parametrize("share", [5e-324, 1e300])
def test_bandwidth_factors_that_leave_no_bandwidth(factor, share):
    X, y, _ = blobs(60)
    with pytest.raises(ParameterError, match=r"bandwidth_factor.*makes a bandwidth of"):
        classifier(factor=factor, factor_params={"bandwidth_factor": share}).fit(X, y)


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_infinite_numbers_in_a_table_and_in_arrays_to_be_filled():
    table = pd.DataFrame({"x": np.where(np.arange(20) % 3, np.inf, -np.inf)})
    y = np.arange(20) % 2
    with pytest.raises(BadRowsError):
        classifier().fit(table, y)
    with pytest.raises(BadRowsError):
        classifier(missing="mean").fit(table.to_numpy(), y)


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_a_projection_of_a_graph_is_refused():
    graph = np.ones((12, 12))
    y = np.where(np.arange(12) < 4, np.arange(12) % 2, -1)
    with pytest.raises(ParameterError, match="projection=1 cannot be used with factor='precom"):
        classifier(factor="precomputed", projection=1).fit(graph, y)


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_suggestions_among_rows_beside_training_rows_of_zeros():
    """By a linear kernel no training row has a degree, and the new ones were divided by it."""
    y = np.where(np.arange(11) < 4, np.arange(11) % 2, -1)
    model = classifier(factor="linear").fit(np.zeros((11, 3)), y)
    new = np.random.default_rng(0).normal(size=(5, 3))
    assert len(model.suggest(2, new)) == 2
    assert np.isfinite(model.predict_proba(new)).all()


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
def test_the_report_of_classes_that_have_no_order():
    X, y, _ = blobs(60)
    names = np.array([1, "a", "b", "-1"], dtype=object)[y]
    assert "<html" in classifier().fit(X, names).report_html()


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
class TestNewRows:
    def test_too_large_for_the_type_of_the_model(self):
        X, y, _ = blobs(60, dtype="float32")
        fitted = classifier().fit(X, y)
        with pytest.raises(BadRowsError, match="too large"):
            fitted.predict(np.full((1, X.shape[1]), 1e199))

    def test_sparse_where_missing_values_were_filled(self):
        X, y, _ = blobs(60)
        fitted = classifier(missing="mean").fit(X, y)
        np.testing.assert_array_equal(fitted.predict(sparse.csr_matrix(X)), fitted.predict(X))

    def test_too_large_for_their_squares(self):
        """Finite rows whose degree is not: no label reaches them."""
        X, y, _ = blobs(60)
        shares = classifier(factor="linear").fit(X, y).predict_proba(X[:3] * -1e250)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("largest", [1e308, -1e308, 1e160, 1e-308])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_words_of_any_size(largest, form):
    """Their weights made numbers of them that are none, and no directions were found."""
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((60, 4)) < 0.2, rng.normal(size=(60, 4)), 0.0)
    rows[23, 1] = largest
    if abs(largest) < 1:
        rows *= largest
    labels = np.where(np.arange(60) < 6, np.arange(60) % 2, -1)
    model = LowRankLabelPropagation(scaling="text").fit(form(rows), labels)
    assert np.isfinite(model.label_distributions_).all()
    assert np.isfinite(model.predict_proba(form(rows))).all()
