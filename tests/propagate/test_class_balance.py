"""Class mass and class priors."""

import numpy as np
import pytest

import reference as ref
from biglp._algebra.balance import class_mass, given_prior, power_prior
from biglp._algebra.systems import Spectrum
from biglp._core.errors import ParameterError
from small_graphs import factor_problem, sums_of

ALPHAS = (0.01, 0.5, 0.99)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_class_mass_is_the_column_sum_of_scores(alpha):
    F, normalised, codes = factor_problem()
    sums = sums_of(normalised, codes)
    S, Y = ref.normalised_graph(F @ F.T), ref.one_hot(codes)
    coefficients = Spectrum.from_sums(sums).coefficients(alpha)
    found = class_mass(sums.counts, sums.totals @ coefficients, alpha)
    np.testing.assert_allclose(found, ref.closed_form(S, Y, alpha).sum(axis=0), rtol=1e-10)


def test_class_mass_is_never_below_that_of_the_labels():
    found = class_mass(np.array([3, 4]), np.array([-5.0, 2.0]), 0.9)
    np.testing.assert_allclose(found, [0.3, 2.4])


def test_power_prior():
    counts = np.array([1, 4, 4])
    np.testing.assert_allclose(power_prior(counts, 0.0), [1 / 3] * 3)
    np.testing.assert_allclose(power_prior(counts, 1.0), [1 / 9, 4 / 9, 4 / 9])
    np.testing.assert_allclose(power_prior(counts, 0.5), [0.2, 0.4, 0.4])


def test_given_prior_is_made_to_add_up_to_one():
    np.testing.assert_allclose(given_prior([1, 3], 2), [0.25, 0.75])


@pytest.mark.parametrize(
    "bad", [[1.0], [1, 1, 1], [0, 1], [-1, 2], [np.nan, 1], "ab", None, [[1, 1]]]
)
def test_a_prior_that_does_not_fit_is_refused(bad):
    with pytest.raises(ParameterError, match=r"class_balance=.* 2 positive numbers"):
        given_prior(bad, 2)
