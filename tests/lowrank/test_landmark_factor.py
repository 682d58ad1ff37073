"""The automatic bandwidth of factors on landmarks."""

import pytest

from biglp._core.errors import ParameterError
from helpers import blobs, model


@pytest.mark.parametrize("value", [0, -1.0, "wide", float("nan")])
def test_a_bandwidth_factor_is_a_positive_number(value):
    X, y, _ = blobs()
    with pytest.raises(ParameterError, match=r"bandwidth_factor=.* finite number above 0"):
        model(bandwidth="auto", factor_params={"bandwidth_factor": value}).fit(X, y)


def test_a_bandwidth_factor_multiplies_the_spacing():
    X, y, _ = blobs()
    sigma = {
        factor: model(bandwidth="auto", factor_params={"bandwidth_factor": factor})
        .fit(X, y)
        .report_["bandwidth"]
        for factor in (0.5, 1.0)
    }
    assert sigma[1.0] == pytest.approx(2 * sigma[0.5])
