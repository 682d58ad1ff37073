"""New rows beside the training rows."""

from __future__ import annotations

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._engines import SerialEngine
from biglp._fit.novelty import drift_warnings, far_rows
from biglp._rows import as_source
from helpers import blobs


def shares(shift: float, n_rows: int = 600) -> tuple[float, float | None]:
    """Share of far rows among new rows that are shifted, and the distance that tells it."""
    rows, truth = blobs(n_rows, 6, 3)[:2]
    y = np.where(np.arange(n_rows) < 60, truth, -1)
    model = LowRankLabelPropagation().fit(rows[: n_rows // 2], y[: n_rows // 2])._model
    new = as_source(rows[n_rows // 2 :] + shift)
    with SerialEngine() as engine:
        graph = model.graph(engine, new, 1 << 30)
        usual = model.report["usual_distance"]
        return far_rows(graph, usual)["far_rows"], usual


def test_rows_like_the_training_rows_are_not_far():
    share, usual = shares(0.0)
    assert usual > 0
    assert share < 0.05


def test_shifted_rows_are_far():
    assert shares(30.0)[0] > 0.9


def test_without_landmarks_nothing_is_said():
    assert far_rows(None, None) == {}
    assert drift_warnings({}) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"unknown": 0.2, "examples": ["gold"]}, "20% have unknown categories in 'x' ('gold')"),
        ({"outside": 0.5, "low": 1.0, "high": 2.0}, "50% are outside the range of 'x' (1 to 2)"),
        ({"missing": 0.4, "missing_before": 0.1}, "40% have no value in 'x', where 10% had none"),
        ({"unknown": 0.01, "examples": ["gold"]}, None),
        ({"missing": 0.15, "missing_before": 0.1}, None),
    ],
)
def test_what_is_warned_of(found, words):
    warnings = drift_warnings({"columns": {"x": found}})
    assert bool(warnings) == (words is not None)
    assert words is None or words in str(warnings[0])
