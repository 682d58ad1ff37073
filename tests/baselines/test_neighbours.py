"""The vote of the nearest labelled rows against scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier

from biglp._core.errors import ParameterError
from helpers import blobs
from paper.baselines import NearestNeighbours


def test_only_labelled_rows_vote():
    X, y, _ = blobs()
    fitted = NearestNeighbours().fit(X, y)
    known = y >= 0
    plain = KNeighborsClassifier(5).fit(X[known], y[known])
    np.testing.assert_array_equal(fitted.transduction_[~known], plain.predict(X[~known]))
    np.testing.assert_array_equal(fitted.transduction_[known], y[known])
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))
    np.testing.assert_allclose(fitted.predict_proba(X), plain.predict_proba(X))


def test_fewer_labels_than_neighbours():
    X, y, _ = blobs(labelled=3)
    assert NearestNeighbours(n_neighbors=5).fit(X, y).predict_proba(X).max() < 0.5


def test_names_and_sparse_rows():
    X, y, _ = blobs(classes=2)
    names = np.array(["a", "b", ""])[y]
    fitted = NearestNeighbours().fit(sparse.csr_matrix(X), names)
    assert fitted.classes_.tolist() == ["a", "b"]
    codes = NearestNeighbours().fit(X, y).transduction_
    np.testing.assert_array_equal(fitted.transduction_, fitted.classes_[codes])


def test_a_number_of_neighbours_that_cannot_be_used():
    with pytest.raises(ParameterError, match="n_neighbors=0"):
        NearestNeighbours(n_neighbors=0).fit(*blobs()[:2])
