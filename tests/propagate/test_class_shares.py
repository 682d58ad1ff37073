"""Thresholds that make the answers as frequent as the labels."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from biglp._algebra.balance import share_offsets
from helpers import shares_of


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(50, 400),
    shares=st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5),
)
def test_offsets_give_the_shares(seed, n, shares):
    shares = np.array(shares) / np.sum(shares)
    scores = np.random.default_rng(seed).normal(size=(n, len(shares)))
    offsets = share_offsets(scores, shares)
    found = shares_of((scores - offsets).argmax(axis=1), len(shares))
    # Two classes are exact up to the row at the threshold.
    slack = 1.5 / n if len(shares) == 2 else 0.02 + 2.0 / n
    np.testing.assert_allclose(found, shares, atol=slack)


def test_rows_that_are_sorted_by_class_are_all_looked_at(monkeypatch):
    monkeypatch.setattr("biglp._algebra.balance.MOST_CELLS", 0)  # 1,000 rows at most
    order = np.sort(np.random.default_rng(0).normal(size=5000))
    scores, shares = np.column_stack([-order, order]), np.array([0.3, 0.7])
    found = shares_of((scores - share_offsets(scores, shares)).argmax(axis=1), 2)
    np.testing.assert_allclose(found, shares, atol=0.01)


def test_a_constant_on_a_class_changes_nothing():
    scores = np.random.default_rng(0).normal(size=(300, 3))
    shares, moved = np.array([0.2, 0.3, 0.5]), scores + np.array([0.0, 7.0, -3.0])
    plain, other = share_offsets(scores, shares), share_offsets(moved, shares)
    same = (scores - plain).argmax(axis=1) == (moved - other).argmax(axis=1)
    assert same.mean() > 0.98
