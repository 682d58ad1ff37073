"""Small tasks beside a sweep: what is looked up for the report while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from biglp._core.threads import threads_of_one
from biglp._engines import Engine
from biglp._learn.base import SAMPLE
from biglp._rows import PreparedRows

T = TypeVar("T")
TASKS = 2
"""Tasks that run at once."""
MOST_BYTES = 16 << 20
"""Rows of a sample beside which a sweep still has its room."""


class Beside(Protocol):
    """Starts a task, and returns what waits for its result."""

    def __call__(self, task: Callable[[], T], /) -> Callable[[], T]: ...


@contextmanager
def tasks_beside(engine: Engine, source: PreparedRows) -> Iterator[Beside]:
    """Start tasks in threads of their own, or do them when they are asked for.

    The latter with one thread, with rows so wide that a sample of them takes much memory, on a
    card, and where processes share the work, which have to agree on the order of all they do.

    Parameters
    ----------
    engine : Engine
    source : PreparedRows
        The rows that tasks fetch a sample of.
    """
    sample = SAMPLE * source.dtype.itemsize * max(source.n_features, source.n_input_features)
    alone = min(engine.n_threads, engine.most_at_once) < 2 or not engine.shares_memory
    if alone or source.device != "cpu" or sample > MOST_BYTES:
        yield _later
        return
    with threads_of_one(TASKS) as pool:

        def started(task: Callable[[], T], /) -> Callable[[], T]:
            return pool.submit(task).result

        yield started


def _later(task: Callable[[], T], /) -> Callable[[], T]:
    return task
