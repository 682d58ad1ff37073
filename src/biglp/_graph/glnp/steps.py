"""GLNP by accelerated projected gradient (Algorithms 1 and 4 of the paper, corrected).

    Y = F_t + β(F_t − F_(t−1))                        β = (γ_(t−1) − 1)/γ_t,  γ_1 = 1
    F_(t+1) = max(Y − η·∇Q(Y), 0)                     γ_(t+1) = (1 + √(1 + 4γ_t²))/2
    ∇Q(Y) = 2Y·A + B·(2M − 4I)                        A, B, M of Y

P of Y is linear in those of F_t and F_(t−1), and M of Y follows from M_t, M_(t−1) and
N = F_tᵀF_(t−1). So Q(Y) needs no rows, and a trial step is one sweep with two products of n·m·k
operations: X·Pᵀ for the gradient at Y, FᵀX for the sums of the result. X may have any sign.

Differences from the paper, beside its slips (own counter γ, Frobenius norms,
nothing accepted from a line search that failed):

- The step length. The paper moves by α ≤ 1 along the gradient divided by its norm, which has to
  shrink as the gradient does. η multiplies the gradient itself; it starts at 1 (Q is in units of
  ‖X‖² = 1), is halved when a trial fails and grows by a fifth when the first trial succeeds.
- The line search. The paper asks Q(F') − Q(Y) ≤ σ⟨∇Q(Y), F' − Y⟩, which belongs to a feasible Y.
  Y has negative entries where F_t shrank; projecting them alone can raise Q, and then no η is small
  enough: on MNIST 7 v 9 the iteration stood still for 80 steps with η = 10⁻⁹. The test here is
  Q(F') ≤ Q(Y) + ⟨∇Q(Y), F' − Y⟩ + ‖F' − Y‖²/2η, which a small enough η always meets, and which at
  a feasible Y implies the paper's with σ = 1/2, because ⟨∇Q(Y), F' − Y⟩ ≤ −‖F' − Y‖²/η there.
- Restart. When the step from Y would raise Q above Q(F_t) it is dropped, γ is set back and the step
  is taken from F_t itself, where it cannot: Q never rises.
- The end. ‖∇ᴾQ(F_t)‖ ≤ ε‖∇Q(F_0)‖ with ∇ᴾ = ∇Q where F > 0 and min(0, ∇Q) where F = 0. The
  gradient at F_t is not the one at Y and costs half as much again as the sweep, so it is looked at
  every tenth iteration. It also ends when Q has settled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from biglp._core.arrays import Array, Rows, like, namespace
from biglp._graph.glnp.descent import Descent, Step, Sums
from biglp._graph.kernels import products

FIRST_STEP = 1.0
SHRINK = 0.5
GROW = 1.2
MAX_TRIALS = 30
CHECK_EVERY = 10


class Gradient(NamedTuple):
    """What a block needs to compute ∇Q at a point: 2F·A + X·Pᵀ·(2M − 4I)."""

    P: np.ndarray  # (k, m), gives B = X·Pᵀ in units of ‖X‖ = 1
    on_factor: np.ndarray  # (k, k), 2A
    on_product: np.ndarray  # (k, k), 2M − 4I

    @classmethod
    def from_sums(cls, sums: Sums, descent: Descent) -> Gradient:
        on_product = 2.0 * sums.M - 4.0 * np.eye(len(sums.M))
        return cls(descent.for_rows(sums.P), descent.small(2.0 * sums.A), descent.small(on_product))

    def of(self, rows: Rows, factor: Array) -> Array:
        """Gradient for the rows of a block.  (b, m), (b, k) → (b, k)."""
        gradient = products(rows, self.P) @ like(factor, self.on_product)
        gradient += factor @ like(factor, self.on_factor)
        return gradient


class Facts(NamedTuple):
    """What a trial step tells beside its sums."""

    N: np.ndarray  # (k, k), F'ᵀF_t
    slope: float  # ⟨∇Q(Y), F' − Y⟩
    distance: float  # ‖F' − Y‖²
    gradient: float  # ‖∇Q(Y)‖²
    projected: float  # ‖∇ᴾQ(F_t)‖², where asked for


@dataclass(frozen=True, eq=False)
class GradientStep(Step):
    """One projected step from Y = F_t + β(F_t − F_(t−1))."""

    beta: float  # momentum
    eta: float  # step length
    gradient: Gradient  # at Y
    checked: Gradient | None = None  # at F_t, when the projected gradient is asked for

    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
        Y = self._extrapolated(current, previous)
        gradient = self.gradient.of(rows, Y)
        factor = (Y - self.eta * gradient).clip(min=0)
        move = factor - Y
        projected: Any = 0.0
        if self.checked is not None:
            here = gradient if self.beta == 0 else self.checked.of(rows, current)
            projected = _dot(here, here, where=(current > 0) | (here < 0))
        return factor, Facts(
            factor.T @ current,
            _dot(gradient, move),
            _dot(move, move),
            _dot(gradient, gradient),
            projected,
        )

    def next(self, rows: Rows, current: Array, previous: Array | None) -> Array:
        # Without the facts, which take as long again.
        Y = self._extrapolated(current, previous)
        return (Y - self.eta * self.gradient.of(rows, Y)).clip(min=0)

    def _extrapolated(self, current: Array, previous: Array | None) -> Array:
        if self.beta > 0 and previous is not None:
            return current + self.beta * (current - previous)
        return current

    def no_facts(self) -> tuple[Any, ...]:
        return Facts(np.zeros_like(self.gradient.on_factor), 0.0, 0.0, 0.0, 0.0)


class Momentum:
    """The two last iterates as sums, and Nesterov's γ."""

    def __init__(self) -> None:
        self.gamma, self.beta = 1.0, 0.0
        self._before: tuple[Sums, np.ndarray] | None = None

    def extrapolated(self, now: Sums) -> Sums:
        """Sums of Y = (1 + β)F_t − β·F_(t−1)."""
        if self.beta == 0 or self._before is None:
            return now
        before, N = self._before
        a, b = 1.0 + self.beta, -self.beta
        M = a * a * now.M + a * b * (N + N.T) + b * b * before.M
        return Sums(a * now.P + b * before.P, M)

    def advance(self, before: Sums, N: np.ndarray) -> None:
        """Count an accepted step from ``before``; N = F_(t+1)ᵀF_t."""
        gamma = (1.0 + math.sqrt(1.0 + 4.0 * self.gamma**2)) / 2.0
        self.beta, self.gamma = (self.gamma - 1.0) / gamma, gamma
        self._before = before, N

    def restart(self) -> None:
        """Forget the speed."""
        self.gamma, self.beta = 1.0, 0.0


def descend_gradient(descent: Descent, *, max_iter: int, tol: float) -> bool:
    """Step until the projected gradient is small or Q has settled; return whether that happened.

    ``tol`` is ε of the projected-gradient rule, and the relative fall of Q that counts as none.
    """
    momentum, eta, first_norm = Momentum(), FIRST_STEP, 0.0
    for iteration in range(max_iter):
        check = iteration % CHECK_EVERY == 0
        before = descent.sums
        taken = _step(descent, momentum, eta, check)
        if taken is None and momentum.beta > 0:
            momentum.restart()
            taken = _step(descent, momentum, eta, check)
        if taken is None:
            return True  # no step lowers Q: as far down as rounding allows
        eta, facts = taken
        if iteration == 0:
            first_norm = math.sqrt(facts.gradient)
        momentum.advance(before, facts.N)
        if check and math.sqrt(facts.projected) <= tol * first_norm:
            return True
        if descent.settled(tol):
            return True
    return False


def _step(
    descent: Descent, momentum: Momentum, eta: float, check: bool
) -> tuple[float, Facts] | None:
    """Search for a step length and accept the step; return the length to try next and the facts.

    None, and nothing accepted, when the search fails or Q would rise.
    """
    now = descent.sums
    Y = momentum.extrapolated(now)
    gradient = Gradient.from_sums(Y, descent)
    checked = None
    if check:
        checked = gradient if momentum.beta == 0 else Gradient.from_sums(now, descent)
    for trial in range(MAX_TRIALS):
        step = GradientStep(descent.next_serial(), momentum.beta, eta, gradient, checked)
        sums, raw = descent.trial(step)
        facts = Facts(*raw)
        bound = Y.objective + facts.slope + facts.distance / (2.0 * eta)
        if sums.objective <= bound:
            if sums.objective > now.objective:
                return None
            descent.accept(step, sums)
            return (eta * GROW if trial == 0 else eta), facts
        eta *= SHRINK
    return None


def _dot(left: Array, right: Array, where: Array | None = None) -> Array:
    """Sum of products of all entries, in float64."""
    entries = left * right
    if where is not None:
        entries = entries * where
    return entries.sum(dtype=namespace(entries).float64)


# --------------------------------------------------------------------------------------------------
# GLNP by multiplicative updates (Eq. GL_F_update and Algorithm 3 of the paper).
#
#     F ← F ∘ (2B / (D + G))^(1/2),    B = XPᵀ,  D = F·A,  G = B·M,
#
# with P = FᵀX, M = FᵀF, A = PPᵀ (see :mod:`biglp._graph.glnp.descent`); needs X ≥ 0. One sweep an
# iteration, two products of n·m·k operations: X·Pᵀ for the step, FᵀX for the sums of its result.
#
# Differences from the paper:
#
# - a floor in the denominator: a row or column that dies is 0/0 otherwise;
# - the exponent 1/2 is taken from quadratic problems, and for this quartic one nothing proves that
#   Q falls. Exponent 1/4 does have a proof: with K = XXᵀ ≥ 0 and F' the new F, entry by entry,
#   tr(F'ᵀF'F'ᵀKF') ≤ Σ (D+G)/2 · F'⁴/F³ and −2·tr(F'ᵀKF') ≤ −Σ 4B·F·log(F') + constant, both with
#   equality at F' = F, and the sum of the bounds is least at F' = F ∘ (2B/(D+G))^(1/4). A step that
#   would raise Q is taken again with 1/4. We never saw one, in 60,000 small random problems either;
# - the end is judged by the fall of Q, which is free, not by the largest change in F.


@dataclass(frozen=True, eq=False)
class MultiplicativeStep(Step):
    """One update."""

    P: np.ndarray  # (k, m), gives B = X·Pᵀ in units of ‖X‖ = 1
    A: np.ndarray  # PPᵀ and
    M: np.ndarray  # FᵀF of the iterate the step starts from, (k, k)
    cautious: bool = False  # exponent 1/4 in place of 1/2

    def apply(
        self, rows: Rows, current: Array, previous: Array | None
    ) -> tuple[Array, tuple[Any, ...]]:
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
    """Update until Q has settled; return whether it has within ``max_iter`` iterations.

    At a saddle Q falls by less than it is rounded, for hundreds of iterations: a rise within
    rounding is none, or the descent would end there.
    """
    for _ in range(max_iter):
        now = descent.sums
        P, A, M = descent.for_rows(now.P), descent.small(now.A), descent.small(now.M)
        for cautious in (False, True):
            step = MultiplicativeStep(descent.next_serial(), P, A, M, cautious)
            sums, _ = descent.trial(step)
            if sums.objective <= now.objective + descent.rounding:
                descent.accept(step, sums)
                break
        else:
            return True  # no step lowers Q
        if descent.settled(tol):
            return True
    return False
