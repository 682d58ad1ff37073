"""GLNP by multiplicative updates (Eq. GL_F_update and Algorithm 3 of the paper).

    F ← F ∘ (2B / (D + G))^(1/2),    B = XPᵀ,  D = F·A,  G = B·M,

with P = FᵀX, M = FᵀF, A = PPᵀ (see :mod:`biglp._lowrank.glnp.descent`); needs X ≥ 0. One sweep an
iteration, two products of n·m·k operations: X·Pᵀ for the step, FᵀX for the sums of its result.

Differences from the paper:

- a floor in the denominator: a row or column that dies is 0/0 otherwise;
- the exponent 1/2 is taken from quadratic problems, and for this quartic one nothing proves that
  Q falls. Exponent 1/4 does have a proof: with K = XXᵀ ≥ 0 and F' the new F, entry by entry,
  tr(F'ᵀF'F'ᵀKF') ≤ Σ (D+G)/2 · F'⁴/F³ and −2·tr(F'ᵀKF') ≤ −Σ 4B·F·log(F') + constant, both with
  equality at F' = F, and the sum of the bounds is least at F' = F ∘ (2B/(D+G))^(1/4). A step that
  would raise Q is taken again with 1/4. We never saw one, in 60,000 small random problems either;
- the end is judged by the fall of Q, which is free, not by the largest change in F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._core.arrays import Array, Rows, like, namespace
from biglp._lowrank.glnp.descent import Descent
from biglp._lowrank.glnp.iterate import Step
from biglp._lowrank.kernels import products


@dataclass(frozen=True, eq=False)
class MultiplicativeStep(Step):
    """One update.

    Attributes
    ----------
    P : ndarray of shape (k, m)
        Gives B = X·Pᵀ in units of ‖X‖ = 1.
    A, M : ndarray of shape (k, k)
        PPᵀ and FᵀF of the iterate the step starts from.
    cautious : bool
        Exponent 1/4 in place of 1/2.
    """

    P: np.ndarray
    A: np.ndarray
    M: np.ndarray
    cautious: bool = False

    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
        """Update the rows of a block."""
        B = products(rows, self.P)
        xp = namespace(B)
        denominator = current @ like(B, self.A)
        denominator += B @ like(B, self.M)
        # Small enough to change nothing else, large enough that B divided by it is finite.
        numbers = xp.finfo(B.dtype)
        ratio = 2.0 * B / denominator.clip(min=numbers.tiny / numbers.eps)
        ratio = xp.sqrt(xp.sqrt(ratio) if self.cautious else ratio)
        return current * ratio, ()


def descend_multiplicative(descent: Descent, *, max_iter: int, tol: float) -> bool:
    """Update until Q has settled; return whether it has within ``max_iter`` iterations."""
    return any(not _update(descent) or descent.settled(tol) for _ in range(max_iter))


def _update(descent: Descent) -> bool:
    """Take one step that does not raise Q; False when there is none.

    At a saddle Q falls by less than it is rounded, for hundreds of iterations: a rise within
    rounding is none, or the descent would end there.
    """
    now = descent.sums
    for cautious in (False, True):
        step = MultiplicativeStep(
            descent.next_serial(),
            descent.for_rows(now.P),
            descent.small(now.A),
            descent.small(now.M),
            cautious,
        )
        sums, _ = descent.trial(step)
        if sums.objective <= now.objective + descent.rounding:
            descent.accept(step, sums)
            return True
    return False
