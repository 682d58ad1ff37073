"""The model of the loop: fits from scratch and from the last one, rows that are added."""

from dataclasses import replace

import numpy as np
import pytest

from biglp._core.blocks import cut_rows
from biglp._core.settings import Settings
from biglp._engines import make_engine
from biglp._labelling import learner as module
from biglp._labelling.learner import Learner, PoolSource
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


def test_suggestions_are_new_rows(learner, rows):
    labels = given(rows[1], learner.first)
    fit = learner.fit(labels, 1)
    assert not fit.stale
    assert len(fit.suggested) == 20
    assert not set(fit.suggested.tolist()) & set(labels)


def test_a_fit_that_follows_another_says_the_same_in_the_end(learner, rows, monkeypatch):
    labels = given(rows[1], learner.first)
    first = learner.fit(labels, 1)
    labels |= given(rows[1], first.suggested)
    whole = learner.fit(labels, 2, first)
    assert not whole.stale  # a small pool
    monkeypatch.setattr(module, "WHOLE_ROWS", 100)
    monkeypatch.setattr(module, "BLOCKS_AT_ONCE", 1)
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
    """The same graph in eight blocks."""
    return replace(learner.graph, blocks=cut_rows(learner.graph.source, 125))


def test_labels_of_other_rows_count_as_if_they_had_been_there(rows):
    X, truth = rows
    with make_engine("threads", 1) as engine:
        settings = Settings.without_labels(PARAMETERS)
        some = Learner(engine, settings, PoolSource(as_source(X), np.arange(900)))
        chosen = some.prepare()
        labels = given(truth, [*chosen, *range(900, 960)])
        fit = some.fit(labels, 1)
        assert some.pool.n_rows == 960
        assert fit.probabilities.shape == (960, 3)
        right = np.array(fit.classes)[fit.probabilities.argmax(axis=1)]
        assert np.mean(right == [f"class {code}" for code in truth[:960]]) > 0.98
        stored = X[990:991]
        assert fit.shares_of(stored).sum() == pytest.approx(1, abs=1e-4)


def test_a_wrong_label_is_in_doubt(learner, rows):
    truth = rows[1]
    labels = given(truth, learner.first)
    labels |= given(truth, range(100, 140))
    labels[100] = f"class {(truth[100] + 1) % 3}"
    doubts = learner.fit(labels, 1).doubts
    assert doubts[0]["row"] == 100
    assert doubts[0]["suggested"] == f"class {truth[100]}"
    assert doubts[0]["probability"] > 0.5
