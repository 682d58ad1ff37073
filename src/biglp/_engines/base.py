"""The two verbs every algorithm is written against.

``sum_blocks`` adds small arrays over all blocks; ``map_blocks`` collects small results. Both visit
every block once, in any order and anywhere, and return the same thing on every process.

Sums have the same bits on every engine, with any number of threads, ranks or workers. Blocks are
gathered into runs of neighbours by the number of blocks alone; a run is added in block order in
float64 by whoever owns it, and the runs are added exactly (see :mod:`biglp._engines.exact`), so
that it does not matter who owns which. A run is up to 16 blocks long because exact addition costs
some 20 times as much as plain addition: 16 times more seldom, it costs about the same.

An engine promises one thing more: a block goes back to the worker that holds its memory. Owners are
therefore chosen by a block's place in its plan, also when a sweep visits only some of the blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from biglp._core.arrays import to_numpy
from biglp._core.blocks import Block
from biglp._core.progress import Progress
from biglp._engines.exact import MAX_TERMS

BlockFunction = Callable[[Block], Any]
T = TypeVar("T")

LONGEST_RUN = 16
FEWEST_RUNS = 128
"""Runs grow longer than one block only while this many remain to be shared out."""


class Engine(ABC):
    """Someone who does the work, block by block.

    Attributes
    ----------
    progress : Progress
        Who is told how far a sweep is.
    is_root : bool
        Whether this process is the one that prints and publishes.
    shares_memory : bool
        Whether block functions can write into this process's arrays.
    n_machines : int
        Machines that are sure to share the work, each with its own memory.
    """

    progress: Progress
    is_root: bool = True
    shares_memory: bool = False
    n_machines: int = 1
    n_threads: int = 1
    n_sharing: int = 1
    library_bytes: int = 0

    def limit_threads(self, n: int) -> None:
        """Work on at most n blocks at once in each process."""

    def __init__(self) -> None:
        self.progress = Progress()

    @abstractmethod
    def sum_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "sum"
    ) -> tuple[Any, ...]:
        """Add up the tuples of small arrays that ``func`` returns for each block."""

    @abstractmethod
    def map_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "map"
    ) -> list[Any]:
        """Return ``func(block)`` for every block, in block order."""

    def once(self, action: Callable[[], T]) -> T:
        """Do something on one process and return its result, or raise its error, on every one."""
        return action()

    def check_rows(self, n_rows: int) -> None:  # noqa: B027  one process can work on any
        """Raise when there are too few rows to share out."""

    def close(self) -> None:  # noqa: B027  engines that hold nothing have nothing to do
        """Give back what the engine holds; it cannot be used afterwards."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        """Return the engine itself: copies of an estimator work with the same workers."""
        return self

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Run:
    """Neighbouring blocks that are added in order by one owner."""

    number: int
    n_runs: int
    blocks: list[Block]

    @property
    def n_rows(self) -> int:
        """Rows in all blocks of the run."""
        return count_rows(self.blocks)

    def owner(self, n_owners: int) -> int:
        """Return which of ``n_owners`` the run belongs to; each owns neighbours."""
        return min(self.number * n_owners // self.n_runs, n_owners - 1)


def cut_runs(blocks: Sequence[Block]) -> list[Run]:
    """Gather blocks into runs; the cut depends on the plan alone, not on the workers."""
    if not blocks:
        return []
    plan = blocks[0].plan
    n_blocks = plan.n_blocks if plan else len(blocks)
    length = max(1, min(n_blocks // FEWEST_RUNS, LONGEST_RUN), -(-n_blocks // MAX_TERMS))
    grouped = groupby(blocks, key=lambda block: block.index // length)
    return [Run(number, -(-n_blocks // length), list(group)) for number, group in grouped]


def sum_run(run: Run, func: BlockFunction) -> tuple[Any, ...]:
    """Add up what ``func`` returns for the blocks of a run, in order, in float64."""
    total: list[Any] = []
    for block in run.blocks:
        part = func(block)
        if not total:
            total = [_as_float64(array, copy=True) for array in part]
        else:
            total = [_added(old, array) for old, array in zip(total, part, strict=True)]
    return tuple(total)


def count_rows(blocks: Sequence[Block]) -> int:
    """Rows in all blocks."""
    return sum(block.n_rows for block in blocks)


def _as_float64(array: Any, *, copy: bool) -> Any:
    array = to_numpy(array)
    if sparse.issparse(array):
        return array.astype(np.float64, copy=copy)
    return np.array(array, dtype=np.float64, copy=copy or None)


def _added(total: Any, part: Any) -> Any:
    part = _as_float64(part, copy=False)
    if sparse.issparse(total):
        return total + part
    total += part
    return total
