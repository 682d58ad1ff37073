"""What every algorithm may ask of an engine: two ways to visit all blocks of rows.

``sum_blocks`` adds small arrays over all blocks; ``map_blocks`` collects small results. Both visit
every block once, in any order and anywhere, and return the same thing on every process.

Sums have the same bits on every engine, with any number of threads, ranks or workers. Blocks are
gathered into runs of neighbours by the number of blocks alone; a run is added in block order in
float64 by the process that owns it, and the runs are added exactly (see
:mod:`biglp._engines.exact`), so that it does not matter which process owns which. A run is up to 8
blocks long because exact addition costs some 20 times as much as plain addition: done once in 8
blocks, it costs little beside the work on them.

An engine promises one thing more: a block goes back to the worker that holds its memory. Owners are
therefore chosen by a block's place in its plan, also when a sweep visits only some of the blocks.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse

from biglp._compiled.pairs import Pairs
from biglp._core.arrays import to_numpy
from biglp._core.blocks import Block
from biglp._core.errors import ParameterError
from biglp._core.progress import Progress
from biglp._core.threads import begin_thread, one_blas_thread
from biglp._engines.exact import MAX_TERMS, ExactSum

BlockFunction = Callable[[Block], Any]
T = TypeVar("T")


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


LONGEST_RUN = 8
FEWEST_RUNS = 64
"""Runs grow longer than one block only while this many remain to be shared out."""


class Engine(AbstractContextManager["Engine"], ABC):
    """Works on blocks of rows, in this process or in several.

    A new engine is a subclass in a file of its own, and one line in ``biglp._engines.ENGINES`` or,
    in another package, an entry point of the group ``biglp.engines``.
    """

    progress: Progress = Progress()  # told how far a sweep is
    is_root: bool = True  # this process prints and publishes
    shares_memory: bool = False  # block functions can write into this process's arrays
    n_threads: int = 1  # blocks that one process can work on at once …
    # … and may, to need less memory: set by each fit, which has a plan of its own.
    most_at_once: int = sys.maxsize
    n_machines: int = 1  # that are sure to share the work, each with its own memory
    n_sharing: int = 1  # most of this engine's processes that share one machine and its memory
    local_number: int = 0  # of this process among those on its machine: each takes the next GPU
    # Each process is sure to keep something of its own share of rows only.
    keeps_shares: ClassVar[bool] = False
    launched: ClassVar[bool] = False  # a launcher starts its processes, which share files only
    library_bytes: ClassVar[int] = 0  # that the engine's own libraries add to a process
    takes_threads: ClassVar[bool] = False  # whether it is made with ``n_threads=``
    # What engine= may be besides the engine's name, in words for an error message.
    also_accepted: ClassVar[tuple[str, ...]] = ()

    @property
    def n_on_a_card(self) -> int:
        """Processes of a machine that share one of its GPUs."""
        torch = sys.modules.get("torch")
        cards = torch.cuda.device_count() if torch is not None and self.n_sharing > 1 else 1
        return -(-self.n_sharing // max(cards, 1))

    @classmethod
    def speaks_to_user(cls) -> bool:
        """Whether this process is the one that prints; asked before there is an engine, too."""
        return True

    @classmethod
    def accepts(cls, value: object) -> bool:
        """Whether an engine can be made of ``value``, which is not the engine's name.

        Every engine is asked, so this must need no library that may not be installed.
        """
        return False

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

    def check_rows(self, n_rows: int) -> None:
        """Raise when there are too few rows to share out."""

    def close(self) -> None:
        """Give back what the engine holds; it cannot be used afterwards."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        """Return the engine itself: copies of an estimator work with the same workers."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Run:
    """Neighbouring blocks that are added in order by one process."""

    number: int
    n_runs: int
    blocks: list[Block]
    n_rows: int = 0

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
    runs = []
    for number, group in groupby(blocks, key=lambda block: block.index // length):
        members = list(group)
        n_rows = sum(block.n_rows for block in members)
        runs.append(Run(number, -(-n_blocks // length), members, n_rows))
    return runs


def sum_run(run: Run, func: BlockFunction, exact: ExactSum) -> tuple[Any, ...]:
    """Add up what ``func`` returns for the blocks of a run, in order, in float64.

    Pairs, whose sums are exact in any order, go to ``exact`` at once.
    """
    total: list[Any] = []
    for block in run.blocks:
        part = [exact.add_pairs(i, to_numpy(array)) for i, array in enumerate(func(block))]
        if not total:
            total = [
                array.astype(np.float64)
                if sparse.issparse(array)
                else array
                if isinstance(array, Pairs)
                else np.array(array, dtype=np.float64)
                for array in part
            ]
            continue
        for i, (_, array) in enumerate(zip(total, part, strict=True)):
            if not isinstance(array, Pairs):
                total[i] += array  # in place for dense arrays; each number is made float64 first
    return tuple(total)


def _is_finite(part: Any) -> bool:
    """Whether there is neither NaN nor infinity; in pairs there never is."""
    if isinstance(part, Pairs):
        return True
    return bool(np.isfinite(part.data if sparse.issparse(part) else part).all())


# --------------------------------------------------------------------------------------------------
# One machine: one block after another, or several blocks at once in threads.
#
# NumPy releases the interpreter lock during its work, so threads share the rows without copying.
# Each thread uses one BLAS thread: several blocks at once then keep every core busy in the
# element-wise steps too, where BLAS threads would be idle.


class LocalEngine(Engine):
    """Both ways to visit blocks, for threads that share the memory of this process."""

    shares_memory = True

    @abstractmethod
    def results(self, func: Callable[[T], Any], items: Sequence[T]) -> Generator[Any, None, None]:
        """Yield ``func(item)`` for every item, in order."""

    def sum_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "sum"
    ) -> tuple[Any, ...]:
        """Add up the tuples of small arrays that ``func`` returns for each block."""
        total = ExactSum()
        runs = cut_runs(blocks)
        n_rows = sum(run.n_rows for run in runs)
        results = self.results(partial(sum_run, func=func, exact=total), runs)
        with self.progress.task(label, n_rows) as task, closing(results):
            for run, part in zip(runs, results, strict=True):
                if len(runs) == 1 and all(map(_is_finite, part)):  # exact as it is
                    sums = total.pairs
                    return tuple(sums[i].result() if i in sums else a for i, a in enumerate(part))
                total.add(part)
                task.advance(run.n_rows)
        return total.result()

    def map_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "map"
    ) -> list[Any]:
        """Return ``func(block)`` for every block, in block order."""
        gathered = []
        n_rows = sum(block.n_rows for block in blocks)
        results = self.results(func, blocks)
        with self.progress.task(label, n_rows) as task, closing(results):
            for block, result in zip(blocks, results, strict=True):
                gathered.append(result)
                task.advance(block.n_rows)
        return gathered


class SerialEngine(LocalEngine):
    """One block after another in the calling thread."""

    def results(self, func: Callable[[T], Any], items: Sequence[T]) -> Generator[Any, None, None]:
        """Yield results one by one."""
        with one_blas_thread():
            for item in items:
                yield func(item)


class ThreadEngine(LocalEngine):
    """Several blocks at once in threads."""

    takes_threads = True

    def __init__(self, n_threads: int | None = None) -> None:
        if n_threads is not None and n_threads < 1:
            raise ParameterError(f"n_threads={n_threads} threads cannot work; use 1 or more.")
        self.n_threads = n_threads or available_cores()

    def results(self, func: Callable[[T], Any], items: Sequence[T]) -> Generator[Any, None, None]:
        """Yield results in order, with at most two items a thread waiting."""
        waiting: deque[Future[Any]] = deque()
        n_threads = min(self.n_threads, self.most_at_once)
        if n_threads == 1 or len(items) == 1:
            yield from SerialEngine().results(func, items)
            return
        pool = ThreadPoolExecutor(n_threads, initializer=begin_thread)
        with one_blas_thread(), pool:
            try:
                for item in items:
                    waiting.append(pool.submit(func, item))
                    if len(waiting) > 2 * n_threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:  # after an error the rest is not worth starting
                    future.cancel()
