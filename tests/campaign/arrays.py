"""Arrays and parameters at random: an answer without NaN, or an error that biglp means."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from biglp import LowRankLabelPropagation
from biglp._core.errors import BigLPError, BigLPWarning
from campaign.processes import QUICK
from strategies import arrays, labels, parameters, weights

EXAMPLES = 25 if QUICK else 60
DEFAULT_SHARE = 0.0 if QUICK else 0.05
"""Share of problems for the default committee, which takes a hundred times as long as a graph."""


def problems(number: int, folder: Path) -> int:
    """Try some tens of problems; a failing one is made as small as it can be."""
    tried = [0]

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
    )
    @given(st.data())
    def attack(data: Any) -> None:
        tried[0] += 1
        X = data.draw(arrays())
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        given_parameters = data.draw(parameters)
        if "factor" not in given_parameters and data.draw(st.floats(0, 1)) > DEFAULT_SHARE:
            given_parameters["factor"] = "anchors"
        try_problem(X, data.draw(labels(n)), data.draw(weights(n)), given_parameters)

    try:
        attack()
    except BaseException as error:
        error.tried = tried[0]  # type: ignore[attr-defined]
        raise
    return tried[0]


def try_problem(X: Any, y: Any, sample_weight: Any, chosen: dict[str, Any]) -> None:
    """Fit and predict, with every foreign warning as an error."""
    model = LowRankLabelPropagation(**{"engine": "serial", "memory": "1GB", **chosen})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, sample_weight)
            found = model.transduction_
            new = model.predict(X)
            shares = model.predict_proba(X)
        except BigLPError:
            found = None
    foreign = [each for each in caught if not issubclass(each.category, BigLPWarning)]
    assert not foreign, f"leaked: {foreign[0].category.__name__}: {foreign[0].message}"
    if found is None:
        return
    assert np.isin(found, model.classes_).all(), f"labels {set(found) - set(model.classes_)}"
    assert np.isin(new, model.classes_).all()
    assert np.isfinite(shares).all(), "probabilities are not finite"
    assert (shares >= 0).all(), "negative probabilities"
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)
