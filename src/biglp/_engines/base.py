"""The two verbs every algorithm is written against.

``sum_blocks`` adds small arrays over all blocks; ``map_blocks`` collects small results. Both visit
every block once, in any order and anywhere, and return the same thing on every process. Sums are
added in block order in float64, so that the number of workers never shows in the result.

An engine promises one thing more: a block goes back to the worker that holds its memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from biglp._arrays import to_numpy
from biglp._blocks import Block
from biglp._progress import Progress

BlockFunction = Callable[[Block], Any]


class Engine(ABC):
    """Someone who does the work, block by block."""

    progress: Progress

    def __init__(self) -> None:
        self.progress = Progress()

    @abstractmethod
    def results(self, func: BlockFunction, blocks: Sequence[Block]) -> Iterator[Any]:
        """Yield ``func(block)`` for every block, in block order."""

    def sum_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "sum"
    ) -> tuple[Any, ...]:
        """Add up the tuples of small arrays that ``func`` returns for each block."""
        total: list[Any] = []
        for part in self._tracked(func, blocks, label):
            if not total:
                total = [_as_float64(array, copy=True) for array in part]
            else:
                total = [_added(old, array) for old, array in zip(total, part, strict=True)]
        return tuple(total)

    def map_blocks(
        self, func: BlockFunction, blocks: Sequence[Block], label: str = "map"
    ) -> list[Any]:
        """Return ``func(block)`` for every block, in block order."""
        return list(self._tracked(func, blocks, label))

    def _tracked(
        self, func: BlockFunction, blocks: Sequence[Block], label: str
    ) -> Iterator[Any]:
        with self.progress.task(label, sum(block.n_rows for block in blocks)) as task:
            for block, result in zip(blocks, self.results(func, blocks), strict=True):
                yield result
                task.advance(block.n_rows)


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
