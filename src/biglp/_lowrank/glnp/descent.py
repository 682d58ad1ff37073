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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, like, namespace, smallest
from biglp._core.blocks import Block
from biglp._core.errors import warn_caller
from biglp._engines import Engine
from biglp._lowrank.glnp.iterate import Iterate, Start, Step, start_block, step_block
from biglp._lowrank.kernels import relative_distances, scatter
from biglp._rows.source import row_noise

FLOOR = 0.5
"""What the clustered start spreads evenly over a row's columns, beside the 1 of its cluster."""
WINDOW = 10
"""Iterations over which the fall of Q is judged; a single one says little, least so at a saddle."""
SAME_DIRECTION = 0.99
"""Share of tr(A) in its largest eigenvalue above which all rows of P count as parallel."""
ROUNDING = 16.0
"""Q below this many units of rounding is as good as zero."""


@dataclass(frozen=True, eq=False)
class UniformStart(Start):
    """F ~ U[0, 1], the paper's start; the same numbers for any cut into blocks."""

    k: int
    seed: int

    def apply(self, block: Block, rows: Rows) -> Array:
        """Draw the numbers that belong to the block's rows."""
        return like(rows, row_noise(self.seed, block.start, block.stop, self.k))


@dataclass(frozen=True, eq=False)
class ClusterStart(Start):
    """1 in the column of the nearest centre, a small floor elsewhere."""

    centres: np.ndarray

    def apply(self, block: Block, rows: Rows) -> Array:
        """Find the nearest centre of each row."""
        return self.of(rows)

    def of(self, rows: Rows) -> Array:
        """The same for rows of no block."""
        k = len(self.centres)
        columns, values = smallest(relative_distances(rows, self.centres), 1)
        members = scatter(columns, namespace(values).ones_like(values), k)
        members = members.toarray() if sparse.issparse(members) else members
        members += FLOOR / k
        return members


@dataclass(frozen=True, eq=False)
class ScaleStep(Step):
    """F ← F·diag(scale)."""

    scale: np.ndarray

    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
        """Scale the columns."""
        return current * like(current, self.scale), ()


@dataclass(frozen=True)
class Sums:
    """What is known of F once its rows are summed.

    Attributes
    ----------
    P : ndarray of shape (k, m)
        FᵀX / ‖X‖.
    M : ndarray of shape (k, k)
        FᵀF.
    """

    P: np.ndarray
    M: np.ndarray

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

    def parallel(self) -> bool:
        """Whether all rows of P point the same way, as at the rank-one saddle."""
        values = np.linalg.eigvalsh(self.A)
        return bool(len(values) > 1 and values[-1] > SAME_DIRECTION * values.sum())


class Descent:
    """The accepted iterate, its sums, and the objective so far.

    Parameters
    ----------
    engine, blocks
        The rows, and the engine that visits them.
    iterate : Iterate
        The start, no steps taken.
    dtype : numpy.dtype
        Precision of the rows; the small arrays of a step are kept in it.

    Attributes
    ----------
    norm : float
        ‖X‖, or 1 when all rows are zero.
    sums : Sums
        Sums of the accepted iterate.
    objective : list of float
        Q/‖X‖² of every accepted iterate, the start first; it never rises.
    """

    def __init__(
        self, engine: Engine, blocks: Sequence[Block], iterate: Iterate, dtype: np.dtype[Any]
    ) -> None:
        self._engine, self._blocks = engine, blocks
        self._serial = 0
        self.iterate, self.dtype = iterate, np.dtype(dtype)
        squared, products, gram = engine.sum_blocks(
            partial(start_block, iterate=iterate), blocks, label="GLNP start"
        )
        self.empty = float(squared) == 0.0
        self.norm = 1.0 if self.empty else float(np.sqrt(squared))
        self.sums = Sums(products / self.norm, gram)
        self._rescale()
        self.objective = [0.0 if self.empty else max(self.sums.objective, 0.0)]

    def next_serial(self) -> int:
        """Number the next trial."""
        self._serial += 1
        return self._serial

    def small(self, array: np.ndarray) -> np.ndarray:
        """Round a small array to the precision of the rows, in which it will be used."""
        return array.astype(self.dtype)

    def for_rows(self, P: np.ndarray) -> np.ndarray:
        """Return P̃ such that X·P̃ᵀ is B in units of ‖X‖ = 1.  (k, m)."""
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
        return not (isinstance(self.iterate.start, UniformStart) and self.sums.parallel())

    def _rescale(self) -> None:
        """Give the start its best length; columns of a clustering first get length 1."""
        scale = np.ones(self.iterate.k)
        if isinstance(self.iterate.start, ClusterStart):
            scale = 1.0 / np.sqrt(np.diag(self.sums.M))
        sums = self.sums.scaled(scale)
        quartic = float(np.sum(sums.A * sums.M))
        if quartic > 0:
            scale = scale * np.sqrt(np.trace(sums.A) / quartic)
        step = ScaleStep(self.next_serial(), self.small(scale))
        self.iterate = self.iterate.then(step)
        self.sums = self.sums.scaled(step.scale.astype(np.float64))


def warn_stopped_short(max_iter: int, falls: float, tol: float, advice: list[str]) -> None:
    """Warn that iterations ended while Q was still falling."""
    from biglp._core.errors import StoppedShortWarning  # loads scikit-learn, so only now

    more = 5 * max_iter
    first = f"factor_params={{'max_iter': {more}}} (--factor-params max_iter={more})"
    warn_caller(
        f"GLNP stopped after {max_iter} iterations while its objective was still falling "
        f"(by {falls:.1%} over the last ones, tol={tol:g}); use {', or '.join([first, *advice])}.",
        StoppedShortWarning,
    )
