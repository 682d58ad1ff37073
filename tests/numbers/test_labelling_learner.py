"""The model of the labelling page: its pool, fits from scratch and from the last one."""

from dataclasses import replace

import numpy as np
import pytest

from biglp._core import Settings, cut_rows
from biglp._engines import make_engine
from biglp._labelling.learner import Learner, PoolSource, draw_pool, pool_size
from biglp._rows import as_source
from label_tools import made_rows

PARAMETERS = {"memory": "600MB", "random_state": 0, "n_landmarks": 100}


@pytest.fixture(scope="module")
def rows():
    return made_rows(1000, 30)


@pytest.fixture(scope="module")
def learner(rows):
    with make_engine("threads", 1) as engine:
        pool = PoolSource(as_source(rows[0]), np.arange(1000))
        found = Learner(engine, Settings.without_labels(PARAMETERS), pool)
        found.first = found.prepare()
        yield found


def given(truth, rows):
    return {int(row): f"class {truth[row]}" for row in rows}


def test_a_fit_that_follows_another_says_the_same_in_the_end(learner, rows, monkeypatch):
    labels = given(rows[1], learner.first)
    first = learner.fit(labels, 1)
    labels |= given(rows[1], first.suggested)
    assert not set(first.suggested.tolist()) & set(learner.first.tolist())
    assert len(first.suggested) == 20
    assert not first.stale
    whole = learner.fit(labels, 2, first)
    assert not whole.stale  # a small pool
    monkeypatch.setattr("biglp._labelling.learner.WHOLE_ROWS", 100)
    monkeypatch.setattr("biglp._labelling.learner.BLOCKS_AT_ONCE", 1)
    monkeypatch.setattr(learner, "graph", replace_blocks(learner))
    quick = learner.fit(labels, 2, first)
    asked = [block for block in learner.graph.blocks if block not in quick.stale]
    assert len(asked) == 2
    assert len(quick.stale) == 6
    for block in learner.graph.blocks:
        source = first if block in quick.stale else whole
        part = slice(block.start, block.stop)
        np.testing.assert_allclose(quick.probabilities[part], source.probabilities[part], atol=1e-5)
    while quick.stale:
        quick = learner.complete(quick)
    np.testing.assert_allclose(quick.probabilities, whole.probabilities, atol=1e-5)
    again = learner.fit(labels, 3, quick)
    assert not set(map(id, asked)) & {
        id(block) for block in learner.graph.blocks if block not in again.stale
    }
    # A new class changes what everything is compared with.
    other = learner.fit({**labels, int(first.suggested[0]): "new"}, 4, quick)
    assert not other.stale


def replace_blocks(learner):
    return replace(learner.graph, blocks=cut_rows(learner.graph.source, 125))


def test_a_pool_has_the_labelled_rows_and_depends_on_the_seed():
    np.testing.assert_array_equal(draw_pool(10, 100, np.array([3]), 0), np.arange(10))
    rows = draw_pool(10_000, 500, np.array([7, 9_999, 7]), 0)
    assert len(set(rows.tolist())) == 500
    assert (np.diff(rows) > 0).all()
    assert {7, 9_999} <= set(rows.tolist())
    np.testing.assert_array_equal(rows, draw_pool(10_000, 500, np.array([7, 9_999]), 0))
    assert (rows != draw_pool(10_000, 500, np.array([7, 9_999]), 5)).any()
    rows = draw_pool(10_000, 500, np.arange(0, 10_000, 2), 0)  # of very many labels a part
    assert len(rows) == 500
    assert np.mean(rows % 2) > 0.2
    for n_rows, memory, size in (
        (300_000, 4 << 30, 100_000),
        (300_000, 80 << 20, (20 << 20) // 400),
        (300_000, 1 << 20, 1000),
        (300, 4 << 30, 300),
    ):
        assert pool_size(n_rows, 400.0, memory) == size
