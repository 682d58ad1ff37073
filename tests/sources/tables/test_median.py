"""The median of numbers that come a few at a time."""

from __future__ import annotations

import numpy as np
import pytest

from biglp._tables import encode_columns as module
from biglp._tables.encode_columns import Median


def median_of(values, sizes=(1,)):
    found = Median()
    for part in np.array_split(np.asarray(values, dtype=np.float64), sizes):
        found.add(part)
    return found.value


@pytest.mark.parametrize(
    "values",
    [[3.0], [1, 2], [-0.0, 0.0, -1.0], [-5, -4, 3, 8], [1e300, -1e300, 1e-300], [2.5] * 7],
)
def test_few_numbers_are_exact(values):
    assert median_of(values, 2) == np.median(values)


def test_no_numbers():
    assert Median().value is None


def test_many_numbers_in_any_order_and_cut(monkeypatch):
    monkeypatch.setattr(module, "MOST", 1 << 10)
    monkeypatch.setattr(module, "WAITING", 1 << 9)
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=20_001), np.exp(3 * rng.normal(size=20_001)) - 1):
        found = {median_of(rng.permutation(values), pieces) for pieces in (1, 7, 333)}
        assert len(found) == 1
        assert abs(found.pop() - np.median(values)) < 0.02
