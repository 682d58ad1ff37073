"""Tables whose numbers, clocks and dates are written as people write them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from biglp import LowRankLabelPropagation
from cli_tools import done

N = 600


def two_tables(seed):
    """The same table with clean numbers and as people write it, and the classes of its rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, N)
    price = np.round(np.exp(rng.normal(6 + 0.8 * truth, 0.4)), 2)
    share = np.round(rng.normal(40 + 15 * truth, 8), 1)
    metres = np.round(rng.uniform(200, 4000, N) * (1 + (truth == 1))).astype(int)
    change = np.round(rng.normal(truth - 1, 1), 2)
    minutes = np.clip(rng.normal(600 + 150 * (truth == 2), 90), 0, 1439).astype(int)
    days = (rng.normal(100 * truth, 60)).astype(int)
    dates = pd.Timestamp("2021-06-01") + pd.to_timedelta(days, unit="D")
    clean = {"price": price, "share": share, "distance": metres / 1000, "change": change}
    clean |= {"starts": minutes / 60, "since": dates}
    written = pd.DataFrame(
        {
            "price": [f"${value:,.2f}" for value in price],
            "share": [f"{value}%" for value in share],
            "distance": [f"{m} m" if m < 1000 else f"{m / 1000:.3f} km" for m in metres],
            "change": [f"({-value:.2f})" if value < 0 else f"{value:.2f}" for value in change],
            "starts": [f"{m // 60}:{m % 60:02}" for m in minutes],
            "since": dates.strftime("%d %b %Y"),
        }
    )
    return pd.DataFrame(clean), written, truth


@pytest.mark.parametrize("seed", range(2))
def test_written_numbers_are_as_good_as_clean_ones(seed):
    clean, written, truth = two_tables(seed)
    y = np.where(np.arange(N) < 60, truth, -1)
    right = [
        (LowRankLabelPropagation(random_state=0).fit(X, y).transduction_ == truth)[60:].mean()
        for X in (clean, written)
    ]
    assert right[0] > 0.7
    assert abs(right[0] - right[1]) < 0.01


def test_the_command_line_tells_how_they_are_written(tmp_path):
    _, written, truth = two_tables(0)
    written["class"] = np.where(np.arange(N) < 60, truth.astype(str), "")
    written.to_csv(tmp_path / "rows.csv", index=False)
    shown = done("inspect", tmp_path / "rows.csv", "--label-column", "class").stdout
    assert all(f"written as text (in {unit})" in shown for unit in ("$", "%", "km"))
    done("fit", tmp_path / "rows.csv", "--label-column", "class", "-o", tmp_path / "out")
    model = tmp_path / "out" / "model.biglp"
    new = written.drop(columns="class").head(50)
    new.loc[0, "price"] = "on request"  # one that is no number is a missing one
    new.to_csv(tmp_path / "new.csv", index=False)
    done("predict", model, tmp_path / "new.csv", "-o", tmp_path / "labels.csv")
    labels = pd.read_csv(tmp_path / "labels.csv").iloc[:, -1]
    assert len(labels) == 50
