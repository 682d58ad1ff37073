"""What the user is told: progress, warnings, and budgets that are too small."""

import logging
import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from biglp import LowRankLabelPropagation
from biglp._core import (
    LandmarkWarning,
    MemoryBudgetError,
    StoppedShortWarning,
    UnreachedRowsWarning,
)
from cli_tools import run_python
from helpers import blobs, model


def test_quiet_by_default(caplog, capfd):
    X, y, _ = blobs()
    with caplog.at_level(logging.INFO, logger="biglp"):
        model().fit(X, y)
    assert not caplog.messages
    assert capfd.readouterr() == ("", "")


def test_without_a_terminal_verbose_is_one_line_a_step():
    code = "import numpy as np; from biglp import LowRankLabelPropagation as L;"
    code += "X = np.random.default_rng(0).normal(size=(2000, 2));"
    code += "L(factor='nystrom', verbose=True, n_landmarks=9).fit(X, np.arange(2000) % 3 - 1)"
    lines = run_python(code).stderr.splitlines()
    steps = [line.split(": ")[1] for line in lines if line.startswith("biglp: ")]
    assert steps == ["k-means", "degrees", "Gram", "learning", "labels"]


@pytest.mark.parametrize(
    ("category", "settings"),
    [
        (LandmarkWarning, {"n_landmarks": 5000, "factor_params": {"n_nearest": 20}}),
        (UnreachedRowsWarning, {"factor": "nystrom", "bandwidth": 1e-4}),
        (StoppedShortWarning, {"solver": "iterative", "max_iter": 2}),
    ],
)
def test_warnings_point_to_the_line_that_called_fit(category, settings):
    X, y, _ = blobs()
    with pytest.warns(category) as caught:
        model(**settings).fit(X, y)
    ours = [warning for warning in caught if warning.category is category]
    assert {warning.filename for warning in ours} == {__file__}


def test_a_budget_that_is_too_small_names_what_is_needed():
    X, y, _ = blobs()
    with pytest.raises(MemoryBudgetError, match=r"memory=1 KB") as caught:
        model(memory="1KB").fit(X, y)
    needed = re.search(r"[Gg]ive at least ([\d.]+ [KMG]B)", str(caught.value)).group(1)
    with pytest.raises(MemoryBudgetError, match=r"memory="):
        model(memory="500KB").fit(X, y)
    assert "200 rows × 5 features with factor='anchors' and 20 landmarks" in str(caught.value)
    model(memory=needed).fit(X, y)


# What a warning advises exists, and helps --------------------------------------------------------


@pytest.fixture
def islands():
    X, truth = make_blobs(600, centers=[[0, 0], [30, 0], [0, 300]], cluster_std=1.0, random_state=0)
    y = np.full(600, -1)
    for j in range(2):
        y[np.flatnonzero(truth == j)[:5]] = j
    return X, y, truth


@pytest.mark.parametrize(
    ("settings", "got"),
    [
        ({}, "members of the committee that learn from labelled rows alone answered"),
        ({"factor": "anchors"}, "they got the class prior"),
        ({"factor": "anchors", "filter": "poisson"}, "they got the class prior"),
    ],
)
def test_rows_that_no_label_reaches(islands, settings, got):
    X, y, truth = islands
    estimator = LowRankLabelPropagation(**settings, random_state=0)
    with pytest.warns(UnreachedRowsWarning, match=f"200 of 600 rows .*{got}") as caught:
        estimator.fit(X, y)
    (message,) = [str(one.message) for one in caught]
    has_prior = np.ptp(estimator.label_distributions_[truth == 2], axis=0).max() < 1e-6
    assert has_prior == ("class prior" in message)
    # More landmarks and a larger alpha, which were advised before, change nothing.
    assert "landmarks" not in message
    assert "alpha" not in message
    rows = [row for row in estimator.suggest(10) if truth[row] == 2]
    assert rows
    estimator.update_labels(rows[:1], [2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (estimator.transduction_ == truth).mean() > 0.99
    assert estimator.report_["unreached_rows"] == 0
