"""What every engine promises, tested with one body on every engine; and how rows are cut.

test_engines_mpi.py runs this file again under mpiexec.
"""

import math
import pickle
import threading
from copy import deepcopy
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from biglp._core import (
    BadRowsError,
    MemoryBudgetError,
    ParameterError,
    Progress,
    Task,
    cut_rows,
    rows_per_block,
)
from biglp._engines import SerialEngine, Slices, ThreadEngine, make_engine
from biglp._rows import as_source

WIDE = 1500  # a sparse matrix of this width is too large to be added as a dense one


def bits(results):
    return [
        (sparse.csr_array(r).toarray() if sparse.issparse(r) else np.asarray(r)).tobytes()
        for r in results
    ]


def blocks_of(n_rows, rows_each, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.integers(-9, 9, (n_rows, 1))
    return cut_rows(as_source(rows.astype(np.float32)), rows_each)


def moments(block):
    rows = block.rows()
    cells = (rows[:, 0], (np.arange(len(rows)) * 7 % WIDE, np.full(len(rows), block.index % WIDE)))
    return (
        rows.T @ rows,
        rows.sum(0, dtype=np.float64) / 3,
        rows.sum(),
        sparse.csr_matrix(rows.T @ rows * (rows[:5].T > 0)[:, :1]),
        sparse.coo_array(cells, shape=(WIDE, WIDE)).tocsr(),
    )


def visits(block):
    block.memory["visits"] = block.memory.get("visits", 0) + 1
    return block.index, block.memory["visits"]


def fail_at(block, index: int):
    if block.index == index:
        raise BadRowsError(f"block {index} is bad")
    return (np.ones(3),)


class CountingProgress(Progress):
    def __init__(self):
        self.rows = {}

    def start(self, label, n_rows):
        progress = self

        class Counting(Task):
            def advance(self, rows):
                progress.rows[self.label] = progress.rows.get(self.label, 0) + rows

        return Counting(label, n_rows)


class TestEveryEngine:
    @pytest.mark.parametrize(("n_rows", "rows_each"), [(1, 1), (3, 1), (1000, 40), (1500, 5)])
    def test_sums_have_the_same_bits(self, engine, n_rows, rows_each):
        blocks = blocks_of(n_rows, rows_each)
        sums = engine.sum_blocks(moments, blocks, label="moments")
        assert bits(sums) == bits(SerialEngine().sum_blocks(moments, blocks))
        assert all(total.dtype == np.float64 for total in sums)
        assert sparse.isspmatrix_csr(sums[3])
        assert isinstance(sums[4], sparse.csr_array)

    def test_maps_are_in_block_order_and_no_blocks_are_no_answer(self, engine):
        assert engine.sum_blocks(moments, []) == ()
        assert engine.map_blocks(_span, []) == []
        blocks = blocks_of(900, 5)
        assert engine.map_blocks(_span, blocks) == [(b.start, b.stop) for b in blocks]
        some = blocks[::7]
        assert engine.map_blocks(_span, some) == [(b.start, b.stop) for b in some]

    def test_a_block_finds_its_memory_again(self, engine):
        blocks, others = blocks_of(700, 5), blocks_of(70, 10)
        for sweep in (1, 2):
            assert engine.map_blocks(visits, blocks) == [(b.index, sweep) for b in blocks]
        assert engine.map_blocks(visits, blocks[100:]) == [(b.index, 3) for b in blocks[100:]]
        assert engine.map_blocks(visits, others) == [(b.index, 1) for b in others]
        counts = engine.map_blocks(visits, blocks)
        assert counts == [(b.index, 4 if b.index >= 100 else 3) for b in blocks]

    @pytest.mark.parametrize("index", [0, 57, 139])
    def test_an_error_is_raised_everywhere_and_is_not_the_end(self, engine, index):
        blocks = blocks_of(700, 5)
        with pytest.raises(BadRowsError, match=f"block {index} is bad"):
            engine.sum_blocks(partial(fail_at, index=index), blocks)
        with pytest.raises(BadRowsError, match=f"block {index} is bad"):
            engine.map_blocks(partial(fail_at, index=index), blocks)
        (total,) = engine.sum_blocks(partial(fail_at, index=-1), blocks)
        assert total.tolist() == [140.0] * 3
        assert engine.once(lambda: 7) == 7
        with pytest.raises(BadRowsError, match="not here"):
            engine.once(_raise)

    def test_shapes_must_agree(self, engine):
        with pytest.raises(ValueError, match="cannot be added"):
            engine.sum_blocks(_ragged, blocks_of(30, 10))

    def test_progress_counts_the_rows_of_all(self, engine):
        engine.progress = counting = CountingProgress()
        engine.sum_blocks(moments, blocks_of(700, 5), label="a")
        engine.map_blocks(visits, blocks_of(70, 30), label="b")
        engine.progress = Progress()
        assert counting.rows == ({"a": 700, "b": 70} if engine.is_root else {})


def _span(block):
    return block.start, block.stop


def _ragged(block):
    return (np.ones(2 + (block.index == 2)),)


def _raise():
    raise BadRowsError("not here")


numbers = st.floats(allow_nan=False, min_value=-1e290, max_value=1e290)


class TestExactSums:
    @given(st.lists(numbers, min_size=1, max_size=30), st.randoms(use_true_random=False))
    @settings(deadline=None, max_examples=200)
    def test_any_order_and_grouping_gives_the_same_bits(self, values, random):
        expected = Slices(1)
        for value in values:
            expected.add(np.array([value]))
        random.shuffle(values)
        groups = [Slices(1) for _ in range(random.randint(1, 4))]
        for value in values:
            random.choice(groups).add(np.array([value]))
        random.shuffle(groups)
        for group in groups[1:]:
            groups[0].merge(group)
        assert groups[0].values().tobytes() == expected.values().tobytes()

    @given(st.lists(numbers, min_size=1, max_size=30))
    @settings(deadline=None, max_examples=200)
    def test_error_bound(self, values):
        total = Slices(1)
        for value in values:
            total.add(np.array([value]))
        exact = sum(map(Fraction, values))
        got = Fraction(float(total.values()[0]))
        largest = max(abs(Fraction(value)) for value in values)
        lost = len(values) * max(largest / 2**65, Fraction(2) ** -1057)
        assert abs(got - exact) <= lost + Fraction(math.ulp(float(exact)))

    def test_what_is_not_finite_becomes_nan_in_its_place(self):
        for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
            total = Slices(4)
            rows = np.array([[np.inf, 1, 1e300, -0.0], [1, np.nan, 1, -0.0], [1e200, 1e99, 1, 0]])
            for i in order:
                total.add(rows[i])
            assert np.isnan(total.values()).tolist() == [True, True, True, False]
            assert total.values()[3:].tobytes() == np.zeros(1).tobytes()


class TestMakeEngine:
    def test_what_may_be_given_and_what_not(self):
        with make_engine("serial") as serial, make_engine("threads", threads=3) as threads:
            assert isinstance(serial, SerialEngine)
            assert isinstance(threads, ThreadEngine)
            assert deepcopy(serial) is serial
            assert make_engine(threads) is threads
            assert threads.n_threads == 3
        for value, threads, message in (
            ("spark", None, "'dask://host:port'"),
            (3, None, "'dask://host:port'"),
            ("serial", 3, "threads=3 cannot be set for SerialEngine"),
            (SerialEngine(), 3, "for an engine that exists already"),
        ):
            with pytest.raises(ParameterError, match=message):
                make_engine(value, threads=threads)


def blas_threads(block):
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("engine", [SerialEngine(), ThreadEngine(2)])
def test_one_blas_thread_in_any_thread(engine):
    before = blas_threads(None)
    found = []

    def fit():
        for threads in engine.map_blocks(blas_threads, blocks_of(20, 5)):
            found.extend(threads)

    def in_another_thread():
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()

    with threadpool_limits(2, user_api="blas"):  # this thread now owns the setting
        fit()
        in_another_thread()
        assert set(found) == {1}
        assert set(blas_threads(None)) == {2}
    in_another_thread()
    assert set(found) == {1}
    assert blas_threads(None) == before


# --------------------------------------------------------------------------------------------------
# Blocks: every row once, a size that follows the budget, and a memory that is never sent.


GB = 2**30


@given(st.integers(1, 300), st.integers(1, 400))
@settings(deadline=None)
def test_every_row_is_in_one_block(n_rows, rows_each):
    source = as_source(np.arange(n_rows, dtype=float)[:, None])
    blocks = cut_rows(source, rows_each)
    rows = np.concatenate([block.rows() for block in blocks])
    np.testing.assert_array_equal(rows[:, 0], np.arange(n_rows))
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert all(block.n_rows == rows_each for block in blocks[:-1])
    assert 0 < blocks[-1].n_rows <= rows_each
    assert {block.plan.n_blocks for block in blocks} == {len(blocks)}


def test_a_block_is_sent_without_its_memory_and_cuts_are_told_apart():
    source = as_source(np.ones((4, 2)))
    block, other = cut_rows(source, 3)[0], cut_rows(source, 3)[0]
    assert block.plan.token != other.plan.token
    block.memory["features"] = np.ones(1000)
    again = pickle.loads(pickle.dumps(block))
    assert again.memory == {}
    assert (again.start, again.stop, again.index) == (0, 3, 0)
    assert again.plan.token == block.plan.token
    assert "features" in block.memory


def test_rows_per_block_stay_within_the_budget_and_too_little_is_refused():
    assert rows_per_block(1000, 64 * GB) * 1000 < 2 * GB  # a budget is not a reason for large ones
    assert rows_per_block(1000, 64 * GB) < rows_per_block(1000, 64 * GB, device="cuda")
    assert 50 < rows_per_block(1000, 16 * 10**6) <= 1000
    needed = r"memory=8 MB is too little: 16 of .* \(256 rows of 6 KB .* need 24 MB"
    with pytest.raises(MemoryBudgetError, match=needed):
        rows_per_block(6 * 2**10, 8 * 2**20)
    assert rows_per_block(6 * 2**10, 24 * 2**20) == 256  # what the message asks for
