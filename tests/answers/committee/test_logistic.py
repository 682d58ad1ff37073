"""Logistic regression does not depend on the units of the features."""

import numpy as np
import pytest
from scipy import sparse

from biglp._answers.committee.logistic import fit_logistic
from biglp._answers.standard import centre_and_spread
from helpers import threshold_table


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_logistic_regression_does_not_depend_on_the_features_units(make):
    rows, codes = threshold_table(60)
    units = np.array([1e-3, 1.0, 1e4, 1.0, 7.0, 1.0])
    plain = fit_logistic(make(rows), codes, 4, centre_and_spread(make(rows.astype(float))))
    other = rows * units
    scaled = fit_logistic(make(other), codes, 4, centre_and_spread(make(other)))
    np.testing.assert_allclose(plain.of(rows), scaled.of(other), atol=1e-4)
