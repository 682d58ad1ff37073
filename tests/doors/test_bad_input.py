"""Input that cannot be used, or hardly: an error that helps, or a correct result; never NaN."""

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BadRowsError, LabelError, ParameterError
from biglp._rows import Sample, Source, as_source
from helpers import automatic, blobs, fit_quietly, model

FACTORS = ("anchors", "nystrom", "linear", "glnp")
GRAPHS = FACTORS[:3]
STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}
COMMON = {"engine": "serial", "memory": "1GB"}
strict = pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")


class Untouched(Source):
    n_rows, n_features, dtype = 200, 5, np.dtype(np.float64)
    read = take = None


def classifier(**changes):
    return LowRankLabelPropagation(**COMMON | {"factor": "anchors"} | changes)


def regressor():
    return LowRankLabelPropagationRegressor(**COMMON)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"two-dimensional.*shape \(3,\).*Reshape your data"),
        (np.zeros((9, 3, 4)), r"X\.reshape\(len\(X\), -1\) if it has 9 rows.* 12 fea"),
        (5.0, r"two-dimensional.*shape \(\)"),
        (np.ones((0, 3)), r"0 sample\(s\).*shape=\(0, 3\).*minimum of 1.*no rows"),
        (np.ones((3, 0)), r"0 feature\(s\).*shape=\(3, 0\).*minimum of 1.*no columns"),
        (sparse.csr_matrix((0, 4)), r"0 sample\(s\)"),
        ([], r"shape \(0,\)"),
        ("absent.npy", r"there is no file .*absent\.npy"),
        ([["1", "two"], ["3", "4"]], r"must hold real numbers.*'two'.*one-hot"),
        ([[1, None], [3, 4]], r"real numbers|NaN or infinity"),
        (np.array([[1 + 2j, 0], [0, 1]]), r"real numbers.*Complex data not supported"),
        (np.array([["2020-01-01"], ["2021-01-01"]], dtype="datetime64[D]"), r"real numbers"),
    ],
)
def test_what_are_no_rows_of_numbers(X, message):
    with pytest.raises(BadRowsError, match=message):
        automatic("anchors").fit(X, [0, 1])


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("factor", FACTORS)
def test_nan_and_infinity_are_counted_and_placed(factor, storage):
    X, y, _ = blobs(dtype="float32")
    fitted = model(factor=factor, n_landmarks=8).fit(STORAGE[storage](X), y)
    X[[7, 20, 33, 46, 59, 72], 3] = [np.nan, np.inf, -np.inf] * 2
    name = {"dense": "array", "csr": "sparse matrix"}[storage]
    message = rf"NaN or infinity in 6 of 200 rows of {name} .*rows 7, 20, 33, 46, 59\).*Imputer"
    for use in (lambda rows: model(factor=factor, n_landmarks=8).fit(rows, y), fitted.predict):
        with pytest.raises(BadRowsError, match=message):
            use(STORAGE[storage](X))


@pytest.mark.parametrize("landmarks", ["kmeans", "kmeans-full", "random"])
@pytest.mark.parametrize("factor", ["anchors", "glnp"])
def test_nan_in_rows_outside_every_sample(factor, landmarks, monkeypatch):
    for size in ("SAMPLE_ROWS", "LEAST", "MOST"):
        monkeypatch.setattr(f"{Sample.__module__}.{size}", 50)
    X, y, _ = blobs(n=2000, features=3)
    sampled = Sample(as_source(X), X.dtype, 0, 800).rows(800)
    outside = np.setdiff1d(np.arange(2000), sampled)[:3]
    X[outside, 1] = np.nan
    places = ", ".join(map(str, outside))
    with pytest.raises(BadRowsError, match=rf"in 3 of 2,000 rows .*first: rows {places}\)"):
        model(factor=factor, n_landmarks=8, landmarks=landmarks).fit(X, y)


def test_huge_values_that_the_sample_missed_are_placed(monkeypatch):
    for size in ("SAMPLE_ROWS", "LEAST", "MOST"):
        monkeypatch.setattr(f"{Sample.__module__}.{size}", 50)
    X, y, _ = blobs(dtype="float32")
    sampled = Sample(as_source(X), X.dtype, 0).rows(50)
    row = int(np.setdiff1d(np.arange(200), sampled)[0])
    X[row, 0] = 1e30
    message = rf"1 of 200 rows with values too large for float32.*rows {row}\).*float64"
    for storage in STORAGE.values():
        with pytest.raises(BadRowsError, match=message):
            model().fit(storage(X), y)


def test_new_rows_that_the_model_cannot_take():
    X, y, _ = blobs(dtype="float32")
    fitted = model().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 4 features, but .* expecting 5 features"):
        fitted.predict(X[:, :4])
    with pytest.raises(ValueError, match="Reshape your data"):
        fitted.predict(X[0])
    with pytest.raises(BadRowsError, match="too large"):
        fitted.predict(np.full((1, X.shape[1]), 1e199))
    # Rows of denormal numbers were scaled up; an ordinary one is then out of range.
    X = np.linspace(0.0, 3.5e-323, 11)[:, None]
    found = fit_quietly(automatic("auto"), X, [0, 0, 1, 1, *[-1] * 7])
    with pytest.raises(BadRowsError, match=r"so far from the others|too large"):
        found.predict_proba(np.array([[0.125]]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *[
            ({"class_balance": prior}, r"class_balance=.* 3 positive numbers")
            for prior in ([0.5, 0.5], [0, 1, 1], [1, -1, 1], 0.5, None)
        ],
        ({"class_balance": [5e-324, 1.0, 1.0]}, "gives a class a share of"),
        ({"factor": "glnp", "factor_params": {"max_iter": "a"}}, "max_iter=.* cannot be used; giv"),
        ({"factor": "glnp", "factor_params": {"tol": None}}, "tol=.* cannot be used; give a"),
        ({"factor": "nystrom", "alpha": 1 - 1e-16}, "alpha=0.9999999999999999 is 1 but for round"),
    ],
)
def test_parameters_are_refused_before_any_row_is_read(settings, message):
    with pytest.raises(ParameterError, match=message):
        model(**settings).fit(Untouched(), blobs()[1])


@strict
def test_labels_weights_and_targets_beyond_reason():
    X, y, _ = blobs(n=80)
    for factor in ("auto", "linear"):
        with pytest.raises(LabelError, match=r"weight 1e\+300; give finite weights from 0 "):
            model(factor=factor).fit(X, y, sample_weight=np.full(80, 1e300))
    with pytest.raises(LabelError, match=r"type datetime64\[D\] and the classes of type int64"):
        model().fit(X, y).update_labels([70], np.array(["2020-01-01"], dtype="M8[D]"))
    with pytest.raises(LabelError, match=r"row 0.*1e\+150.*another unit"):
        regressor().fit(X, np.full(80, 1e299))


# Hard, but usable ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", FACTORS)
def test_few_rows_one_feature_and_identical_rows(factor):
    for n in (2, 3):
        X, y = np.array([[0.0, 1.0], [5.0, 6.0], [0.1, 1.2]])[:n], np.array([0, 1, -1])[:n]
        assert fit_quietly(automatic(factor), X, y).transduction_[:2].tolist() == [0, 1]
    X, y, truth = blobs(classes=2, features=2, spread=0.3)
    fitted = fit_quietly(automatic(factor), X[:, :1], y)
    assert (fitted.transduction_ == truth).mean() > (0.9 if factor in GRAPHS[:2] else 0)
    y = np.repeat([0, 1, -1], [5, 10, 45])
    for storage, value in (("dense", -7.5), ("dense", 0.0), ("csr", 1.0), ("csr", 0.0)):
        fitted = fit_quietly(automatic(factor), STORAGE[storage](np.full((60, 3), value)), y)
        rest = fitted.label_distributions_[15:]
        np.testing.assert_allclose(rest, np.tile(rest[0], (45, 1)), atol=1e-12)


@pytest.mark.parametrize("factor", ["glnp", "glnp-mu", *GRAPHS])
def test_constant_features_change_nothing(factor):
    X, y, _ = blobs(n=150)
    for scaling in ("none", "standard", "minmax"):
        if factor == "linear" and scaling == "none":  # there a constant is a similarity
            continue
        beside = np.column_stack([X, np.full(150, 1e3 if scaling == "none" else 1e12)])
        # With more landmarks than features several f of GLNP rebuild a row alike.
        chosen = {"n_landmarks": 4 if "glnp" in factor else 15, "scaling": scaling}
        plain, wide = (model(factor=factor, **chosen).fit(rows, y) for rows in (X, beside))
        np.testing.assert_array_equal(wide.transduction_, plain.transduction_)
        np.testing.assert_array_equal(wide.predict(beside), plain.predict(X))


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("factor", GRAPHS)
def test_huge_and_tiny_values(factor, storage):
    X, y, truth = blobs()
    X -= X.min()  # sparse rows are not centred, so keep zero where it is
    for dtype, sizes in (("float64", (1e200, 1e-200)), ("float32", (1e30, 1e-30))):
        expected = fit_quietly(automatic(factor), STORAGE[storage](X.astype(dtype)), y)
        for size in sizes:
            rows = STORAGE[storage]((X * size).astype(dtype))
            found = fit_quietly(automatic(factor), rows, y).transduction_
            assert (found == expected.transduction_).mean() > 0.97
            assert (found == truth).mean() > 0.8


def test_rows_in_any_memory_order_read_only_and_as_text():
    X, y, _ = blobs(dtype="float32")
    expected = model().fit(X, y).label_distributions_
    frozen = X.copy()
    frozen.flags.writeable = False
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    others = (np.asfortranarray(X), frozen, strided, X.astype(">f4"), X.tolist(), X.astype(object))
    for rows in others:
        np.testing.assert_allclose(model().fit(rows, y).label_distributions_, expected, atol=1e-5)


@strict
def test_extremes_of_numbers():
    X, y, _ = blobs(n=80, classes=2)
    huge = model(factor="auto", class_balance=[1e308, 1e308]).fit(X, y)
    plain = model(factor="auto", class_balance=[1.0, 1.0]).fit(X, y)
    np.testing.assert_array_equal(huge.label_distributions_, plain.label_distributions_)
    # Finite rows whose degree is not: no label reaches them.
    shares = classifier(factor="linear").fit(X, y).predict_proba(X[:3] * -1e250)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # SciPy divides denormal numbers by multiplying with 1 / size, which is infinite.
    X = np.zeros((14, 1))
    X[:5, 0] = [5e-324, 1e-323, 5e-324, 2e-323, 5e-324]
    y = np.where(np.arange(14) < 4, np.arange(14) % 2, -1)
    assert np.isfinite(classifier().fit(sparse.csr_matrix(X), y).label_distributions_).all()
    # By a linear kernel no training row has a degree, and new ones were divided by it.
    zeros = classifier(factor="linear").fit(np.zeros((14, 3)), y)
    new = np.random.default_rng(0).normal(size=(5, 3))
    assert len(zeros.suggest(2, new)) == 2
    assert np.isfinite(zeros.predict_proba(new)).all()
    assert classifier().suggest_first([[0.125]], 1).tolist() == [0]


@strict
def test_targets_of_any_size():
    """Squares of tiny targets are zero, and those of huge ones were infinite."""
    X = np.linspace(0, 1, 40)[:, None]
    for size in (1e-300, 1e140):
        y = np.where(np.arange(40) % 2, np.nan, np.arange(40.0) * size)
        found, plain = (regressor().fit(X, given).predict(X) for given in (y, y / size))
        np.testing.assert_allclose(found / size, plain, rtol=1e-6)
    # Squares of what is between other rows are denormal beside one far out.
    X = np.random.default_rng(0).normal(size=(35, 1)) * 1e8
    X[32] = 7e163
    y = np.full(35, np.nan)
    y[[13, 18, 24, 27]] = [0, 0, 1, -1]
    found = regressor().fit(X, y)
    assert np.isfinite(found.transduction_).all()
    assert np.isfinite(found.predict(X)).all()


@strict
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
