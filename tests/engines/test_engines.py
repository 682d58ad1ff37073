"""What every engine promises, tested with one body on every engine.

test_engines_mpi.py runs this file again under mpiexec.
"""

import math
import sys
import threading
import time
from copy import deepcopy
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from biglp._core import BadRowsError, MissingExtraError, ParameterError, Progress, Task, cut_rows
from biglp._engines import Engine, SerialEngine, ThreadEngine, make_engine
from biglp._engines.base import LONGEST_RUN, cut_runs
from biglp._engines.exact import ExactSum, Slices
from biglp._graph import Lloyd
from biglp._rows import as_source

WIDE = 1500  # a sparse matrix of this width is too large to be added as a dense one


def bits(results):
    return [
        (sparse.csr_array(r).toarray() if sparse.issparse(r) else np.asarray(r)).tobytes()
        for r in results
    ]


def blocks_of(n_rows, rows_per_block, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.integers(-9, 9, (n_rows, 1))
    return cut_rows(as_source(rows.astype(np.float32)), rows_per_block)


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
    @pytest.mark.parametrize(("n_rows", "rows_per_block"), [(1, 1), (3, 1), (1000, 40), (1500, 5)])
    def test_sums_have_the_same_bits(self, engine, n_rows, rows_per_block):
        blocks = blocks_of(n_rows, rows_per_block)
        sums = engine.sum_blocks(moments, blocks, label="moments")
        assert bits(sums) == bits(SerialEngine().sum_blocks(moments, blocks))
        assert all(total.dtype == np.float64 for total in sums)
        assert sparse.isspmatrix_csr(sums[3])
        assert isinstance(sums[4], sparse.csr_array)

    def test_maps_are_in_block_order(self, engine):
        blocks = blocks_of(900, 5)
        assert engine.map_blocks(_span, blocks) == [(b.start, b.stop) for b in blocks]
        some = blocks[::7]
        assert engine.map_blocks(_span, some) == [(b.start, b.stop) for b in some]

    def test_no_blocks(self, engine):
        assert engine.sum_blocks(moments, []) == ()
        assert engine.map_blocks(_span, []) == []

    def test_a_block_finds_its_memory_again(self, engine):
        blocks, others = blocks_of(700, 5), blocks_of(70, 10)
        for sweep in (1, 2):
            assert engine.map_blocks(visits, blocks) == [(b.index, sweep) for b in blocks]
        assert engine.map_blocks(visits, blocks[100:]) == [(b.index, 3) for b in blocks[100:]]
        assert engine.map_blocks(visits, others) == [(b.index, 1) for b in others]
        counts = engine.map_blocks(visits, blocks)
        assert counts == [(b.index, 4 if b.index >= 100 else 3) for b in blocks]

    def test_kmeans_centres_have_the_same_bits(self, engine):
        rng = np.random.default_rng(3)
        rows = rng.normal(size=(2000, 4)).astype(np.float32) + 3 * rng.integers(0, 3, (2000, 1))
        blocks = cut_rows(as_source(rows.astype(np.float32)), 64)
        start, pool = rows[:6].astype(np.float32), rows[6:20]
        centres, n_iter = Lloyd(engine, pool, max_iter=6).run(blocks, start)
        expected, n_expected = Lloyd(SerialEngine(), pool, max_iter=6).run(blocks, start)
        assert n_iter == n_expected
        assert centres.tobytes() == expected.tobytes()

    @pytest.mark.parametrize("index", [0, 57, 139])
    def test_an_error_is_raised_everywhere_and_is_not_the_end(self, engine, index):
        blocks = blocks_of(700, 5)
        with pytest.raises(BadRowsError, match=f"block {index} is bad"):
            engine.sum_blocks(partial(fail_at, index=index), blocks)
        with pytest.raises(BadRowsError, match=f"block {index} is bad"):
            engine.map_blocks(partial(fail_at, index=index), blocks)
        (total,) = engine.sum_blocks(partial(fail_at, index=-1), blocks)
        assert total.tolist() == [140.0] * 3

    def test_shapes_must_agree(self, engine):
        with pytest.raises(ValueError, match="cannot be added"):
            engine.sum_blocks(_ragged, blocks_of(30, 10))

    def test_once(self, engine):
        assert engine.once(lambda: 7) == 7
        with pytest.raises(BadRowsError, match="not here"):
            engine.once(_raise)

    def test_progress_counts_the_rows_of_all(self, engine):
        engine.progress = counting = CountingProgress()
        engine.sum_blocks(moments, blocks_of(700, 5), label="a")
        engine.map_blocks(visits, blocks_of(70, 30), label="b")
        engine.progress = Progress()
        assert counting.rows == ({"a": 700, "b": 70} if engine.is_root else {})

    def test_what_a_memory_plan_asks(self, engine):
        assert engine.n_threads >= 1
        assert engine.n_machines == 1
        assert engine.n_sharing >= 1
        assert (engine.library_bytes == 0) == engine.shares_memory

    def test_threads_can_be_limited(self, engine):
        try:
            engine.most_at_once = 1
            assert max(engine.map_blocks(at_once, blocks_of(60, 5))) == 1
        finally:
            engine.most_at_once = engine.n_threads  # a later fit has a limit of its own
        assert engine.most_at_once == engine.n_threads


_at_work = []


def at_once(block):
    """How many blocks are in work in this process while this one is."""
    _at_work.append(block.index)
    time.sleep(0.005)
    n_at_work = len(_at_work)
    _at_work.remove(block.index)
    return n_at_work


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

    def test_full_headroom_stays_exact(self):
        total = ExactSum()
        largest = np.array([2.0**32 - 2.0**-21])
        for _ in range(3):
            total.add((largest,))
        total.dense.slices *= 2.0**18  # as if 3·2¹⁸ runs had been added
        assert total.result()[0][0] == 3 * 2.0**18 * largest[0]

    def test_runs_depend_on_the_plan_alone(self):
        blocks = blocks_of(5000, 1)
        runs = cut_runs(blocks)
        assert max(len(run.blocks) for run in runs) == LONGEST_RUN
        some = cut_runs(blocks[10 * LONGEST_RUN : 20 * LONGEST_RUN])
        assert [run.number for run in some] == list(range(10, 20))
        owners = [run.owner(3) for run in runs]
        assert owners == sorted(owners)
        assert max(map(owners.count, range(3))) - min(map(owners.count, range(3))) <= 1
        assert [run.owner(5) for run in cut_runs(blocks_of(2, 1))] == [0, 2]


class TestMakeEngine:
    def test_kinds(self):
        assert isinstance(make_engine("serial"), SerialEngine)
        threads = make_engine("threads")
        assert isinstance(threads, ThreadEngine)
        assert make_engine(threads) is threads

    @pytest.mark.parametrize("engine", ["spark", 3, None])
    def test_unknown(self, engine):
        with pytest.raises(ParameterError, match="'dask://host:port'"):
            make_engine(engine)

    @pytest.mark.parametrize(
        ("engine", "package", "line"),
        [("mpi", "mpi4py", r"biglp\[mpich\]"), ("dask", "distributed", r"biglp\[dask\]")],
    )
    def test_extra_not_installed(self, monkeypatch, engine, package, line):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.delitem(sys.modules, f"biglp._engines.{engine}.engine", raising=False)
        with pytest.raises(MissingExtraError, match=f'pip install "{line}"'):
            make_engine(engine)

    def test_number_of_threads(self):
        assert make_engine("threads", threads=3).n_threads == 3
        with pytest.raises(ParameterError, match="threads=3 cannot be set for SerialEngine"):
            make_engine("serial", threads=3)
        with pytest.raises(ParameterError, match="for an engine that exists already"):
            make_engine(SerialEngine(), threads=3)

    def test_an_engine_is_a_context_manager(self):
        with make_engine("serial") as engine:
            assert isinstance(engine, Engine)
            assert deepcopy(engine) is engine


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
