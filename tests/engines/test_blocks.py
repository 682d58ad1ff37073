"""Blocks: every row once, a size that follows the budget, and a memory that is never sent."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biglp._core import MemoryBudgetError, cut_rows, rows_per_block
from biglp._core.memory import (
    BLOCKS_AT_ONCE,
    MIN_BLOCK_ROWS,
    TARGET_BLOCK_BYTES,
    TARGET_BLOCK_BYTES_GPU,
)
from biglp._rows import as_source

GB = 2**30


@given(st.integers(1, 300), st.integers(1, 400))
def test_every_row_is_in_one_block(n_rows, rows_each):
    source = as_source(np.arange(n_rows, dtype=float)[:, None])
    blocks = cut_rows(source, rows_each)
    rows = np.concatenate([block.rows() for block in blocks])
    np.testing.assert_array_equal(rows[:, 0], np.arange(n_rows))
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert all(block.n_rows == rows_each for block in blocks[:-1])
    assert 0 < blocks[-1].n_rows <= rows_each
    assert {block.plan.n_blocks for block in blocks} == {len(blocks)}


def test_a_block_is_sent_without_its_memory():
    block = cut_rows(as_source(np.ones((4, 2))), 3)[0]
    block.memory["features"] = np.ones(1000)
    again = pickle.loads(pickle.dumps(block))
    assert again.memory == {}
    assert (again.start, again.stop, again.index) == (0, 3, 0)
    assert again.plan.token == block.plan.token
    assert "features" in block.memory


def test_two_cuts_of_a_source_are_told_apart():
    source = as_source(np.ones((4, 2)))
    assert cut_rows(source, 2)[0].plan.token != cut_rows(source, 2)[0].plan.token


def test_rows_per_block_aims_at_the_cache_and_stays_within_the_budget():
    assert rows_per_block(1000, 64 * GB) == TARGET_BLOCK_BYTES // 1000
    assert rows_per_block(1000, 64 * GB, device="cuda") == TARGET_BLOCK_BYTES_GPU // 1000
    assert rows_per_block(1000, BLOCKS_AT_ONCE * 10**6) == 1000
    assert rows_per_block(TARGET_BLOCK_BYTES, 64 * GB) == MIN_BLOCK_ROWS


def test_a_budget_for_less_than_the_smallest_block_is_refused():
    needed = r"memory=8 MB is too little: 16 of .* \(256 rows of 6 KB .* need 24 MB"
    with pytest.raises(MemoryBudgetError, match=needed):
        rows_per_block(6 * 2**10, 8 * 2**20)
    assert rows_per_block(6 * 2**10, 24 * 2**20) == MIN_BLOCK_ROWS  # what the message asks for
