"""One machine: one block after another, or several blocks at once in threads.

NumPy releases the interpreter lock during its work, so threads share the rows without copying.
Each worker uses one BLAS thread: several blocks at once then keep every core busy in the
element-wise steps too, where BLAS threads would be idle.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from biglp._blocks import Block
from biglp._engines.base import BlockFunction, Engine
from biglp._errors import ParameterError


class SerialEngine(Engine):
    """One block after another in the calling thread."""

    def results(self, func: BlockFunction, blocks: Sequence[Block]) -> Iterator[Any]:
        """Yield results one by one."""
        with _one_blas_thread():
            for block in blocks:
                yield func(block)


class ThreadEngine(Engine):
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

    def results(self, func: BlockFunction, blocks: Sequence[Block]) -> Iterator[Any]:
        """Yield results in block order, with at most two blocks a worker waiting."""
        waiting: deque[Future[Any]] = deque()
        todo = iter(blocks)
        with _one_blas_thread(), ThreadPoolExecutor(self.n_workers) as pool:
            try:
                for block in todo:
                    waiting.append(pool.submit(func, block))
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


def _one_blas_thread() -> Any:
    return _controller().limit(limits=1, user_api="blas")
