"""GLNP: global linear neighbourhoods (section 2.3, Eq. GL_F of the paper).

W = FFᵀ with F ≥ 0 (n × k) minimising Q(F) = ‖X − FFᵀX‖²: every row is rebuilt from all the others
through k prototypes P = FᵀX (k × m). The parts:

- :mod:`.descent`: objective, start, when to stop, and how rows of F stay with their blocks;
- :mod:`.steps`: the two ways to take a step;
- here: the factor, and its steps for new rows.

A row's f is the one that training ends with. New rows take the steps that training took, so that
the same row has the same label, in training or later. Where these do not say it (the paper's start)
they have the f of the end that training goes to: where the gradient of Q vanishes, each row of F is
the f ≥ 0 minimising f·PPᵀ·fᵀ − 2·x·Pᵀ·(2I − FᵀF)·fᵀ, a small non-negative least-squares problem of
the row alone. Its second term weighs what the row does to the prototypes.

Features with negative values are shifted (Algorithm S.1), and the offsets are kept for new rows.
The multiplicative rule needs X ≥ 0. The accelerated gradient does not, but both then solve the same
problem, and FFᵀ ≥ 0 rebuilds rows from others that point the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, check_finite, like, namespace, squared_norms
from biglp._core.blocks import Block
from biglp._core.errors import LandmarkWarning, ParameterError, warn_caller
from biglp._core.parameters import anything, not_negative, not_negative_integer
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._graph.factor import SWEEP_ENTRY, Factor
from biglp._graph.glnp.descent import (
    ClusterStart,
    Descent,
    Iterate,
    Start,
    Step,
    UniformStart,
)
from biglp._graph.glnp.steps import (
    Gradient,
    GradientStep,
    MultiplicativeStep,
    descend_gradient,
    descend_multiplicative,
)
from biglp._graph.graph import TrainingRows
from biglp._graph.kernels import pair_seconds, products
from biglp._graph.landmarks import choose_landmarks
from biglp._graph.linear import negative_offsets, shifted

STARTS = ("clusters", "uniform")
SOLVERS = {"gradient": (descend_gradient, 2), "multiplicative": (descend_multiplicative, 1)}
"""Solvers, with the number of earlier iterates that their steps need."""
MOST_ITERATIONS = 1000
"""Iterations after which it stops in any case; from the default start it settles before."""
WORTH_SAYING = 0.01
"""Relative fall of Q over the last iterations above which stopping there is worth a warning."""
ITERATES, SPARE_BYTES = 7, 64 << 20
"""What is held of each row, counted in rows of F, and what many sweeps leave in the allocator."""
USUAL_SWEEPS = 250
"""Sweeps until it stops, on data that is not easy."""


class GlnpFactor(Factor):
    """Global linear neighbourhoods."""

    kind = "glnp"
    params = {  # noqa: RUF012
        "start": anything,
        "max_iter": not_negative_integer,
        "tol": not_negative,
    }
    scales_features = False
    learnt = True
    overwritable = False  # the rows of F stay with their blocks for the next sweep
    solver: ClassVar[str] = "gradient"

    def __init__(
        self,
        P: np.ndarray,
        offsets: np.ndarray,
        M: np.ndarray,
        iterate: Iterate | None = None,
        new_rows: NewRowSteps | Iterate | None = None,
    ) -> None:
        """Prototypes FᵀX (k, m), what is subtracted from each feature (m,), and FᵀF (k, k).

        ``iterate`` is the recipe for the F of the training rows; without it every row counts as
        new. ``new_rows`` is that for new rows, or what it is made from when it is first wanted.
        """
        self.P, self.offsets, self.M = P, offsets, M
        self.rank = len(P)
        self.objective_: list[float] = []  # Q/‖X‖² at the start and after each iteration
        self._iterate, self._given = iterate, new_rows
        self.kept_with_blocks = iterate is not None
        # Prototypes of length 1 keep x·Pᵀ at the size of the rows, whatever ‖X‖ is.
        lengths = np.sqrt(np.einsum("ij,ij->i", P, P, dtype=np.float64))
        self._lengths = np.where(lengths > 0, lengths, 1.0)
        self._directions = (P / self._lengths[:, None]).astype(P.dtype)
        # 2I − FᵀF for products with prototypes of length 1.
        weighing = 2.0 * np.eye(len(P)) - M
        self._weighing = weighing * self._lengths[:, None] / self._lengths

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> GlnpFactor:
        """Learn F with the class's solver."""
        k = settings.n_landmarks or cls.rank_for(
            settings, rows.source.n_rows, rows.source.n_features
        )
        return cls.learn(rows, k, solver=cls.solver, **settings.factor_params)

    @classmethod
    def learn(
        cls,
        rows: TrainingRows,
        k: int,
        *,
        solver: str = "gradient",
        start: Any = "clusters",
        max_iter: int = MOST_ITERATIONS,
        tol: float = 1e-3,
    ) -> GlnpFactor:
        """Learn F; one sweep an iteration, and one more for every step that had to be redone.

        ``start`` is a clustering of a sample, the paper's U[0, 1] or given centres (k, m). Stops
        when Q fell by less than ``tol`` over the last ten iterations, for the gradient also when
        the projected gradient is this small against the first gradient.
        """
        source, drawn = rows.source, isinstance(start, str) and start == "uniform"
        if isinstance(start, str) and start not in STARTS:
            raise ParameterError(
                f"start={start!r} is not known; use one of {', '.join(STARTS)}, "
                "or an array of centres of shape (k, n_features)."
            )
        offsets = negative_offsets(rows.engine, rows.blocks)
        if drawn:
            if k > source.n_rows:
                warn_caller(
                    f"n_landmarks={k} is more than the {source.n_rows} rows there are; "
                    f"{source.n_rows} columns are used. Give a smaller n_landmarks.",
                    LandmarkWarning,
                )
            k = min(k, source.n_rows)
            begin: Start = UniformStart(k, rows.sample.seed)
        else:
            centres = choose_landmarks(rows, "kmeans" if isinstance(start, str) else start, k)
            k = len(centres)
            begin = ClusterStart((centres - offsets).astype(source.dtype))
        descend, lookback = SOLVERS[solver]
        iterate = Iterate(_plan(rows.blocks[0]), offsets, k, begin, lookback)
        descent = Descent(rows.engine, rows.blocks, iterate, source.dtype)
        settled = descent.empty or descend(descent, max_iter=max_iter, tol=tol)
        if not settled and max_iter > 0 and descent.recent_fall() > WORTH_SAYING:
            from biglp._core.errors import StoppedShortWarning  # loads scikit-learn, so only now

            more = 5 * max_iter
            advice = [f"factor_params={{'max_iter': {more}}} (--factor-params max_iter={more})"]
            if drawn:
                advice.append("factor_params={'start': 'clusters'}, which needs fewer")
            if solver == "multiplicative":
                advice.append("factor='glnp' (--factor glnp), which needs fewer")
            warn_caller(
                f"GLNP stopped after {max_iter} iterations while its objective was still falling "
                f"(by {descent.recent_fall():.1%} over the last ones, tol={tol:g}); use "
                f"{', or '.join(advice)}.",
                StoppedShortWarning,
            )
        prototypes = (descent.sums.P * descent.norm).astype(source.dtype)
        factor = cls(prototypes, offsets, np.asarray(descent.sums.M), descent.iterate)
        factor.objective_ = descent.objective
        return factor

    @cached_property
    def new_rows(self) -> NewRowSteps | None:
        """Recipe for the F of new rows; None where they have the formula of the end."""
        known = self._given if self._iterate is None else self._iterate
        return NewRowSteps.from_iterate(known) if isinstance(known, Iterate) else known

    def __getstate__(self) -> dict[str, Any]:
        # What new rows need travels in its short form.
        known = self.__dict__
        return known if self._iterate is not None else {**known, "_given": self.new_rows}

    def features(self, rows: Rows) -> Array:
        """Each row's f ≥ 0 at which training would leave it.  (b, m) → (b, k)."""
        rows = shifted(rows, self.offsets)
        if self.new_rows is not None:
            check_finite(squared_norms(rows))
            features = self.new_rows.follow(rows)
            check_finite(features)
            return features
        along = products(rows, self._directions)
        check_finite(along)
        xp = namespace(along)
        unit = self._directions.astype(np.float64)
        linear = xp.asarray(along, dtype=xp.float64)
        linear = linear @ like(linear, self._weighing)
        solved = nonnegative_least_squares(linear, unit @ unit.T)
        return xp.asarray(solved / like(solved, self._lengths), dtype=along.dtype)

    def block_features(self, block: Block) -> Array:
        """F of a training block, rebuilt where it was lost; new rows as in :meth:`features`."""
        if self._iterate is not None and self._iterate.plan == _plan(block):
            return self._iterate.features(block)
        return self.features(block.rows())

    def for_new_rows(self) -> GlnpFactor:
        """The factor with what new rows need of the recipe, which is k·m an iteration."""
        if self._iterate is None:
            return self
        factor = GlnpFactor(self.P, self.offsets, self.M, new_rows=self._iterate)
        factor.objective_ = self.objective_
        return factor

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        # Also the rows of F, which stay with their blocks, and the recipe for them.
        cost, rank = super().cost(settings, size), size.rank
        recipe = USUAL_SWEEPS * rank * (size.width + 2 * rank)
        iterates = ITERATES * size.kept_rows * rank
        iterates = SPARE_BYTES + (recipe + iterates) * size.dtype.itemsize
        sweep = size.n_rows * rank * (SWEEP_ENTRY + pair_seconds(size.width))
        return cost._replace(
            fitting=cost.fitting + iterates,
            sums=max(cost.sums, 8 * rank * size.n_features),
            stored_row=0,
            seconds={**cost.seconds, "GLNP": USUAL_SWEEPS * sweep},
            seconds_row=0.0,
        )

    def state(self) -> dict[str, np.ndarray]:
        """Enough for new rows."""
        state = {"P": self.P, "offsets": self.offsets, "M": self.M}
        return state if self.new_rows is None else {**state, **self.new_rows.state()}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> GlnpFactor:
        known = NewRowSteps.from_state(state)
        return cls(state["P"], state["offsets"], state["M"], new_rows=known)

    def describe(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"factor": self.kind, "rank": self.rank}
        if self.objective_:
            iterations = len(self.objective_) - 1
            facts |= {"iterations": iterations, "objective": self.objective_[-1]}
        return facts


class MultiplicativeGlnpFactor(GlnpFactor):
    """GLNP by multiplicative updates."""

    solver = "multiplicative"


def _plan(block: Block) -> str:
    """Token of the cut a block belongs to; it tells training rows from new ones."""
    if block.plan is None:
        raise ParameterError("GLNP needs blocks made by cut_rows, which know the cut they are of.")
    return block.plan.token


# --------------------------------------------------------------------------------------------------
# F of new rows: the steps that a training row with the same features took.
#
# Training ends before every row is at its minimum, and with more prototypes than features a row has
# many minima: where its f ends depends on the way there. A step needs of a row nothing but its
# features and its f, and small arrays that are the same for all rows. So new rows begin where a
# training row of the same features begins, take the same steps, and end with the same labels.
#
# The arrays of T steps are T·(k·m + k²) numbers. They hardly change from one step to the next, so
# that a few patterns and T weights for each of them tell them all (:class:`Patterns`). A is not
# kept: it is PPᵀ.
#
# The paper's start is drawn for each row by its number, which new rows have not; they have the
# formula at the top of this file then, which :func:`nonnegative_least_squares` solves.


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
        """Rebuild from :meth:`state`; None where the start was drawn by the number of a row."""
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
