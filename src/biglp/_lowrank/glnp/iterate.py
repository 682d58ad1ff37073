"""The iterate of GLNP: rows of F that stay with their block, small sums that travel.

F (n × k) is as tall as the data, so it never travels. A row's next value needs only its own row
of F, its row of X and small arrays that are the same for every row (k × m and k × k). An iterate is
therefore a recipe: a start and the steps taken since, each holding its small arrays. Blocks keep
their rows of the last few iterates in memory, under the step's serial number; what a block finds
missing it computes again from the recipe, with the same arithmetic and so with the same bits. A
trial step that is rejected is never part of a later recipe: there is nothing to undo.

What is sent. A sweep sends :meth:`Iterate.brief`: the last step in full, the ones before it as
serial numbers only, so that a sweep costs k·m numbers whatever the number of steps so far. A block
that has lost its memory (a worker was replaced) cannot go on from that; it says so in the sums, and
the sweep is repeated with the whole recipe, from which every block can rebuild its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import numpy as np

from biglp._core.arrays import Array, Rows, check_finite, namespace, squared_norms
from biglp._core.blocks import Block
from biglp._lowrank.shift import shifted

MEMORY = "glnp"
START = 0
"""Serial number of the start; steps count from 1."""


class Start(ABC):
    """Where the iteration begins: a row's first value follows from its place and its features."""

    @abstractmethod
    def apply(self, block: Block, rows: Rows) -> Array:
        """Return the first rows of F.  (b, m) → (b, k)."""


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """One step from an iterate to the next.

    Attributes
    ----------
    serial : int
        Number of the step among all that were tried in this fit.
    """

    serial: int

    @abstractmethod
    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
        """Return the next rows of F, and facts about the step that are summed over all blocks."""

    def next(self, rows: Rows, current: Array, previous: Array | None) -> Array:
        """Return the next rows of F alone."""
        return self.apply(rows, current, previous)[0]

    def no_facts(self) -> tuple[Any, ...]:
        """Facts of a block that could not take the step: zeros of the right shapes."""
        return ()


@dataclass(frozen=True, eq=False)
class Forgotten(Step):
    """A step known by its number only: its result is either remembered or lost."""

    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
        """Never called: a brief recipe is not replayed."""
        raise LookupError("this step is known by its number only")


@dataclass(frozen=True, eq=False)
class Iterate:
    """F as a recipe.

    Attributes
    ----------
    plan : str
        Token of the cut into blocks that the recipe is for.
    offsets : ndarray of shape (m,)
        What is subtracted from each feature before anything else.
    k : int
        Columns of F.
    start : Start or None
        Where the recipe begins; None when it was left out.
    lookback : int
        How many earlier iterates a step needs.
    steps : tuple of Step
        Steps from the start to this iterate.
    fit : str
        Names this fit in the memory of a block; no number depends on it.
    """

    plan: str
    offsets: np.ndarray
    k: int
    start: Start | None
    lookback: int
    steps: tuple[Step, ...] = ()
    fit: str = field(default_factory=lambda: uuid4().hex)

    def then(self, step: Step) -> Iterate:
        """Return the iterate after one step more."""
        return replace(self, steps=(*self.steps, step))

    def brief(self) -> Iterate:
        """Leave out all that a block with its memory intact does not need."""
        # The first step only rescales the start and is not swept for, so no block remembers it yet.
        if len(self.steps) <= self.lookback + 1:
            return self
        earlier = (Forgotten(step.serial) for step in self.steps[-1 - self.lookback : -1])
        return replace(self, start=None, steps=(*earlier, self.steps[-1]))

    def rows(self, block: Block) -> Rows:
        """Read the block's rows, shifted."""
        return shifted(block.rows(), self.offsets)

    def features(self, block: Block) -> Array:
        """Return the block's rows of F, rebuilt when not remembered, and keep only them."""
        arrays = self._recall(block, len(self.steps), needed=1)
        if arrays is None:
            raise LookupError("a brief recipe cannot rebuild rows that were lost")
        self.remember(block, arrays[-1:])
        return arrays[-1]

    def parents(self, block: Block, rows: Rows) -> tuple[Array, Array | None] | None:
        """Rows of the iterate before this and of the one before that, or None when lost."""
        arrays = self._recall(block, len(self.steps) - 1, needed=self.lookback, rows=rows)
        if arrays is None:
            return None
        return arrays[-1], arrays[-2] if len(arrays) > 1 else None

    def remember(self, block: Block, arrays: Sequence[Array]) -> None:
        """Keep these rows: this iterate's last, those of the iterates before it first."""
        names = self._names()[-len(arrays) :]
        block.memory[MEMORY] = (self.fit, dict(zip(names, arrays, strict=True)))

    def _names(self) -> list[int]:
        """Serial numbers from the oldest iterate that the recipe knows to the newest."""
        return [START] * (self.start is not None) + [step.serial for step in self.steps]

    def _recall(
        self, block: Block, n_steps: int, *, needed: int, rows: Rows | None = None
    ) -> list[Array] | None:
        """Rows of the ``needed`` last iterates up to that after ``n_steps`` steps, oldest first.

        There are fewer when there are not as many. Where some are missing, goes on from the latest
        iterate that a step can be taken from and replays the steps since; None when that is lost.
        """
        owner, found = block.memory.get(MEMORY, ("", {}))
        if owner != self.fit:
            found = {}
        names = self._names()
        n_starts = int(self.start is not None)
        last = n_starts + n_steps
        if all(name in found for name in names[max(0, last - needed) : last]):
            return [found[name] for name in names[max(0, last - needed) : last]]
        if self.start is None:
            return None
        known = last
        while known and not all(name in found for name in names[self._window(known)]):
            known -= 1
        arrays = [found[name] for name in names[self._window(known)]]
        rows = self.rows(block) if rows is None else rows
        if not arrays:
            arrays, known = [self.start.apply(block, rows)], 1
        for step in self.steps[known - 1 : n_steps]:
            previous = arrays[-2] if len(arrays) > 1 else None
            arrays = [*arrays, step.next(rows, arrays[-1], previous)][-self.lookback :]
        return arrays

    def _window(self, end: int) -> slice:
        """Places of the iterates that a step from the one before ``end`` needs."""
        return slice(max(0, end - self.lookback), end)


def start_block(block: Block, iterate: Iterate) -> tuple[Any, ...]:
    """Make the block's first rows of F; return its part of ‖X‖², FᵀX and FᵀF."""
    rows = iterate.rows(block)
    norms = squared_norms(rows)
    check_finite(norms)
    if iterate.start is None:
        raise LookupError("a recipe without a start cannot begin")
    factor = iterate.start.apply(block, rows)
    iterate.remember(block, [factor])
    return norms.sum(dtype=namespace(norms).float64), factor.T @ rows, factor.T @ factor


def step_block(block: Block, iterate: Iterate) -> tuple[Any, ...]:
    """Take the last step of the recipe; return blocks lost (0 or 1), FᵀX, FᵀF and the facts.

    One read of the rows. The last step is always computed, also when its rows are remembered,
    because its facts are not.
    """
    step = iterate.steps[-1]
    rows = iterate.rows(block)
    parents = iterate.parents(block, rows)
    if parents is None:
        shape = (iterate.k, len(iterate.offsets))
        return 1.0, np.zeros(shape), np.zeros((iterate.k, iterate.k)), *step.no_facts()
    current, previous = parents
    factor, facts = step.apply(rows, current, previous)
    kept = [current] if previous is None or iterate.lookback == 1 else [previous, current]
    iterate.remember(block, [*kept, factor])
    return 0.0, factor.T @ rows, factor.T @ factor, *facts
