"""Docstrings name every value that is allowed."""

import pytest

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core.parameters import PARAMETERS
from biglp._graph import FACTORS
from biglp._transforms import SCALINGS


@pytest.mark.parametrize("estimator", [LowRankLabelPropagation, LowRankLabelPropagationRegressor])
def test_factors_and_scalings(estimator):
    assert [name for name in (*FACTORS, *SCALINGS) if f'"{name}"' not in estimator.__doc__] == []


def test_first_hour_docs_class_balances_and_filters():
    known = [word for name in ("class_balance", "filter") for word in PARAMETERS[name].words]
    assert [name for name in known if f'"{name}"' not in LowRankLabelPropagation.__doc__] == []


def test_finer_settings_of_the_factors():
    known = {name for factor in FACTORS for name in FACTORS[factor].params}
    assert [name for name in known if f"``{name}``" not in LowRankLabelPropagation.__doc__] == []
