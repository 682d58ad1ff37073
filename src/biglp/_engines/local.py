"""One machine: one block after another, or several blocks at once in threads.

NumPy releases the interpreter lock during its work, so threads share the rows without copying.
Each thread uses one BLAS thread: several blocks at once then keep every core busy in the
element-wise steps too, where BLAS threads would be idle.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.blocks import Block
from biglp._core.errors import ParameterError
from biglp._core.threads import available_cores, begin_thread, one_blas_thread
from biglp._engines.base import BlockFunction, Engine, T, cut_runs, sum_run
from biglp._engines.exact import ExactSum


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
        results = self.results(partial(sum_run, func=func), runs)
        with self.progress.task(label, n_rows) as task, closing(results):
            for run, part in zip(runs, results, strict=True):
                arrays = (array.data if sparse.issparse(array) else array for array in part)
                if len(runs) == 1 and all(bool(np.isfinite(array).all()) for array in arrays):
                    return part  # exact as it is
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

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is not None and n_workers < 1:
            raise ParameterError(f"n_workers={n_workers} threads cannot work; use 1 or more.")
        self.n_threads = n_workers or available_cores()

    @classmethod
    def make(cls, value: Any = None, threads: int | None = None) -> Engine:
        """Make an engine with ``threads`` threads."""
        return cls(threads)

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
