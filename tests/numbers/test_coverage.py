"""Labels from one region of the rows, and labels from everywhere."""

import numpy as np
import pytest
from scipy import sparse

from biglp._learn.accuracy import ALARM, FEWEST, unseen_share


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4000, 30)) * np.geomspace(4.0, 0.5, 30)


def share(rows, chosen, weights=None):
    weights = np.ones(len(chosen)) if weights is None else weights
    return unseen_share(rows[chosen], weights, rows[::2], seed=0)


@pytest.mark.parametrize("n", [50, 400, 3000])
def test_random_rows_come_from_everywhere(cloud, n):
    for seed in range(10):
        chosen = np.random.default_rng(seed).choice(len(cloud), n, replace=False)
        assert share(cloud, chosen) < ALARM / 1.3


@pytest.mark.parametrize("feature", [0, 2, 4])
@pytest.mark.parametrize("side", [1, -1])
def test_a_corner_is_seen(cloud, feature, side):
    values = side * cloud[:, feature]
    corner = np.flatnonzero(values > np.quantile(values, 0.8))[:50]
    assert share(cloud, corner) > ALARM
    assert share(sparse.csr_array(cloud).tocsr(), corner) > ALARM


def test_a_slanting_corner_is_seen(cloud):
    values = cloud[:, :8] @ (1.0 / cloud[:, :8].std(axis=0))
    assert share(cloud, np.flatnonzero(values > np.quantile(values, 0.8))[:60]) > ALARM


def test_labels_drawn_by_class_are_no_corner():
    rng = np.random.default_rng(1)
    large, small = rng.normal(size=(3900, 4)), rng.normal(6.0, 1.0, size=(100, 4))
    rows = rng.permutation(np.concatenate([large, small]))
    of_small = rows.mean(axis=1) > 3.0
    chosen = np.concatenate([np.flatnonzero(of_small)[:95], np.flatnonzero(~of_small)[:30]])
    weights = np.where(of_small[chosen], 100 / 95, 3900 / 30)
    assert share(rows, chosen, weights) < ALARM


def test_few_labels_say_nothing_of_it(cloud):
    assert share(cloud, np.arange(FEWEST - 1)) is None


def test_rows_that_are_all_the_same():
    rows = np.ones((100, 3))
    assert share(rows, np.arange(50)) == pytest.approx(0.5)
