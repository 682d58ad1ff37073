"""A chain of all transforms: learnt in order, applied in order, stored and rebuilt."""

from __future__ import annotations

import numpy as np
import pytest

from biglp._rows import PreparedRows, as_source
from biglp._transforms import TRANSFORMS, Chain, Fill, Project, Scale

RNG = np.random.default_rng(0)
WHOLE = (RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 12)) + 5.0).astype(np.float32)
HOLES = RNG.random(WHOLE.shape) < 0.05
ROWS = np.where(HOLES, np.float32(np.nan), WHOLE)


def test_each_learns_what_those_before_it_leave():
    chain = Chain([Fill(), Scale("standard"), Project(2)]).fit(ROWS)
    means = np.nanmean(ROWS.astype(np.float64), axis=0)
    filled = np.where(HOLES, means, ROWS)
    scaled = (filled - means) / filled.std(axis=0)
    np.testing.assert_allclose(chain.transforms[0].means, means, rtol=1e-6)
    expected = scaled @ chain.transforms[2].directions
    np.testing.assert_allclose(chain.apply(ROWS), expected, rtol=1e-3, atol=1e-4)
    assert np.isnan(ROWS).any()
    assert chain.describe() == {"scaling": "standard", "directions": 2}
    assert (chain.width(12), chain.embeds) == (2, True)
    again = Chain.from_state(chain.state())
    np.testing.assert_array_equal(again.apply(ROWS), chain.apply(ROWS))


def test_on_tensors():
    torch = pytest.importorskip("torch")
    chain = Chain([Fill(), Scale("minmax"), Project(3)]).fit(ROWS)
    found = chain.apply(torch.as_tensor(ROWS))
    np.testing.assert_allclose(found.numpy(), chain.apply(ROWS), rtol=1e-4, atol=1e-5)


def test_an_empty_chain_leaves_rows_alone():
    chain = Chain.from_state(Chain().state())
    assert chain.apply(ROWS) is ROWS
    assert (chain.changes_rows, chain.keeps_sparse, chain.unit) == (False, True, False)


def test_filled_rows_are_prepared_rows():
    found = as_source(ROWS, missing="mean")
    assert isinstance(found, PreparedRows)
    np.testing.assert_array_equal(found.read(0, 300), Chain([Fill()]).fit(ROWS).apply(ROWS))


def test_names_are_those_of_the_classes():
    assert all(TRANSFORMS[name].name == name for name in TRANSFORMS)
