"""Effort: what may be spent changes smoothly with the number of rows, and only with it."""

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core import EFFORTS
from biglp._graph import landmarks_for
from helpers import blobs

ROWS = np.unique(np.geomspace(20, 1e9, 4000).astype(int))


@pytest.mark.parametrize("name", EFFORTS)
def test_no_number_of_rows_changes_the_landmarks_or_voters_suddenly(name):
    effort = EFFORTS[name]
    counts = np.array([landmarks_for(effort, n) for n in ROWS.tolist()])
    shares, step = counts[1:] / counts[:-1], ROWS[1:] / ROWS[:-1]
    assert (np.maximum(shares, 1 / shares) <= 1.001 * step + 1 / counts[:-1]).all()
    assert (np.diff(counts.astype(float) * ROWS) >= -ROWS[1:]).all()  # more rows: never less work
    assert counts[-1] == effort.landmarks[0]
    counts = np.array([effort.voters_for(n, (1000, 20_000)) for n in ROWS.tolist()])
    assert (counts[0], counts[-1]) == (20_000, 1000)
    assert (np.diff(counts) <= 0).all()
    assert (counts[1:] * 1.001 * ROWS[1:] >= counts[:-1] * ROWS[:-1] - ROWS[:-1]).all()


def test_the_report_says_what_more_would_cost_and_bring():
    X, y, _ = blobs(n=3000, labelled=60)
    fits = {
        name: LowRankLabelPropagation(effort=name, random_state=0).fit(X, y).report_
        for name in EFFORTS
    }
    names = ("fast", "balanced", "best")
    assert [fits[name]["landmarks"] for name in names] == [1000, 1500, 1500]
    for n in (1500, 10**5, 10**6, 10**8):  # more effort is never less
        counts = [landmarks_for(EFFORTS[name], n) for name in names]
        assert counts == sorted(counts)
    assert [EFFORTS[name].trees for name in names] == [16, 64, 128]
    lines = {line["what"]: line for line in fits["fast"]["left_out"]}
    assert (lines["landmarks"]["taken"], lines["landmarks"]["of"]) == (1000, 1500)
    assert lines["landmarks"]["points"] > 0
    assert (lines["trees"]["taken"], lines["trees"]["of"]) == (16, 128)
    assert fits["best"]["left_out"] == []
    given = LowRankLabelPropagation(n_landmarks=20, random_state=0).fit(X, y).report_
    for report in (fits["balanced"], given):
        assert "landmarks" not in {line["what"] for line in report["left_out"]}
