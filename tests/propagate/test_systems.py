"""A Gram matrix taken apart: radius, spectrum, and thousands of landmarks."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp._algebra import systems as spectra
from biglp._algebra.spreading import LabelledRows, iterate, leave_one_out
from biglp._algebra.systems import Spectrum, is_sparse_rank, take_apart
from biglp._graph.normalise import Normalisation
from small_graphs import (
    anchor_problem,
    dense_of,
    factor_problem,
    scores_of,
    solve,
    sparse_sums_of,
    sums_of,
)

ALPHAS = (0.01, 0.5, 0.99)
OPPOSED = np.array([[1.0, -0.9], [-0.9, 1.0]])
"""A graph: its degrees are 0.1, so ρ(S) = 19."""
MORE_ALPHAS = (0.01, 0.5, 0.99, 0.999)


def factor_of(W):
    values, vectors = np.linalg.eigh(W)
    return vectors * np.sqrt(values)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("solver", ["closed form", "iteration"])
def test_a_spectral_radius_above_one_is_divided_out(alpha, solver):
    codes = np.array([0, 1])
    normalised, repaired = Normalisation(factor_of(OPPOSED).sum(axis=0), 2).apply(
        factor_of(OPPOSED)
    )
    spectrum = Spectrum.from_sums(sums_of(normalised, codes))
    assert repaired == 0
    assert spectrum.radius == pytest.approx(19.0)
    if solver == "iteration":
        coefficients, _ = iterate(spectrum.sums, alpha, spectrum.radius, tol=1e-13)
    else:
        coefficients = solve(spectrum.sums, alpha, spectrum.radius)
    S = OPPOSED / 0.1 / 19.0
    expected = ref.closed_form(S, np.eye(2), alpha)
    found = scores_of(normalised, codes, coefficients, alpha)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert np.isfinite(found).all()


def test_a_radius_below_one_is_left_alone():
    _, normalised, codes = factor_problem()
    spectrum = Spectrum.from_sums(sums_of(0.5 * normalised, codes))
    assert spectrum.radius == 1.0
    assert spectrum.values.max() == pytest.approx(0.25)


class TestSparseSystem:
    @pytest.mark.parametrize("alpha", MORE_ALPHAS)
    @pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
    def test_leave_one_out_is_that_of_the_spectrum(self, alpha, storage):
        features, codes = anchor_problem()
        known = np.flatnonzero(codes >= 0)
        sums = sparse_sums_of(features, codes)
        labelled = LabelledRows(storage(features[known]), codes[known])
        found = leave_one_out(take_apart(sums), labelled, alpha)
        expected = leave_one_out(Spectrum.from_sums(dense_of(sums)), labelled, alpha)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)

    def test_many_labelled_rows_are_solved_for_in_parts(self, monkeypatch):
        features, codes = anchor_problem()
        system = take_apart(sparse_sums_of(features, codes))
        at_once = system.returns(features, 0.9)
        monkeypatch.setattr(spectra, "COLUMNS_EACH", 7)
        in_parts = system.returns(features, 0.9)
        np.testing.assert_allclose(in_parts, at_once, rtol=1e-12)
        in_threads = take_apart(sparse_sums_of(features, codes), n_threads=3)
        np.testing.assert_array_equal(in_threads.returns(features, 0.9), in_parts)

    @pytest.mark.parametrize("rounding", [0.0, 1e-7, 0.01])
    def test_the_radius_is_a_close_bound(self, rounding):
        features, codes = anchor_problem()
        rng = np.random.default_rng(0)
        features *= 1.0 + rounding * rng.normal(size=(len(features), 1))
        sums = sparse_sums_of(features, codes)
        largest = np.linalg.eigvalsh(sums.gram.toarray())[-1]
        assert max(1.0, largest * (1 - 1e-14)) <= take_apart(sums).radius
        assert take_apart(sums).radius <= largest + 10 * rounding + 1e-12

    def test_which_ranks_are_sparse(self):
        assert not is_sparse_rank(2000, 5)
        assert is_sparse_rank(2001, 50)
        assert not is_sparse_rank(2001, 5000)
        assert is_sparse_rank(10_000, 1_000_000)
