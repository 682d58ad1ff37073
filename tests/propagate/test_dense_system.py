"""Factors of I − αH for a few α: the numbers of all eigenvectors, and when they are taken."""

import numpy as np
import pytest
from scipy import sparse

from biglp._algebra import systems
from biglp._algebra import systems as dense_system
from biglp._algebra.spreading import LabelledRows, leave_one_out
from biglp._algebra.systems import (
    MOST_LABELLED,
    MOST_SOLVED,
    Cholesky,
    DenseSystem,
    SparseSystem,
    Spectrum,
    is_factored,
    take_apart,
)
from small_graphs import anchor_problem, dense_of, sparse_sums_of


@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99, 0.999])
@pytest.mark.parametrize("few_labels", [True, False])
@pytest.mark.parametrize("features_as", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sums_as", [dense_of, lambda sums: sums])
def test_leave_one_out_is_that_of_the_spectrum(
    alpha, few_labels, features_as, sums_as, monkeypatch
):
    monkeypatch.setattr(dense_system, "DENSE_ROWS_AT_ONCE", 7)
    features, codes = anchor_problem()
    sums = sparse_sums_of(features, codes)
    rows = np.flatnonzero(codes >= 0)
    if not few_labels:  # more than the two thirds of the landmarks from which L⁻¹ is found
        rows = np.arange(len(codes))
    labelled = LabelledRows(features_as(features[rows]), np.maximum(codes[rows], 0))
    system = DenseSystem(1.0, sums_as(sums))
    expected = leave_one_out(Spectrum.from_sums(dense_of(sums)), labelled, alpha)
    for one, other in zip(leave_one_out(system, labelled, alpha), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)


def test_many_labelled_rows_take_one_inverse_and_no_solve_each(monkeypatch):
    features, codes = anchor_problem()
    system = DenseSystem(1.0, dense_of(sparse_sums_of(features, codes)))
    found = system.returns(features, 0.9)  # dense features: solved for
    monkeypatch.setattr(Cholesky, "half", None)
    np.testing.assert_allclose(system.returns(sparse.csr_array(features), 0.9), found, rtol=1e-12)


def test_which_systems_are_factorised(monkeypatch):
    monkeypatch.setattr(systems, "FACTOR_RANK", 10)
    sums = sparse_sums_of(*anchor_problem())
    many = len(sums.totals) + 1
    assert isinstance(take_apart(dense_of(sums), many - 1), DenseSystem)
    assert isinstance(take_apart(dense_of(sums), many), Spectrum)  # for as many α as one likes
    assert isinstance(take_apart(dense_of(sums), many, few_alphas=True), DenseSystem)
    assert isinstance(take_apart(sums, many, few_alphas=True), DenseSystem)
    assert isinstance(take_apart(sums), SparseSystem)
    monkeypatch.setattr(systems, "MOST_FACTORED", many - 2)
    assert isinstance(take_apart(sums, many, few_alphas=True), SparseSystem)


def test_a_factor_is_made_where_labels_or_classes_are_many():
    cells = 60 * 4000
    assert not is_factored(4000, 20, 5, cells)
    assert is_factored(4000, 500, 5, cells)
    assert is_factored(4000, 20, 200, cells)
    assert is_factored(2500, 200, 4, 280_000)
    assert not is_factored(8000, 1000, 10, 60 * 8000)


def test_labels_that_are_looked_at():
    sums = sparse_sums_of(*anchor_problem())
    assert DenseSystem(1.0, sums).most_labelled == MOST_SOLVED
    assert DenseSystem(1.0, dense_of(sums)).most_labelled == MOST_LABELLED
