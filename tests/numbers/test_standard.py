"""Centre and spread of the features."""

import numpy as np

from biglp._learn.base import centre_and_spread


def test_one_scale_keeps_small_components_small():
    rows = np.random.default_rng(0).normal(size=(500, 3)) * [10.0, 1.0, 0.1]
    _, spread = centre_and_spread(rows, one_scale=True)
    assert len(set(spread)) == 1
    np.testing.assert_allclose(spread[0], np.sqrt((rows.std(axis=0) ** 2).mean()))
