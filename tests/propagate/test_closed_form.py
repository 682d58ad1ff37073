"""The closed form against the dense solve."""

import numpy as np
import pytest

import reference as ref
from biglp._algebra.spreading import without_noise
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import Spectrum
from biglp._graph.normalise import Normalisation
from small_graphs import factor_problem, scores_of, solve, sums_of

ALPHAS = (0.01, 0.5, 0.99)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("signed", [False, True])
def test_closed_form_is_the_dense_solve(alpha, signed):
    F, normalised, codes = factor_problem(signed=signed)
    S = ref.normalised_graph(F @ F.T)
    expected = ref.closed_form(S, ref.one_hot(codes), alpha)
    spectrum = Spectrum.from_sums(sums_of(normalised, codes))
    for coefficients in (
        spectrum.coefficients(alpha),
        solve(spectrum.sums, alpha, spectrum.radius),
    ):
        found = scores_of(normalised, codes, coefficients, alpha)
        np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_parts_of_the_graph_without_labels_get_exact_zeros(alpha):
    # Two parts that no row ties together; the eigenvectors of a shared eigenvalue 1 mix them.
    rng = np.random.default_rng(0)
    F = np.zeros((80, 10))
    F[:40, :5], F[40:, 5:] = rng.random((40, 5)), rng.random((40, 5))
    codes = np.where(np.arange(80) < 10, np.arange(80) % 2, -1)
    normalised, _ = Normalisation(F.sum(axis=0), 80).apply(F)
    spectrum = Spectrum.from_sums(sums_of(normalised, codes))
    coefficients = solve(spectrum.sums, alpha, spectrum.radius)
    assert (coefficients[:5] > 0).all()
    assert (coefficients[5:] == 0).all()


def test_coefficients_far_from_any_label_keep_their_digits():
    # A chain of parts, each tied to the next by a weak link: scores fall by 1e-4 at each step.
    link, length, alpha = 1e-4, 30, 0.5
    H = 0.5 * np.eye(length) + link * (np.eye(length, k=1) + np.eye(length, k=-1))
    targets = np.zeros((length, 1))
    targets[0] = 1.0
    sums = GramSums(H, targets, np.ones(length), np.array([1]), 10)
    found = solve(sums, alpha, 1.0)
    step = alpha * link / (1 - 0.5 * alpha)  # the exact ratio, to first order in the link
    np.testing.assert_allclose(found[1:] / found[:-1], step, rtol=1e-6)
    assert found[-1] < 1e-100
    np.testing.assert_array_equal(without_noise(found, sums, alpha), found)


def test_noise_is_cut_only_where_signs_can_cancel():
    signed = GramSums(np.array([[0.5, -0.1], [-0.1, 0.5]]), np.eye(2), np.ones(2), np.ones(2), 5)
    coefficients = np.array([[1.0, -1e-9], [1e-17, -2.0]])
    cut = without_noise(coefficients, signed, 0.9)
    np.testing.assert_array_equal(cut, [[1.0, -1e-9], [0.0, -2.0]])
