"""The iteration of the paper, in r-space."""

import numpy as np
import pytest

import reference as ref
from biglp._algebra.spreading import iterate
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import Spectrum
from biglp._core.errors import StoppedShortWarning
from small_graphs import factor_problem, scores_of, sums_of

ALPHAS = (0.01, 0.5, 0.99)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_iteration_in_r_space_is_the_iteration_on_rows(alpha):
    F, normalised, codes = factor_problem()
    spectrum = Spectrum.from_sums(sums_of(normalised, codes))
    coefficients, n_iter = iterate(spectrum.sums, alpha, spectrum.radius, tol=1e-13)
    expected = ref.iterative(ref.normalised_graph(F @ F.T), ref.one_hot(codes), alpha)
    np.testing.assert_allclose(
        scores_of(normalised, codes, coefficients, alpha), expected, atol=1e-10
    )
    assert 1 < n_iter < 10_000


def test_each_iteration_is_one_of_the_paper():
    F, normalised, codes = factor_problem()
    spectrum, Y, alpha = Spectrum.from_sums(sums_of(normalised, codes)), ref.one_hot(codes), 0.7
    S = ref.normalised_graph(F @ F.T)
    scores = Y
    for steps in range(1, 4):
        # After t steps in r-space, one more step brings F: the paper's iterate number t + 1.
        scores = alpha * S @ scores + (1 - alpha) * Y
        with pytest.warns(StoppedShortWarning, match=f"max_iter={steps} iterations"):
            coefficients, n_iter = iterate(spectrum.sums, alpha, spectrum.radius, max_iter=steps)
        assert n_iter == steps
        expected = alpha * S @ scores + (1 - alpha) * Y
        np.testing.assert_allclose(
            scores_of(normalised, codes, coefficients, alpha), expected, atol=1e-12
        )


def test_stopping_short_says_how_far_it_came_and_what_to_do():
    _, normalised, codes = factor_problem()
    spectrum = Spectrum.from_sums(sums_of(normalised, codes))
    with pytest.warns(StoppedShortWarning) as caught:
        iterate(spectrum.sums, 0.999, spectrum.radius, max_iter=5, tol=1e-9)
    message = str(caught[0].message)
    for part in ("max_iter=5", "relative change of", "1e-09", "closed_form", "alpha=0.999"):
        assert part in message


def test_tolerance_is_relative():
    _, normalised, codes = factor_problem()
    sums = sums_of(normalised, codes)
    tiny = GramSums(sums.gram, sums.targets * 1e-12, sums.totals, sums.counts, sums.n_rows)
    radius = Spectrum.from_sums(sums).radius
    large, steps = iterate(sums, 0.9, radius)
    small, same_steps = iterate(tiny, 0.9, radius)
    assert steps == same_steps
    np.testing.assert_allclose(small * 1e12, large, rtol=1e-9)


def test_labels_without_any_tie_stop_at_once():
    sums = GramSums(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.array([1, 1]), 2)
    coefficients, n_iter = iterate(sums, 0.5, 1.0)
    assert n_iter == 1
    assert not coefficients.any()
