"""Arrays and parameters at random: an answer without NaN, or an error that biglp means."""

import copy
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import strategies as drawn
from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core import BigLPError, BigLPWarning
from campaign.processes import QUICK

EXAMPLES = 25 if QUICK else 100
DEFAULT_SHARE = 0.0 if QUICK else 0.03
"""Share of problems for the default committee, which takes a hundred times as long as a graph."""
COMMON = {"engine": "serial", "memory": "1GB"}
NAMES = "X does not have valid feature names"
"""What estimators of scikit-learn say that were fitted to a data frame and get an array."""


def problems(number: int, folder: Path) -> int:
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


@contextmanager
def _quiet() -> Iterator[SimpleNamespace]:
    found = SimpleNamespace(refused=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield found
        except BigLPError:
            found.refused = True
    for each in caught:
        known = issubclass(each.category, BigLPWarning) or NAMES in str(each.message)
        assert known, f"leaked: {each}"


def _size(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _rows(data: Any) -> tuple[Any, LowRankLabelPropagation, int]:
    X, chosen = data.draw(drawn.arrays()), data.draw(drawn.parameters())
    if "factor" not in chosen and data.draw(st.floats(0, 1)) > DEFAULT_SHARE:
        chosen["factor"] = "anchors"
    return X, LowRankLabelPropagation(**COMMON | chosen), _size(X)


def _fit(model: LowRankLabelPropagation, X: Any, y: Any, sample_weight: Any) -> bool:
    with _quiet() as tried:
        model.fit(X, y, sample_weight)
        _check(model, model.transduction_, model.label_distributions_)
        _check(model, model.predict(X), model.predict_proba(X))
    return not tried.refused


def _check(model: LowRankLabelPropagation, found: Any, shares: Any) -> None:
    assert np.isin(found, model.classes_).all(), f"labels {set(found) - set(model.classes_)}"
    assert np.isfinite(shares).all(), "probabilities are not finite"
    assert (shares >= 0).all(), "negative probabilities"
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)


def classify(data: Any, folder: Path) -> None:
    X, model, n = _rows(data)
    _fit(model, X, data.draw(drawn.labels(n)), data.draw(drawn.weights(n)))


def go_on(data: Any, folder: Path) -> None:
    X, model, n = _rows(data)
    y = data.draw(drawn.labels(n))
    if _fit(model, X, y, None):
        step = data.draw(st.sampled_from(STEPS))
        with _quiet():
            step(data, folder, model, X, y)


def regress(data: Any, folder: Path) -> None:
    X = data.draw(drawn.arrays())
    chosen = data.draw(drawn.parameters(drawn.shared_parameters))
    model = LowRankLabelPropagationRegressor(**COMMON | {"factor": "anchors"} | chosen)
    y, sample_weight = data.draw(drawn.targets(_size(X))), data.draw(drawn.weights(_size(X)))
    with _quiet():
        model.fit(X, y, sample_weight)
        for found in (model.transduction_, model.predict(X)):
            assert np.isfinite(found).all(), "values are not finite"


def graph_of_ones_own(data: Any, folder: Path) -> None:
    X = data.draw(drawn.arrays())
    with np.errstate(all="ignore"):
        try:
            rows = X if hasattr(X, "toarray") else np.asarray(X, dtype=float)
        except (TypeError, ValueError):  # a table of texts
            return
        graph = abs(rows @ rows.T)
    n = graph.shape[0]
    chosen = data.draw(drawn.parameters()) | {"factor": "precomputed", "factor_params": None}
    model = LowRankLabelPropagation(**COMMON | chosen)
    _fit(model, graph, data.draw(drawn.labels(n)), data.draw(drawn.weights(n)))


def first_rows(data: Any, folder: Path) -> None:
    X, model, n = _rows(data)
    count = data.draw(st.one_of(st.integers(1, 70), drawn.odd_numbers))
    with _quiet():
        rows = model.suggest_first(X, count)
        assert len(set(rows)) == len(rows) <= n
        assert ((rows >= 0) & (rows < n)).all()


WAYS = (classify, go_on, regress, graph_of_ones_own, first_rows)


def _new_rows(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    rows = data.draw(drawn.other_rows(model.n_features_in_))
    _check(model, model.predict(rows), model.predict_proba(rows))
    model.predict_top(rows, data.draw(st.one_of(st.just(1), drawn.odd_numbers)))


def _suggest(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    rows = model.suggest(data.draw(st.one_of(st.integers(1, 70), drawn.odd_numbers)))
    assert ((rows >= 0) & (rows < len(model.transduction_))).all()
    assert len(set(rows)) == len(rows)
    model.suggest(2, data.draw(drawn.other_rows(model.n_features_in_)))


def _update(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    n = len(model.transduction_)
    rows = data.draw(st.lists(st.one_of(st.integers(0, n - 1), st.integers(-2, n)), max_size=5))
    model.update_labels(rows, data.draw(drawn.labels(max(len(rows), 1)))[: len(rows)])
    _check(model, model.transduction_, model.label_distributions_)
    _check(model, model.predict(X), model.predict_proba(X))


def _kept(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    model.save(folder / "model.biglp")
    loaded = LowRankLabelPropagation.load(folder / "model.biglp")
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert (other.predict(X) == model.predict(X)).all(), "a copy has other labels"


def _doubts(data: Any, folder: Path, model: Any, X: Any, y: Any) -> None:
    model.doubtful_labels(data.draw(st.one_of(st.none(), drawn.odd_numbers)))
    assert "nan" not in str(model.report_), str(model.report_)
    assert "<html" in model.report_html()
    model.score(X, y)


STEPS: tuple[Callable[..., None], ...] = (_new_rows, _new_rows, _suggest, _update, _kept, _doubts)
