"""F of new rows: the course that a training row with the same features took.

Training ends before every row is at its minimum, and with more prototypes than features a row has
many minima: where its f ends depends on the way there. A step needs of a row nothing but its
features and its f, and small arrays that are the same for all rows. So new rows begin where a
training row of the same features begins, take the same steps, and end with the same labels.

The arrays of T steps are T·(k·m + k²) numbers. They hardly change from one step to the next, so
that a few patterns and T weights for each of them tell them all (:class:`Patterns`). A is not kept:
it is PPᵀ.

The paper's start is drawn for each row by its number, which new rows have not; they have the
formula of :mod:`.factor` then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._core.arrays import Array, Rows, like, namespace
from biglp._lowrank.glnp.descent import ClusterStart
from biglp._lowrank.glnp.gradient import Gradient, GradientStep
from biglp._lowrank.glnp.iterate import Iterate, Step
from biglp._lowrank.glnp.multiplicative import MultiplicativeStep

PRECISION = 1e-4
"""What patterns leave out of all arrays, relative to their size."""
MOST_NUMBERS = 200_000_000
"""Numbers in the arrays of all steps beyond which there is no course: a model would be large."""
PART_BYTES = 8 << 20
"""Working memory of finding the patterns, and of rows that take their steps together."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """T arrays of one shape as sums of a few.

    Attributes
    ----------
    weights : ndarray of shape (T, r)
    arrays : ndarray of shape (r, ...)
    """

    weights: np.ndarray
    arrays: np.ndarray

    @classmethod
    def of(cls, arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> Patterns:
        """Find the leading singular vectors of all arrays, a part of their entries at a time."""
        count, size = len(arrays), int(np.prod(shape))
        if not count:
            return cls(np.zeros((0, 0)), np.zeros((0, *shape), dtype=np.float32))
        lines = [array.reshape(-1) for array in arrays]
        each = max(PART_BYTES // (8 * count), 1)
        gram = np.zeros((count, count))
        for start in range(0, size, each):
            part = _part(lines, start, start + each)
            gram += part @ part.T
        values, vectors = np.linalg.eigh(gram)
        # What the smallest ones would add: increasing order, so that sums from the left are tails.
        left_out = np.cumsum(np.maximum(values, 0.0))
        weights = vectors[:, left_out > PRECISION**2 * left_out[-1]]
        # Numbers near 1 fit into float32 whatever the size of the rows.
        length = float(np.sqrt(left_out[-1])) or 1.0
        found = np.empty((weights.shape[1], size), dtype=np.float32)
        for start in range(0, size, each):
            found[:, start : start + each] = weights.T @ (
                _part(lines, start, start + each) / length
            )
        return cls(weights * length, found.reshape(-1, *shape))

    def __getitem__(self, place: int) -> np.ndarray:
        return np.tensordot(self.weights[place], self.arrays, axes=1)


def _part(lines: list[np.ndarray], start: int, stop: int) -> np.ndarray:
    return np.array([line[start:stop] for line in lines], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Course:
    """Start and steps of a fit, for rows that were not in it.

    Attributes
    ----------
    centres : ndarray of shape (k, m)
        The start.
    scale : ndarray of shape (k,)
        Lengths of its columns.
    moves : ndarray of shape (T, 2) or (T, 1)
        β and η of each gradient step, or whether a multiplicative one was cautious.
    P, M : Patterns
        Those of each step, as :class:`.Gradient` and :class:`.MultiplicativeStep` have them.
    size : float
        A is this times PPᵀ.
    """

    centres: np.ndarray
    scale: np.ndarray
    moves: np.ndarray
    P: Patterns
    M: Patterns
    size: float

    @classmethod
    def of(cls, iterate: Iterate) -> Course | None:
        """Take down the steps of a fit.

        None where its start is drawn by the number of a row, or they would make a model too large.
        """
        if not isinstance(iterate.start, ClusterStart):
            return None
        first: Any = iterate.steps[0]  # which gives the columns their lengths
        steps: list[Any] = [*iterate.steps[1:]]
        if all(isinstance(step, GradientStep) for step in steps):
            moves = np.array([(step.beta, step.eta) for step in steps]).reshape(-1, 2)
            parts = [step.gradient for step in steps]
            P, A, M = ([part[place] for part in parts] for place in range(3))
        else:
            moves = np.array([[float(step.cautious)] for step in steps])
            P, A, M = ([getattr(step, name) for step in steps] for name in "PAM")
        k, m = iterate.start.centres.shape
        if len(steps) * k * (m + k) > MOST_NUMBERS:
            return None
        size = float(np.trace(A[-1]) / (np.vdot(P[-1], P[-1]) or 1.0)) if steps else 0.0
        found = Patterns.of(P, (k, m)), Patterns.of(M, (k, k))
        return cls(iterate.start.centres, first.scale, moves, *found, size)

    def steps(self, dtype: np.dtype[Any]) -> Iterator[Step]:
        """Yield the steps, made when they are wanted."""
        gradient = self.moves.shape[1] == 2
        for place, (first, *other) in enumerate(self.moves.tolist()):
            P, M = self.P[place], self.M[place]
            A = self.size * (P @ P.T)
            P, A, M = (array.astype(dtype) for array in (P, A, M))
            if gradient:
                yield GradientStep(place, first, other[0], Gradient(P, A, M))
            else:
                yield MultiplicativeStep(place, P, A, M, cautious=bool(first))

    def follow(self, rows: Rows) -> Array:
        """F of shifted rows.  (b, m) → (b, k)."""
        each = max(PART_BYTES // (8 * len(self.centres)), 1)
        if rows.shape[0] <= each:
            return self._follow(rows)
        parts = [
            self._follow(rows[start : start + each]) for start in range(0, rows.shape[0], each)
        ]
        return namespace(parts[0]).concatenate(parts)

    def _follow(self, rows: Rows) -> Array:
        previous: Array | None = None
        current = ClusterStart(self.centres).of(rows)
        current = current * like(current, self.scale)
        for step in self.steps(self.centres.dtype):
            previous, current = current, step.next(rows, current, previous)
        return current

    def state(self) -> dict[str, np.ndarray]:
        """Arrays for a model file."""
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
    def from_state(cls, state: dict[str, np.ndarray]) -> Course | None:
        """Rebuild from :meth:`state`; None where it is not there, as in earlier models."""
        if "course_moves" not in state:
            return None
        named = {name.removeprefix("course_"): array for name, array in state.items()}
        P = Patterns(named["P_weights"], named["P"])
        M = Patterns(named["M_weights"], named["M"])
        size = float(named["size"])
        return cls(named["centres"], named["scale"], named["moves"], P, M, size)
