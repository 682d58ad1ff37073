"""One machine: one block after another, or several blocks at once in threads.

NumPy releases the interpreter lock during its work, so threads share the rows without copying.
Each thread uses one BLAS thread: several blocks at once then keep every core busy in the
element-wise steps too, where BLAS threads would be idle.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from biglp._core.arrays import unflagged
from biglp._core.blocks import Block
from biglp._core.errors import ParameterError
from biglp._engines.base import BlockFunction, Engine, T, cut_runs, sum_run
from biglp._engines.exact import ExactSum

MODERATE_RANK = 2000
"""Up to this rank one BLAS thread is quick enough."""


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
                if len(runs) == 1 and all_finite(part):
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
    """Several blocks at once in threads.

    Parameters
    ----------
    n_workers : int, optional
        Number of threads; by default one per core this process may use.
    """

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
        pool = ThreadPoolExecutor(n_threads, initializer=_begin_thread)
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


@contextmanager
def threads_of_one(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for pieces of work beside the sweeps, each with one BLAS thread."""
    with one_blas_thread(), ThreadPoolExecutor(n_threads, initializer=_begin_thread) as pool:
        yield pool


def _begin_thread() -> None:
    """Set up a thread: NumPy and some builds of BLAS have a setting for each, CUDA a context."""
    unflagged().__enter__()  # for as long as the thread is there
    _set_blas_threads({})
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.set_device(torch.cuda.current_device())


def all_finite(arrays: tuple[Any, ...]) -> bool:
    """Whether arrays and sparse matrices hold finite numbers only."""
    entries = (array.data if sparse.issparse(array) else array for array in arrays)
    return all(bool(np.isfinite(part).all()) for part in entries)


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_lock = threading.Lock()
_users = 0  # of one_blas_thread, at the moment
_before: dict[str, int] = {}  # threads that each BLAS library had, by its path


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, whatever thread asks for it.

    The setting belongs to the process, so it is put back when the last caller leaves.
    """
    global _users
    with _lock:
        _users += 1
        for library in _blas_libraries(len(sys.modules)):
            _before.setdefault(library.filepath, library.num_threads)
        _set_blas_threads({})
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _set_blas_threads(_before)
                _before.clear()


def _set_blas_threads(n_threads: Mapping[str, int]) -> None:
    """Set the threads of BLAS libraries by their path; those that are not named get one."""
    for library in _blas_libraries(len(sys.modules)):
        wanted = n_threads.get(library.filepath, 1)
        if library.num_threads == wanted:
            continue
        # Where a library has one setting for the process, threadpoolctl 3.8 lets only the first
        # thread that has set it change it again, and ignores all others until that is cleared.
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
        library.set_num_threads(wanted)


@lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> list[Any]:
    """BLAS libraries in this process; looked for again after each import, which may bring one."""
    libraries = ThreadpoolController().lib_controllers
    return [library for library in libraries if library.user_api == "blas"]


def blas_threads_for(rank: int) -> AbstractContextManager[None]:
    """Keep BLAS to one thread for dense algebra of moderate size.

    Where other programs are at work too, BLAS threads wait for each other: the eigenvectors of a
    1,000 × 1,000 matrix took 0.4 s with one thread and 7 to 9 s with two on two busy cores.
    """
    return one_blas_thread() if rank <= MODERATE_RANK else nullcontext()
