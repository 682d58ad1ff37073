"""Arrays and parameters at random: an answer without NaN, or an error that biglp means."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BigLPError, BigLPWarning
from campaign.processes import QUICK
from strategies import (
    arrays,
    labels,
    odd_numbers,
    other_rows,
    parameters,
    shared_parameters,
    targets,
    weights,
)

EXAMPLES = 25 if QUICK else 100
DEFAULT_SHARE = 0.0 if QUICK else 0.03
"""Share of problems for the default committee, which takes a hundred times as long as a graph."""
COMMON = {"engine": "serial", "memory": "1GB"}


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
        data.draw(st.sampled_from([*WAYS, classify, classify]))(data, folder)

    try:
        attack()
    except BaseException as error:
        error.tried = tried[0]  # type: ignore[attr-defined]
        raise
    return tried[0]


def classify(data: Any, folder: Path) -> None:
    """Fit, and look at the answers."""
    X, model, n = _rows(data)
    try_problem(model, X, data.draw(labels(n)), data.draw(weights(n)))


def go_on(data: Any, folder: Path) -> None:
    """Fit, and then use the model in one of the ways that it has."""
    X, model, n = _rows(data)
    y = data.draw(labels(n))
    if not try_problem(model, X, y, None):
        return
    step = data.draw(st.sampled_from(STEPS))
    with _quiet():
        step(data, folder, model, X, y)


def regress(data: Any, folder: Path) -> None:
    """Fit measured values."""
    X = data.draw(arrays())
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    chosen = data.draw(parameters(shared_parameters))
    model = LowRankLabelPropagationRegressor(**COMMON | {"factor": "anchors"} | chosen)
    y, sample_weight = data.draw(targets(n)), data.draw(weights(n))
    with _quiet():
        model.fit(X, y, sample_weight)
        for found in (model.transduction_, model.predict(X)):
            assert np.isfinite(found).all(), "values are not finite"


def graph_of_ones_own(data: Any, folder: Path) -> None:
    """Similarities between rows instead of rows."""
    X = data.draw(arrays())
    with np.errstate(all="ignore"):
        if hasattr(X, "toarray"):
            graph = abs(X @ X.T)
        else:
            try:
                rows = np.asarray(X, dtype=float)
            except (TypeError, ValueError):  # a table of texts
                return
            graph = np.abs(rows @ rows.T)
    n = graph.shape[0]
    chosen = data.draw(parameters()) | {"factor": "precomputed", "factor_params": None}
    model = LowRankLabelPropagation(**COMMON | chosen)
    try_problem(model, graph, data.draw(labels(n)), data.draw(weights(n)))


def first_rows(data: Any, folder: Path) -> None:
    """Rows to label before there is a label."""
    X, model, n = _rows(data)
    count = data.draw(st.one_of(st.integers(1, 70), odd_numbers))
    with _quiet():
        rows = model.suggest_first(X, count)
        assert len(set(rows)) == len(rows) <= n
        assert ((rows >= 0) & (rows < n)).all()


WAYS = (classify, go_on, regress, graph_of_ones_own, first_rows)


def _rows(data: Any) -> tuple[Any, LowRankLabelPropagation, int]:
    """Rows, and an estimator for them."""
    X = data.draw(arrays())
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    chosen = data.draw(parameters())
    if "factor" not in chosen and data.draw(st.floats(0, 1)) > DEFAULT_SHARE:
        chosen["factor"] = "anchors"
    return X, LowRankLabelPropagation(**COMMON | chosen), n


NAMES = "X does not have valid feature names"
"""What estimators of scikit-learn say that were fitted to a data frame and get an array."""


class _quiet:  # noqa: N801
    """Lets biglp's errors and warnings pass, and makes a failure of every foreign warning."""

    def __enter__(self) -> _quiet:
        self.refused = False
        self._catching = warnings.catch_warnings(record=True)
        self._caught = self._catching.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self._catching.__exit__(kind, error, trace)
        self.refused = isinstance(error, BigLPError)
        if error is None or self.refused:
            foreign = [
                each
                for each in self._caught
                if not issubclass(each.category, BigLPWarning) and NAMES not in str(each.message)
            ]
            assert not foreign, f"leaked: {foreign[0]}"
        return self.refused


def try_problem(model: LowRankLabelPropagation, X: Any, y: Any, sample_weight: Any) -> bool:
    """Fit and predict; return False where it was refused."""
    with _quiet() as tried:
        model.fit(X, y, sample_weight)
        check_labels(model, model.transduction_, model.label_distributions_)
        check_labels(model, model.predict(X), model.predict_proba(X))
    return not tried.refused


def check_labels(model: LowRankLabelPropagation, found: Any, shares: Any) -> None:
    """Labels must be classes, and probabilities be some."""
    assert np.isin(found, model.classes_).all(), f"labels {set(found) - set(model.classes_)}"
    assert np.isfinite(shares).all(), "probabilities are not finite"
    assert (shares >= 0).all(), "negative probabilities"
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)


def _new_rows(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    rows = data.draw(other_rows(model.n_features_in_))
    check_labels(model, model.predict(rows), model.predict_proba(rows))
    model.predict_top(rows, data.draw(st.one_of(st.just(1), odd_numbers)))


def _suggest(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    rows = model.suggest(data.draw(st.one_of(st.integers(1, 70), odd_numbers)))
    n = len(model.transduction_)
    assert ((rows >= 0) & (rows < n)).all()
    assert len(set(rows)) == len(rows)
    model.suggest(2, data.draw(other_rows(model.n_features_in_)))


def _update(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    n = len(model.transduction_)
    rows = data.draw(st.lists(st.one_of(st.integers(0, n - 1), st.integers(-2, n)), max_size=5))
    new = data.draw(labels(max(len(rows), 1)))[: len(rows)]
    model.update_labels(rows, new)
    check_labels(model, model.transduction_, model.label_distributions_)
    check_labels(model, model.predict(X), model.predict_proba(X))


def _kept(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    model.save(folder / "model.biglp")
    loaded = LowRankLabelPropagation.load(folder / "model.biglp")
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert (other.predict(X) == model.predict(X)).all(), "a copy has other labels"


def _doubts(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    model.doubtful_labels(data.draw(st.one_of(st.none(), odd_numbers)))
    assert "nan" not in str(model.report_), str(model.report_)
    assert "<html" in model.report_html()
    model.score(X, y)


STEPS: tuple[Callable[..., None], ...] = (_new_rows, _new_rows, _suggest, _update, _kept, _doubts)
