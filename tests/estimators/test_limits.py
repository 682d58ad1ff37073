"""Numbers and parameters at their limits: a finite answer or an error of ours, and no warning."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core.errors import BadRowsError, LabelError, ParameterError
from helpers import blobs

pytestmark = pytest.mark.filterwarnings("error", "ignore::biglp._core.errors.BigLPWarning")
COMMON = {"engine": "serial", "memory": "1GB"}


def classifier(**changes):
    return LowRankLabelPropagation(**COMMON | {"factor": "anchors"} | changes)


def test_sparse_rows_of_denormal_numbers():
    """SciPy divides by multiplying with 1 / size, which is infinite."""
    X = np.zeros((14, 1))
    X[:5, 0] = [5e-324, 1e-323, 5e-324, 2e-323, 5e-324]
    y = np.where(np.arange(14) < 4, np.arange(14) % 2, -1)
    shares = classifier().fit(sparse.csr_matrix(X), y).label_distributions_
    assert np.isfinite(shares).all()


@pytest.mark.parametrize("size", [1e-300, 1e140])
def test_targets_of_any_size(size):
    """Squares of tiny targets are zero, and those of huge ones were infinite."""
    X = np.linspace(0, 1, 40)[:, None]
    y = np.where(np.arange(40) % 2, np.nan, np.arange(40.0) * size)
    found = LowRankLabelPropagationRegressor(**COMMON).fit(X, y).predict(X)
    plain = LowRankLabelPropagationRegressor(**COMMON).fit(X, y / size).predict(X)
    np.testing.assert_allclose(found / size, plain, rtol=1e-6)


def test_targets_of_rows_that_are_one_beside_a_row_far_out():
    """The squares of what is between the others are denormal numbers, whose inverse is infinite."""
    X = np.random.default_rng(0).normal(size=(35, 1)) * 1e8
    X[32] = 7e163
    y = np.full(35, np.nan)
    y[[13, 18, 24, 27]] = [0, 0, 1, -1]
    model = LowRankLabelPropagationRegressor(**COMMON).fit(X, y)
    assert np.isfinite(model.transduction_).all()
    assert np.isfinite(model.predict(X)).all()


def test_targets_that_are_too_large_are_refused():
    X = np.linspace(0, 1, 10)[:, None]
    with pytest.raises(LabelError, match=r"row 0.*1e\+150.*another unit"):
        LowRankLabelPropagationRegressor(**COMMON).fit(X, np.full(10, 1e299))


def test_first_rows_of_one_or_two():
    assert classifier().suggest_first([[0.125]], 1).tolist() == [0]


@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
@pytest.mark.parametrize("share", [5e-324, 1e300])
def test_bandwidth_factors_that_leave_no_bandwidth(factor, share):
    X, y, _ = blobs(60)
    with pytest.raises(ParameterError, match=r"bandwidth_factor.*makes a bandwidth of"):
        classifier(factor=factor, factor_params={"bandwidth_factor": share}).fit(X, y)


def test_infinite_numbers_in_a_table_and_in_arrays_to_be_filled():
    table = pd.DataFrame({"x": np.where(np.arange(20) % 3, np.inf, -np.inf)})
    y = np.arange(20) % 2
    with pytest.raises(BadRowsError):
        classifier().fit(table, y)
    with pytest.raises(BadRowsError):
        classifier(missing="mean").fit(table.to_numpy(), y)


def test_a_projection_of_a_graph_is_refused():
    graph = np.ones((12, 12))
    y = np.where(np.arange(12) < 4, np.arange(12) % 2, -1)
    with pytest.raises(ParameterError, match="projection=1 cannot be used with factor='precom"):
        classifier(factor="precomputed", projection=1).fit(graph, y)


def test_suggestions_among_rows_beside_training_rows_of_zeros():
    """By a linear kernel no training row has a degree, and the new ones were divided by it."""
    y = np.where(np.arange(11) < 4, np.arange(11) % 2, -1)
    model = classifier(factor="linear").fit(np.zeros((11, 3)), y)
    new = np.random.default_rng(0).normal(size=(5, 3))
    assert len(model.suggest(2, new)) == 2
    assert np.isfinite(model.predict_proba(new)).all()


def test_the_report_of_classes_that_have_no_order():
    X, y, _ = blobs(60)
    names = np.array([1, "a", "b", "-1"], dtype=object)[y]
    assert "<html" in classifier().fit(X, names).report_html()


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
