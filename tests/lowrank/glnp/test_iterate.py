"""F under any cut, any number of threads and lost memory."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biglp._core.blocks import Block, Cut, cut_rows
from biglp._engines import SerialEngine
from biglp._graph.glnp.descent import MEMORY
from glnp_tools import SOLVERS, STARTS, fitted, gathered, prepared, relative, some_rows


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_bits_on_every_engine_with_any_number_of_workers(engine, solver):
    X = some_rows(400, dtype=np.float32)
    params = {"k": 4, "solver": solver, "max_iter": 6, "rows_each": 61, "start": "uniform"}
    plain, _, F = fitted(X, **params)
    factor, _, found = fitted(X, engine=engine, **params)
    np.testing.assert_array_equal(found, F)
    assert factor.objective_ == plain.objective_


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=15, deadline=None)
@given(cuts=st.sets(st.integers(1, 1499), max_size=12), start=st.sampled_from(STARTS))
def test_any_cut_into_blocks_gives_the_same_factor(solver, cuts, start):
    X = some_rows(1500, 5, rank=3)
    centres = X[[3, 700, 1400]] if start == "clusters" else "uniform"
    params = {"k": 3, "solver": solver, "start": centres, "max_iter": 8, "tol": 0.0}
    _, _, F = fitted(X, rows_each=1500, **params)
    edges = [0, *sorted(cuts), len(X)]
    plan = Cut(len(edges) - 1)
    pieces = enumerate(pairwise(edges))
    source = prepared(X)
    blocks = [Block(source, i, first, last, plan=plan) for i, (first, last) in pieces]
    assert relative(fitted(X, blocks=blocks, **params)[2], F) < 1e-10


@pytest.mark.parametrize("solver", SOLVERS)
def test_lost_rows_are_rebuilt_with_the_same_bits(solver):
    X = some_rows(dtype=np.float32)
    factor, blocks, F = fitted(X, k=4, solver=solver, max_iter=15, tol=0.0)
    assert all(len(block.memory[MEMORY][1]) == 1 for block in blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Block, "rows", None)  # what is remembered is not computed again
        np.testing.assert_array_equal(gathered(factor, blocks), F)
    for block in blocks:
        block.memory.clear()
    np.testing.assert_array_equal(gathered(factor, blocks), F)
    blocks[1].memory.clear()
    sent = pickle.loads(pickle.dumps(factor))
    np.testing.assert_array_equal(gathered(sent, blocks), F)


class SendingEngine(SerialEngine):
    """Sends every function and block by pickle to workers that keep the memory of their blocks."""

    def __init__(self, lose=()):
        super().__init__()
        self.lose = dict(lose)  # sweep: blocks whose memory is gone before it
        self.kept, self.sent, self.most = {}, [], 0

    def results(self, func, items):
        for index in self.lose.get(len(self.sent), ()):
            assert self.kept.pop(index)
        message = pickle.dumps(func)
        self.sent.append(len(message))
        for item in items:
            there = pickle.loads(pickle.dumps(item))
            for block in getattr(there, "blocks", [there]):
                block.memory = self.kept.setdefault(block.index, {})
            yield pickle.loads(message)(there)
            for memory in self.kept.values():
                self.most = max(self.most, len(memory.get(MEMORY, ("", {}))[1]))


@pytest.mark.parametrize("solver", SOLVERS)
def test_blocks_elsewhere_give_the_same_bits_also_when_workers_are_lost(solver):
    X = some_rows(dtype=np.float32)
    params = {"k": 4, "solver": solver, "max_iter": 15, "tol": 0.0, "start": X[[1, 30, 60, 80]]}
    _, _, F = fitted(X, **params)
    faithful = SendingEngine()
    forgetful = SendingEngine({7: [0], 9: [1, 3], 12: [0, 1, 2, 3]})
    for engine in (faithful, forgetful):
        np.testing.assert_array_equal(fitted(X, engine=engine, **params)[2], F)
    assert faithful.most == (3 if solver == "gradient" else 2)
    # A sweep sends as much after 15 steps as after 5. A sweep that finds rows missing is repeated
    # with the whole recipe, and so is the reading of F at the end.
    steps = faithful.sent[7:-1]
    assert max(steps) < 1.4 * min(steps)
    assert len(forgetful.sent) - len(faithful.sent) == 3
    assert max(forgetful.sent[:-1]) > 2 * max(steps)


def test_two_fits_of_the_same_blocks_do_not_mix():
    X = some_rows()
    blocks = cut_rows(prepared(X), 25)
    params = {"blocks": blocks, "k": 3, "solver": "multiplicative", "start": "uniform"}
    one, _, first = fitted(X, max_iter=5, seed=1, **params)
    other, _, second = fitted(X, max_iter=5, seed=2, **params)
    np.testing.assert_array_equal(gathered(one, blocks), first)
    np.testing.assert_array_equal(gathered(other, blocks), second)
