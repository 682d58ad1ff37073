"""A GLNP fit under way: the objective from sums alone, the start, and when to stop.

The problem (Eq. GL_F of the paper): minimise Q(F) = ‖X − FFᵀX‖² over F ≥ 0, with

    X n × m rows          P = FᵀX  k × m        A = PPᵀ  k × k
    F n × k factor        M = FᵀF  k × k        B = XPᵀ  n × k

    Q(F)  = ‖X‖² − 2·tr(A) + tr(A·M)
    ∇Q(F) = 2D + 2G − 4B,    D = F·A,  G = B·M.

P and M are sums over rows, so Q is known after every sweep at no cost; the paper leaves it out "to
save memory". F does not change when X is multiplied by a number, so everything here is in units of
‖X‖ = 1: P stands for FᵀX/‖X‖, Q for Q/‖X‖². Steps and tolerances then mean the same for any data,
and nothing overflows.

The start. Along the ray cF the objective is 1 − 2c²·tr(A) + c⁴·tr(A·M), least at
c² = tr(A)/tr(A·M). Without this factor the paper's U[0, 1] start is some √n times too long and
hundreds of steps only shrink it. All columns of that start are alike as well, and the rank-one
solution, to which they are drawn first, is a saddle that takes long to leave. The default start is
therefore a clustering: row i has 1 in the column of its nearest centre and a small floor elsewhere,
columns have length 1 (so that FFᵀX without the floor would be the cluster means). The floor leaves
every entry a way to grow under the multiplicative rule, which cannot move a zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, check_finite, like, namespace, squared_norms
from biglp._core.blocks import Block
from biglp._engines import Engine
from biglp._graph.kernels import nearest_landmarks, scatter
from biglp._graph.linear import shifted
from biglp._rows.source import row_noise

FLOOR = 0.5
"""What the clustered start spreads evenly over a row's columns, beside the 1 of its cluster."""
WINDOW = 10
"""Iterations over which the fall of Q is judged; a single one says little, least so at a saddle."""
SAME_DIRECTION = 0.99
"""Share of tr(A) in its largest eigenvalue above which all rows of P count as parallel."""
ROUNDING = 16.0
"""Q below this many units of rounding is as good as zero."""


@dataclass(frozen=True)
class Sums:
    """What is known of F once its rows are summed."""

    P: np.ndarray  # FᵀX / ‖X‖, (k, m)
    M: np.ndarray  # FᵀF, (k, k)

    @cached_property
    def A(self) -> np.ndarray:  # noqa: N802  the paper's letter
        """PPᵀ.  (k, k)."""
        return self.P @ self.P.T

    @cached_property
    def objective(self) -> float:
        """Q(F) / ‖X‖²."""
        return float(1.0 - 2.0 * np.trace(self.A) + np.sum(self.A * self.M))

    def scaled(self, scale: np.ndarray) -> Sums:
        """Sums of F·diag(scale)."""
        return Sums(self.P * scale[:, None], self.M * scale * scale[:, None])


class Descent:
    """The accepted iterate, its sums, and the objective so far, at first those of the start."""

    def __init__(
        self, engine: Engine, blocks: Sequence[Block], iterate: Iterate, dtype: np.dtype[Any]
    ) -> None:
        self._engine, self._blocks = engine, blocks
        self._serial = 0
        self.dtype = np.dtype(dtype)  # of the rows, and so of the small arrays of a step
        squared, products, gram = engine.sum_blocks(
            partial(start_block, iterate=iterate), blocks, label="GLNP start"
        )
        self.empty = float(squared) == 0.0  # whether all rows are zero
        self.norm = 1.0 if self.empty else float(np.sqrt(squared))  # ‖X‖
        sums = Sums(products / self.norm, gram)
        # The start gets its best length; columns of a clustering first get length 1.
        scale = np.ones(iterate.k)
        if isinstance(iterate.start, ClusterStart):
            scale = 1.0 / np.sqrt(np.diag(gram))
        scaled = sums.scaled(scale)
        quartic = float(np.sum(scaled.A * scaled.M))
        if quartic > 0:
            scale = scale * np.sqrt(np.trace(scaled.A) / quartic)
        step = ScaleStep(self.next_serial(), self.small(scale))
        self.iterate = iterate.then(step)
        self.sums = sums.scaled(step.scale.astype(np.float64))
        # Q/‖X‖² of every accepted iterate; it never rises.
        self.objective = [0.0 if self.empty else max(self.sums.objective, 0.0)]

    def next_serial(self) -> int:
        """Number of the next trial."""
        self._serial += 1
        return self._serial

    def small(self, array: np.ndarray) -> np.ndarray:
        """A small array in the precision of the rows, in which it will be used."""
        return array.astype(self.dtype)

    def for_rows(self, P: np.ndarray) -> np.ndarray:
        """P̃ such that X·P̃ᵀ is B in units of ‖X‖ = 1.  (k, m)."""
        return self.small(P / self.norm)

    def trial(self, step: Step) -> tuple[Sums, tuple[Any, ...]]:
        """Take a step in one sweep without accepting it; return its sums and its facts."""
        label = f"GLNP {len(self.objective)}"
        iterate = self.iterate.then(step)
        function = partial(step_block, iterate=iterate.brief())
        lost, products, gram, *facts = self._engine.sum_blocks(function, self._blocks, label=label)
        if lost > 0:
            function = partial(step_block, iterate=iterate)
            _, products, gram, *facts = self._engine.sum_blocks(function, self._blocks, label=label)
        return Sums(products / self.norm, gram), tuple(facts)

    def accept(self, step: Step, sums: Sums) -> None:
        """Make a tried step the current iterate."""
        self.iterate, self.sums = self.iterate.then(step), sums
        self.objective.append(max(sums.objective, 0.0))

    def recent_fall(self) -> float:
        """Relative fall of Q over the last iterations."""
        now, then = self.objective[-1], self.objective[-1 - min(WINDOW, len(self.objective) - 1)]
        return (then - now) / then if then > 0 else 0.0

    @property
    def rounding(self) -> float:
        """Differences of Q, which is at most 1 from the start on, that mean nothing."""
        return ROUNDING * float(np.finfo(self.dtype).eps)

    def settled(self, tol: float) -> bool:
        """Whether Q has stopped falling: by less than ``tol`` of itself over the last iterations.

        A start without structure first runs into the rank-one saddle, where Q hardly moves. As
        long as all rows of P are parallel because the start made them so, that is no end.
        """
        if self.objective[-1] <= self.rounding:
            return True
        if len(self.objective) <= WINDOW or self.recent_fall() > tol:
            return False
        if not isinstance(self.iterate.start, UniformStart):
            return True
        values = np.linalg.eigvalsh(self.sums.A)
        return len(values) == 1 or bool(values[-1] <= SAME_DIRECTION * values.sum())


# --------------------------------------------------------------------------------------------------
# The iterate: rows of F that stay with their block, small sums that travel.
#
# F (n × k) is as tall as the data, so it never travels. A row's next value needs only its own row
# of F, its row of X and small arrays that are the same for every row (k × m and k × k). An iterate
# is therefore a recipe: a start and the steps taken since, each holding its small arrays. Blocks
# keep their rows of the last few iterates in memory, under the step's serial number; what a block
# finds missing it computes again from the recipe, with the same arithmetic and so with the same
# bits. A trial step that is rejected is never part of a later recipe: there is nothing to undo.
#
# What is sent. A sweep sends :meth:`Iterate.brief`: the last step in full, the ones before it as
# serial numbers only, so that a sweep costs k·m numbers whatever the number of steps so far. A
# block that has lost its memory (a worker was replaced) cannot go on from that; it says so in the
# sums, and the sweep is repeated with the whole recipe, from which every block can rebuild its
# rows.


MEMORY = "glnp"
START = 0
"""Serial number of the start; steps count from 1."""


class Start(ABC):
    """Where the iteration begins: a row's first value follows from its number and its features."""

    @abstractmethod
    def apply(self, rows: Rows, first: int) -> Array:
        """F of rows that are numbered from ``first`` on.  (b, m) → (b, k)."""


@dataclass(frozen=True, eq=False)
class UniformStart(Start):
    """F ~ U[0, 1], the paper's start; the same numbers for any cut into blocks."""

    k: int
    seed: int

    def apply(self, rows: Rows, first: int) -> Array:
        return like(rows, row_noise(self.seed, first, first + rows.shape[0], self.k))


@dataclass(frozen=True, eq=False)
class ClusterStart(Start):
    """1 in the column of the nearest centre, a small floor elsewhere; for rows of any number."""

    centres: np.ndarray  # (k, m)

    def apply(self, rows: Rows, first: int) -> Array:
        k = len(self.centres)
        columns, values = nearest_landmarks(rows, self.centres, 1, whole=True)
        members = scatter(columns, namespace(values).ones_like(values), k)
        members = members.toarray() if sparse.issparse(members) else members
        members += FLOOR / k
        return members


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """One step from an iterate to the next."""

    serial: int  # number of the step among all that were tried in this fit

    @abstractmethod
    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
        """The next rows of F, and facts about the step that are summed over all blocks."""

    def next(self, rows: Rows, current: Array, previous: Array | None) -> Array:
        """The next rows of F alone."""
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
        raise LookupError("this step is known by its number only")


@dataclass(frozen=True, eq=False)
class ScaleStep(Step):
    """F ← F·diag(scale)."""

    scale: np.ndarray

    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
        return current * like(current, self.scale), ()


@dataclass(frozen=True, eq=False)
class Iterate:
    """F as a recipe."""

    plan: str  # token of the cut into blocks that the recipe is for
    offsets: np.ndarray  # what is subtracted from each feature before anything else, (m,)
    k: int
    start: Start | None  # None when it was left out
    lookback: int  # how many earlier iterates a step needs
    steps: tuple[Step, ...] = ()
    # Names this fit in the memory of a block; no number depends on it.
    fit: str = field(default_factory=lambda: uuid4().hex)

    def then(self, step: Step) -> Iterate:
        """The iterate after one step more."""
        return replace(self, steps=(*self.steps, step))

    def brief(self) -> Iterate:
        """Without what a block with its memory intact does not need."""
        # The first step only rescales the start and is not swept for, so no block remembers it yet.
        if len(self.steps) <= self.lookback + 1:
            return self
        earlier = (Forgotten(step.serial) for step in self.steps[-1 - self.lookback : -1])
        return replace(self, start=None, steps=(*earlier, self.steps[-1]))

    def rows(self, block: Block) -> Rows:
        """The block's rows, shifted."""
        return shifted(block.rows(), self.offsets)

    def features(self, block: Block) -> Array:
        """The block's rows of F, rebuilt when not remembered; only they are kept."""
        arrays = self.recall(block, len(self.steps), needed=1)
        if arrays is None:
            raise LookupError("a brief recipe cannot rebuild rows that were lost")
        self.remember(block, arrays[-1:])
        return arrays[-1]

    def remember(self, block: Block, arrays: Sequence[Array]) -> None:
        """Keep these rows: this iterate's last, those of the iterates before it first."""
        names = self._names()[-len(arrays) :]
        block.memory[MEMORY] = (self.fit, dict(zip(names, arrays, strict=True)))

    def recall(
        self, block: Block, n_steps: int, *, needed: int, rows: Rows | None = None
    ) -> list[Array] | None:
        """Rows of the ``needed`` last iterates up to that after ``n_steps`` steps, oldest first.

        There are fewer when there are not as many. Where some are missing, goes on from the latest
        iterate that a step can be taken from and replays the steps since; None when that is lost.
        """
        owner, stored = block.memory.get(MEMORY, ("", {}))
        if owner != self.fit:
            stored = {}
        names = self._names()
        last = int(self.start is not None) + n_steps
        wanted = names[max(0, last - needed) : last]
        if all(name in stored for name in wanted):
            return [stored[name] for name in wanted]
        if self.start is None:
            return None
        known = last
        while known and not all(
            name in stored for name in names[max(0, known - self.lookback) : known]
        ):
            known -= 1
        arrays = [stored[name] for name in names[max(0, known - self.lookback) : known]]
        rows = self.rows(block) if rows is None else rows
        if not arrays:
            arrays, known = [self.start.apply(rows, block.start)], 1
        for step in self.steps[known - 1 : n_steps]:
            previous = arrays[-2] if len(arrays) > 1 else None
            arrays = [*arrays, step.next(rows, arrays[-1], previous)][-self.lookback :]
        return arrays

    def _names(self) -> list[int]:
        """Serial numbers from the oldest iterate that the recipe knows to the newest."""
        return [START] * (self.start is not None) + [step.serial for step in self.steps]


def start_block(block: Block, iterate: Iterate) -> tuple[Any, ...]:
    """Make the block's first rows of F; return its part of ‖X‖², FᵀX and FᵀF."""
    rows = iterate.rows(block)
    norms = squared_norms(rows)
    check_finite(norms)
    if iterate.start is None:
        raise LookupError("a recipe without a start cannot begin")
    factor = iterate.start.apply(rows, block.start)
    iterate.remember(block, [factor])
    return norms.sum(dtype=namespace(norms).float64), factor.T @ rows, factor.T @ factor


def step_block(block: Block, iterate: Iterate) -> tuple[Any, ...]:
    """Take the last step of the recipe; return blocks lost (0 or 1), FᵀX, FᵀF and the facts.

    One read of the rows. The last step is always computed, also when its rows are remembered,
    because its facts are not.
    """
    step, lookback = iterate.steps[-1], iterate.lookback
    rows = iterate.rows(block)
    arrays = iterate.recall(block, len(iterate.steps) - 1, needed=lookback, rows=rows)
    if arrays is None:
        products = np.zeros((iterate.k, len(iterate.offsets)))
        return 1.0, products, np.zeros((iterate.k, iterate.k)), *step.no_facts()
    factor, facts = step.apply(rows, arrays[-1], arrays[-2] if len(arrays) > 1 else None)
    iterate.remember(block, [*arrays[-min(lookback, 2) :], factor])
    return 0.0, factor.T @ rows, factor.T @ factor, *facts
