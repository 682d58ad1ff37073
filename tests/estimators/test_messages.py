"""What the user is told: progress, warnings, and budgets that are too small."""

import logging
import re

import pytest

from biglp._core.errors import (
    LandmarkWarning,
    MemoryBudgetError,
    StoppedShortWarning,
    UnreachedRowsWarning,
)
from cli_tools import run_python
from helpers import blobs, model, rows_in_a_block


class TestTellingTheUser:
    def test_verbose_logs_every_sweep(self, caplog):
        X, y, _ = blobs()
        with caplog.at_level(logging.INFO, logger="biglp"):
            model(factor="nystrom", verbose=True).fit(X, y)
        for sweep in ("k-means", "degrees", "Gram", "labels"):
            assert any(line.startswith(sweep) and "200 rows" in line for line in caplog.messages)

    def test_a_long_sweep_says_how_far_it_is(self, caplog, monkeypatch):
        monkeypatch.setattr("biglp._core.progress.LogTask.SECONDS_BETWEEN_LINES", 0.0)
        X, y, _ = blobs()
        with rows_in_a_block(50), caplog.at_level(logging.INFO, logger="biglp"):
            model(factor="nystrom", verbose=True).fit(X, y)
        assert any("50 % (100 of 200 rows" in line and "s left" in line for line in caplog.messages)

    def test_quiet_by_default(self, caplog, capfd):
        X, y, _ = blobs()
        with caplog.at_level(logging.INFO, logger="biglp"):
            model().fit(X, y)
        assert not caplog.messages
        assert capfd.readouterr() == ("", "")

    def test_verbose_is_seen_without_any_set_up_of_logging(self):
        code = (
            "import numpy as np; from biglp import LowRankLabelPropagation;"
            "X = np.random.default_rng(0).normal(size=(50, 2)); y = np.arange(50) % 3 - 1;"
            "LowRankLabelPropagation(verbose=True).fit(X, y)"
        )
        done = run_python(code)
        assert "biglp: labels: 50 rows in" in done.stderr

    @pytest.mark.parametrize(
        ("category", "settings"),
        [
            (LandmarkWarning, {"n_landmarks": 5000, "factor_params": {"n_nearest": 20}}),
            (UnreachedRowsWarning, {"factor": "nystrom", "bandwidth": 1e-4}),
            (StoppedShortWarning, {"solver": "iterative", "max_iter": 2}),
        ],
    )
    def test_warnings_point_to_the_line_that_called_fit(self, category, settings):
        X, y, _ = blobs()
        with pytest.warns(category) as caught:
            model(**settings).fit(X, y)
        ours = [warning for warning in caught if warning.category is category]
        assert {warning.filename for warning in ours} == {__file__}

    def test_a_budget_that_is_too_small_names_what_is_needed(self):
        X, y, _ = blobs()
        with pytest.raises(MemoryBudgetError, match=r"memory=1 KB") as caught:
            model(memory="1KB").fit(X, y)
        needed = re.search(r"[Gg]ive at least ([\d.]+ [KMG]B)", str(caught.value)).group(1)
        with pytest.raises(MemoryBudgetError, match=r"memory="):
            model(memory="500KB").fit(X, y)
        assert "200 rows × 5 features with factor='anchors' and 20 landmarks" in str(caught.value)
        model(memory=needed).fit(X, y)
