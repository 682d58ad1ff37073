"""One machine: one block after another, or several blocks at once in threads.

NumPy releases the interpreter lock during its work, so threads share the rows without copying.
Each worker uses one BLAS thread: several blocks at once then keep every core busy in the
element-wise steps too, where BLAS threads would be idle.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import Any

from threadpoolctl import ThreadpoolController

from biglp._core.blocks import Block
from biglp._core.errors import ParameterError
from biglp._engines.base import BlockFunction, Engine, T, count_rows, cut_runs, sum_run
from biglp._engines.exact import ExactSum

MODERATE_RANK = 2000
"""Up to this rank one BLAS thread is quick enough."""


class LocalEngine(Engine):
    """Both verbs for workers that share the memory of this process."""

    shares_memory = True

    @abstractmethod
    def results(self, func: Callable[[T], Any], items: Sequence[T]) -> Iterator[Any]:
        """Yield ``func(item)`` for every item, in order."""

    def sum_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "sum"
    ) -> tuple[Any, ...]:
        """Add up the tuples of small arrays that ``func`` returns for each block."""
        total = ExactSum()
        runs = cut_runs(blocks)
        with self.progress.task(label, count_rows(blocks)) as task:
            results = self.results(partial(sum_run, func=func), runs)
            for run, part in zip(runs, results, strict=True):
                total.add(part)
                task.advance(run.n_rows)
        return total.result()

    def map_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "map"
    ) -> list[Any]:
        """Return ``func(block)`` for every block, in block order."""
        gathered = []
        with self.progress.task(label, count_rows(blocks)) as task:
            for block, result in zip(blocks, self.results(func, blocks), strict=True):
                gathered.append(result)
                task.advance(block.n_rows)
        return gathered


class SerialEngine(LocalEngine):
    """One block after another in the calling thread."""

    def results(self, func: Callable[[T], Any], items: Sequence[T]) -> Iterator[Any]:
        """Yield results one by one."""
        with one_blas_thread():
            for item in items:
                yield func(item)


class ThreadEngine(LocalEngine):
    """Several blocks at once in threads.

    Parameters
    ----------
    n_workers : int, optional
        Number of threads; by default one per core this process may use.
    """

    def __init__(self, n_workers: int | None = None) -> None:
        super().__init__()
        if n_workers is not None and n_workers < 1:
            raise ParameterError(f"n_workers={n_workers} threads cannot work; use 1 or more.")
        self.n_workers = n_workers or available_cores()
        self.n_threads = self.n_workers

    def results(self, func: Callable[[T], Any], items: Sequence[T]) -> Iterator[Any]:
        """Yield results in order, with at most two items a worker waiting."""
        waiting: deque[Future[Any]] = deque()
        with one_blas_thread(), ThreadPoolExecutor(self.n_workers) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(func, item))
                    if len(waiting) > 2 * self.n_workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:  # after an error the rest is not worth starting
                    future.cancel()


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_limit_lock = threading.Lock()
_limit_users = 0
_limiter: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread; the setting is the process's, so the last user puts it back."""
    global _limit_users, _limiter
    with _limit_lock:
        _limit_users += 1
        if _limit_users == 1:
            _limiter = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _limit_lock:
            _limit_users -= 1
            if _limit_users == 0:
                _limiter.restore_original_limits()


def blas_threads_for(rank: int) -> AbstractContextManager[None]:
    """Keep BLAS to one thread for dense algebra of moderate size.

    Where other programs are at work too, BLAS threads wait for each other: the eigenvectors of a
    1,000 × 1,000 matrix took 0.4 s with one thread and 7 to 9 s with two on two busy cores.
    """
    return one_blas_thread() if rank <= MODERATE_RANK else nullcontext()
