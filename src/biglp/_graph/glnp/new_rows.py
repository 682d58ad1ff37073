"""F of new rows: the steps that a training row with the same features took.

Training ends before every row is at its minimum, and with more prototypes than features a row has
many minima: where its f ends depends on the way there. A step needs of a row nothing but its
features and its f, and small arrays that are the same for all rows. So new rows begin where a
training row of the same features begins, take the same steps, and end with the same labels.

The arrays of T steps are T·(k·m + k²) numbers. They hardly change from one step to the next, so
that a few patterns and T weights for each of them tell them all (:class:`Patterns`). A is not kept:
it is PPᵀ.

The paper's start is drawn for each row by its number, which new rows have not; they have the
formula of :mod:`.factor` then, which :func:`nonnegative_least_squares` solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, like, namespace
from biglp._graph.glnp.descent import ClusterStart, Iterate, Step
from biglp._graph.glnp.steps import Gradient, GradientStep, MultiplicativeStep

PRECISION = 1e-4
"""What patterns leave out of all arrays, relative to their size."""
MOST_NUMBERS = 200_000_000
"""Numbers in the arrays of all steps beyond which there is no course: a model would be large."""
PART_BYTES = 8 << 20
"""Working memory of finding the patterns, and of rows that take their steps together."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """T arrays of one shape as sums of a few."""

    weights: np.ndarray  # (T, r)
    arrays: np.ndarray  # (r, ...)

    @classmethod
    def from_arrays(cls, arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> Patterns:
        """Find the leading singular vectors of all arrays, a part of their entries at a time."""
        count, size = len(arrays), int(np.prod(shape))
        if not count:
            return cls(np.zeros((0, 0)), np.zeros((0, *shape), dtype=np.float32))
        lines = [array.reshape(-1) for array in arrays]
        at_once = max(PART_BYTES // (8 * count), 1)

        def entries(start: int) -> np.ndarray:
            some = [line[start : start + at_once] for line in lines]
            return np.array(some, dtype=np.float64)

        gram = np.zeros((count, count))
        for start in range(0, size, at_once):
            some = entries(start)
            gram += some @ some.T
        values, vectors = np.linalg.eigh(gram)
        # What the smallest ones would add: increasing order, so that sums from the left are tails.
        dropped = np.cumsum(np.maximum(values, 0.0))
        weights = vectors[:, dropped > PRECISION**2 * dropped[-1]]
        # Numbers near 1 fit into float32 whatever the size of the rows.
        length = float(np.sqrt(dropped[-1])) or 1.0
        patterns = np.empty((weights.shape[1], size), dtype=np.float32)
        for start in range(0, size, at_once):
            patterns[:, start : start + at_once] = weights.T @ (entries(start) / length)
        return cls(weights * length, patterns.reshape(-1, *shape))

    def __getitem__(self, index: int) -> np.ndarray:
        return np.tensordot(self.weights[index], self.arrays, axes=1)


@dataclass(frozen=True, eq=False)
class NewRowSteps:
    """Start and steps of a fit, for rows that were not in it."""

    centres: np.ndarray  # the start, (k, m)
    scale: np.ndarray  # lengths of its columns, (k,)
    # β and η of each gradient step (T, 2), or whether a multiplicative one was cautious (T, 1).
    moves: np.ndarray
    P: Patterns  # of each step, as Gradient and MultiplicativeStep have them
    M: Patterns
    size: float  # A is this times PPᵀ

    @classmethod
    def from_iterate(cls, iterate: Iterate) -> NewRowSteps | None:
        """Take down the steps of a fit.

        None where its start is drawn by the number of a row, or they would make a model too large.
        """
        if not isinstance(iterate.start, ClusterStart):
            return None
        first: Any = iterate.steps[0]  # which gives the columns their lengths
        steps: list[Any] = [*iterate.steps[1:]]
        if all(isinstance(step, GradientStep) for step in steps):
            moves = np.array([(step.beta, step.eta) for step in steps]).reshape(-1, 2)
            P, A, M = ([step.gradient[i] for step in steps] for i in range(3))
        else:
            moves = np.array([[float(step.cautious)] for step in steps])
            P, A, M = ([getattr(step, name) for step in steps] for name in "PAM")
        k, m = iterate.start.centres.shape
        if len(steps) * k * (m + k) > MOST_NUMBERS:
            return None
        size = float(np.trace(A[-1]) / (np.vdot(P[-1], P[-1]) or 1.0)) if steps else 0.0
        patterns = Patterns.from_arrays(P, (k, m)), Patterns.from_arrays(M, (k, k))
        return cls(iterate.start.centres, first.scale, moves, *patterns, size)

    def follow(self, rows: Rows) -> Array:
        """F of shifted rows.  (b, m) → (b, k)."""
        dtype, multiplicative = self.centres.dtype, self.moves.shape[1] == 1
        at_once = max(PART_BYTES // (8 * len(self.centres)), 1)
        parts = []
        for start in range(0, max(rows.shape[0], 1), at_once):
            some = rows[start : start + at_once]
            if multiplicative:  # below the least value in training: as that one
                some = some.maximum(0) if sparse.issparse(some) else some.clip(min=0)
            previous: Array | None = None
            current = ClusterStart(self.centres).apply(some, start)
            current = current * like(current, self.scale)
            for index, (first, *other) in enumerate(self.moves.tolist()):
                P, M = self.P[index], self.M[index]
                if multiplicative:  # sums of patterns are 0 but for rounding, which has no root
                    P, M = np.maximum(P, 0.0), np.maximum(M, 0.0)
                A = self.size * (P @ P.T)
                P, A, M = (array.astype(dtype) for array in (P, A, M))
                step: Step = (
                    MultiplicativeStep(index, P, A, M, cautious=bool(first))
                    if multiplicative
                    else GradientStep(index, first, other[0], Gradient(P, A, M))
                )
                previous, current = current, step.next(some, current, previous)
            parts.append(current)
        return parts[0] if len(parts) == 1 else namespace(parts[0]).concatenate(parts)

    def state(self) -> dict[str, np.ndarray]:
        # The keys are those of model files.
        return {
            "course_centres": self.centres,
            "course_scale": self.scale,
            "course_moves": self.moves,
            "course_size": np.array(self.size),
            "course_P": self.P.arrays,
            "course_P_weights": self.P.weights,
            "course_M": self.M.arrays,
            "course_M_weights": self.M.weights,
        }

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> NewRowSteps | None:
        """Rebuild from :meth:`state`; None where it is not there, as in earlier models."""
        if "course_moves" not in state:
            return None
        named = {name.removeprefix("course_"): array for name, array in state.items()}
        P = Patterns(named["P_weights"], named["P"])
        M = Patterns(named["M_weights"], named["M"])
        size = float(named["size"])
        return cls(named["centres"], named["scale"], named["moves"], P, M, size)


# --------------------------------------------------------------------------------------------------
# Many small non-negative least-squares problems with one matrix.
#
# For every row c of C (b × k):  minimise f·H·fᵀ − 2·c·fᵀ over f ≥ 0, with H (k × k) positive
# semi-definite. With H = PPᵀ and c = x·Pᵀ this is f ≥ 0 minimising ‖x − f·P‖².
#
# All rows are worked on at once. Cyclic coordinate descent finds which entries of f are positive
# long before it finds their values; so every few cycles the minimum over the present support is
# computed exactly, entries that would turn negative being dropped one after the other (the inner
# loop of Lawson and Hanson). A row whose minimum leaves no other entry a reason to grow (the KKT
# conditions) is finished; the others go on. Both parts lower the objective, so no support comes
# back, and where coordinate descent alone would need thousands of cycles some tens are enough.


CYCLES = 5
"""Cycles of coordinate descent between two looks at the support."""
MAX_ROUNDS = 100
"""Looks before the rest is left as it is: feasible and near the minimum."""
TOLERANCE = 1e-10
"""Violation of the KKT conditions, relative to the largest entry of c, that counts as rounding."""
RIDGE = 1e-14
"""Added to a diagonal of 1, so that parallel columns do not make a support singular."""
CELLS = 1 << 21
"""Numbers in the small systems solved at once."""


def nonnegative_least_squares(C: Array, H: np.ndarray) -> Array:
    """F (b, k) of every row's problem: C (b, k) in float64, of NumPy or torch, and H (k, k).

    Where H is zero, C is too, and f stays zero.
    """
    xp = namespace(C)
    diagonal = np.diag(H)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    H = like(C, H / scale / scale[:, None])
    C = C / like(C, scale)
    F = xp.zeros_like(C)
    open_rows = xp.cumsum(xp.ones_like(C[:, 0]), 0) - 1
    open_rows = xp.asarray(open_rows, dtype=xp.int64)
    # One variable of all rows is a contiguous line, which is what a cycle goes through.
    c = xp.stack(list(C.T))
    f = xp.zeros_like(c)
    for _ in range(MAX_ROUNDS):
        for _ in range(CYCLES):
            for j in range(len(f)):
                f[j] = (f[j] + c[j] - H[j] @ f).clip(min=0)
        best = _on_support(f.T, c.T, H)
        slack = TOLERANCE * xp.amax(xp.abs(c), 0)[:, None]
        finished = (c.T - best @ H <= slack).all(1)
        F[open_rows[finished]] = best[finished]
        open_rows, c = open_rows[~finished], c[:, ~finished]
        f = xp.stack(list(best[~finished].T))
        if not len(open_rows):
            break
    F[open_rows] = f.T
    return F / like(C, scale)


def _on_support(f: Array, c: Array, H: Array) -> Array:
    """Find the minimum over the positive entries of f, less those that would turn negative.

    (b, k), (b, k), (k, k) → (b, k).
    """
    xp = namespace(f)
    f = f + 0.0  # a copy, which is written to
    blocked = f[:, 0] >= 0
    while bool(blocked.any()):
        todo = xp.where(blocked)[0]
        width = max(1, int(xp.amax((f[todo] > 0).sum(1))))
        rows_each = max(1, CELLS // width**2)
        for first in range(0, len(todo), rows_each):
            part = todo[first : first + rows_each]
            f[part], blocked[part] = _move(f[part], c[part], H, width)
    return f


def _move(f: Array, c: Array, H: Array, width: int) -> tuple[Array, Array]:
    """Go towards the minimum over the positive entries, ``width`` at most, until one is zero.

    Returns the new f and whether something was in the way. The systems of rows with fewer entries
    are padded with ones on the diagonal.
    """
    xp = namespace(f)
    columns = xp.argsort(-f, 1)[:, :width]
    rows = xp.ones_like(columns[:, :1]).cumsum(0) - 1
    old = f[rows, columns]
    used = old > 0
    systems = H[columns[:, :, None], columns[:, None, :]] * (used[:, :, None] & used[:, None, :])
    systems += like(f, np.eye(width)) * xp.where(used, RIDGE, 1.0)[:, :, None]
    new = xp.linalg.solve(systems, (c[rows, columns] * used)[:, :, None])[:, :, 0]
    falling = new < 0
    way = xp.where(falling, old / xp.where(falling, old - new, 1.0), 1.0)
    share = xp.amin(way, 1)[:, None]
    moved = xp.zeros_like(f)
    # The entry that is first to reach zero is put there, not merely near it: it leaves the support.
    moved[rows, columns] = xp.where(falling & (way <= share), 0.0, old + share * (new - old))
    return moved, falling.any(1)
