"""Rows that are not numbers are counted, placed and explained."""

import numpy as np
import pytest
from scipy import sparse

from biglp._core import BadRowsError
from biglp._rows import Sample, as_source
from helpers import automatic, blobs, model

FACTORS = ("anchors", "nystrom", "linear", "glnp")
STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


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
        for size in ("SAMPLE_ROWS", "LEAST", "MOST"):
            monkeypatch.setattr(f"biglp._rows.prepared.{size}", 50)
        X, y, _ = blobs(n=2000, features=3)
        sampled = Sample(as_source(X), X.dtype, 0, 800).rows(800)
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
