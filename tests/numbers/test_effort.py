"""Effort: what may be spent changes smoothly with the number of rows, and only with it."""

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.size import EFFORTS, left_out
from biglp._graph.anchors import AnchorFactor
from helpers import blobs

ROWS = np.unique(np.geomspace(20, 1e9, 4000).astype(int))


@pytest.mark.parametrize("name", EFFORTS)
def test_no_number_of_rows_changes_the_landmarks_suddenly(name):
    effort = EFFORTS[name]
    counts = np.array([effort.landmarks_for(n) for n in ROWS.tolist()])
    shares = counts[1:] / counts[:-1]
    step = ROWS[1:] / ROWS[:-1]
    assert (np.maximum(shares, 1 / shares) <= 1.001 * step + 1 / counts[:-1]).all()
    pairs = counts.astype(float) * ROWS
    assert (np.diff(pairs) >= -ROWS[1:]).all()  # more rows are never less work
    assert counts[-1] == effort.landmarks[0]


@pytest.mark.parametrize("name", EFFORTS)
def test_voters_become_fewer_and_never_none(name):
    counts = np.array([EFFORTS[name].voters_for(n, (1000, 20_000)) for n in ROWS.tolist()])
    assert counts[0] == 20_000
    assert counts[-1] == 1000
    assert (np.diff(counts) <= 0).all()
    assert (counts[1:] * 1.001 * ROWS[1:] >= counts[:-1] * ROWS[:-1] - ROWS[:-1]).all()


def test_more_effort_is_never_less():
    fast, balanced, best = (EFFORTS[name] for name in ("fast", "balanced", "best"))
    for n in (1500, 20_000, 10**5, 10**6, 10**8):
        counts = [effort.landmarks_for(n) for effort in (fast, balanced, best)]
        assert counts == sorted(counts)
    assert fast.trees < balanced.trees < best.trees
    assert fast.worth > balanced.worth > best.worth


def test_small_problems_keep_the_landmarks_of_earlier_releases():
    known = {100: 50, 1500: 750, 6000: 2000, 20_000: 2000, 30_000: 3000, 60_000: 4000}
    assert {n: AnchorFactor.default_landmarks(n) for n in known} == known


def test_the_report_says_what_more_would_cost_and_bring():
    X, y, _ = blobs(n=3000, labelled=60)
    fits = {
        name: LowRankLabelPropagation(effort=name, random_state=0).fit(X, y).report_
        for name in EFFORTS
    }
    counts = [fits[name]["landmarks"] for name in ("fast", "balanced", "best")]
    assert counts == [1000, 1500, 1500]
    lines = {line["what"]: line for line in fits["fast"]["left_out"]}
    assert lines["landmarks"]["taken"] == 1000
    assert lines["landmarks"]["of"] == 1500
    assert lines["landmarks"]["points"] > 0
    assert lines["trees"] | {"seconds": 0.0} == left_out("trees", 16, 128, 0.0, None)
    assert fits["best"]["left_out"] == []
    assert "landmarks" not in {line["what"] for line in fits["balanced"]["left_out"]}
    given = LowRankLabelPropagation(n_landmarks=20, random_state=0).fit(X, y).report_
    assert "landmarks" not in {line["what"] for line in given["left_out"]}
