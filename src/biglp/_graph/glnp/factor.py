"""GLNP: global linear neighbourhoods (section 2.3, Eq. GL_F of the paper).

W = FFᵀ with F ≥ 0 (n × k) minimising Q(F) = ‖X − FFᵀX‖²: every row is rebuilt from all the others
through k prototypes P = FᵀX (k × m). The parts:

- :mod:`.course`: the same for new rows;
- :mod:`.iterate`: how rows of F stay with their blocks;
- :mod:`.descent`: objective, start, when to stop;
- :mod:`.multiplicative` and :mod:`.gradient`: the two ways to take a step;
- here: the factor.

A row's f is the one that training ends with. New rows take the steps that training took
(:mod:`.course`), so that the same row has the same label, in training or later. Where there is no
such course (the paper's start, models of earlier releases) they have the f of the end that training
goes to: where the gradient of Q vanishes, each row of F is the f ≥ 0 minimising
f·PPᵀ·fᵀ − 2·x·Pᵀ·(2I − FᵀF)·fᵀ, a small non-negative least-squares problem of the row alone. Its
second term weighs what the row does to the prototypes.

Features with negative values are shifted (Algorithm S.1), and the offsets are kept for new rows.
The multiplicative rule needs X ≥ 0. The accelerated gradient does not, but both then solve the same
problem, and FFᵀ ≥ 0 rebuilds rows from others that point the same way.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from biglp._core.arrays import Array, Rows, check_finite, like, namespace, squared_norms
from biglp._core.blocks import Block
from biglp._core.errors import LandmarkWarning, ParameterError, warn_caller
from biglp._core.parameters import anything, not_negative, not_negative_integer, pair_seconds
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._files.runfolder import Checkpoint
from biglp._graph.factor import SWEEP_ENTRY, Factor, TrainingRows
from biglp._graph.glnp.descent import (
    ClusterStart,
    Descent,
    Iterate,
    Start,
    UniformStart,
    warn_stopped_short,
)
from biglp._graph.glnp.new_rows import NewRowSteps, nonnegative_least_squares
from biglp._graph.glnp.steps import descend_gradient, descend_multiplicative
from biglp._graph.kernels import products
from biglp._graph.landmarks import choose_landmarks
from biglp._graph.linear import negative_offsets, shifted

# --------------------------------------------------------------------------------------------------
# Where a GLNP fit starts, as its parameters say.


STARTS = ("clusters", "uniform")


def choose_start(rows: TrainingRows, start: Any, k: int, offsets: np.ndarray) -> tuple[Start, int]:
    """Choose the start and the number of columns."""
    source = rows.source
    if isinstance(start, str) and start == "uniform":
        if k > source.n_rows:
            warn_caller(
                f"n_landmarks={k} is more than the {source.n_rows} rows there are; "
                f"{source.n_rows} columns are used. Give a smaller n_landmarks.",
                LandmarkWarning,
            )
        k = min(k, source.n_rows)
        return UniformStart(k, rows.sample.seed), k
    centres = choose_landmarks(rows, "kmeans" if isinstance(start, str) else start, k)
    return ClusterStart((centres - offsets).astype(source.dtype)), len(centres)


def check_start(k: int, start: Any, max_iter: int, tol: float) -> None:
    """Refuse parameters that mean nothing."""
    if isinstance(start, str) and start not in STARTS:
        raise ParameterError(
            f"start={start!r} is not known; use one of {', '.join(STARTS)}, "
            "or an array of centres of shape (k, n_features)."
        )
    if k < 1:
        raise ParameterError(f"k={k} columns are too few; use 1 or more.")
    if max_iter < 0:
        raise ParameterError(f"max_iter={max_iter} is not a number of iterations; use 0 or more.")
    if not tol >= 0:
        raise ParameterError(f"tol={tol} is not a tolerance; use a number of 0 or more.")


# --------------------------------------------------------------------------------------------------


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
    """Global linear neighbourhoods.

    Parameters
    ----------
    P : ndarray of shape (k, m)
        Prototypes FᵀX.
    offsets : ndarray of shape (m,)
        What is subtracted from each feature.
    M : ndarray of shape (k, k)
        FᵀF.
    iterate : Iterate, optional
        Recipe for the F of the training rows; without it every row counts as new.
    course : NewRowSteps or Iterate, optional
        Recipe for the F of new rows, or what it is made from when it is first wanted.

    Attributes
    ----------
    objective_ : list of float
        Q/‖X‖² at the start and after each iteration; it never rises.
    n_iter_ : int
        Iterations.
    """

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
        course: NewRowSteps | Iterate | None = None,
    ) -> None:
        self.P, self.offsets, self.M = P, offsets, M
        self.rank = len(P)
        self.objective_: list[float] = []
        self._iterate, self._given_course = iterate, course
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
    def fit_or_resume(
        cls, rows: TrainingRows, settings: GraphSettings, checkpoint: Checkpoint
    ) -> GlnpFactor:
        """Fit again: the F of the training rows was lost with the process that held it."""
        return cls.fit(rows, settings)

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

        Parameters
        ----------
        rows : TrainingRows
            Their seed is that of the start.
        k : int
            Columns of F; fewer are used when there are fewer distinct rows.
        solver : {"gradient", "multiplicative"}
            Accelerated projected gradient, or multiplicative updates.
        start : {"clusters", "uniform"} or array of shape (k, m)
            A clustering of a sample, the paper's U[0, 1], or the nearest of the given centres.
        max_iter : int
            Most iterations; 0 keeps the start.
        tol : float
            Stop when Q fell by less than this fraction over the last ten iterations; for the
            gradient also when the projected gradient is this small against the first gradient.

        Warns
        -----
        StoppedShortWarning
            When ``max_iter`` ends an iteration that was still getting somewhere.
        """
        factor, falls = cls._descended(rows, k, solver, start, max_iter, tol)
        if falls > WORTH_SAYING:
            advice = []
            if isinstance(start, str) and start == "uniform":
                advice.append("factor_params={'start': 'clusters'}, which needs fewer")
            if solver == "multiplicative":
                advice.append("factor='glnp' (--factor glnp), which needs fewer")
            warn_stopped_short(max_iter, falls, tol, advice)
        return factor

    @classmethod
    def _descended(
        cls, rows: TrainingRows, k: int, solver: str, start: Any, max_iter: int, tol: float
    ) -> tuple[GlnpFactor, float]:
        """Learn F; also say how fast Q was still falling, 0 where it has settled."""
        if solver not in SOLVERS:
            raise ParameterError(
                f"solver={solver!r} is not known; use one of {', '.join(SOLVERS)}."
            )
        check_start(k, start, max_iter, tol)
        descend, lookback = SOLVERS[solver]
        offsets = negative_offsets(rows.engine, rows.blocks)
        begin, k = choose_start(rows, start, k, offsets)
        iterate = Iterate(_plan(rows.blocks[0]), offsets, k, begin, lookback)
        descent = Descent(rows.engine, rows.blocks, iterate, rows.source.dtype)
        settled = descent.empty or descend(descent, max_iter=max_iter, tol=tol)
        prototypes = (descent.sums.P * descent.norm).astype(rows.source.dtype)
        factor = cls(prototypes, offsets, np.asarray(descent.sums.M), descent.iterate)
        factor.objective_ = descent.objective
        return factor, 0.0 if settled or max_iter == 0 else descent.recent_fall()

    @property
    def n_iter_(self) -> int:
        """Iterations taken."""
        return max(len(self.objective_) - 1, 0)

    @cached_property
    def course(self) -> NewRowSteps | None:
        """Recipe for the F of new rows; None where they have the formula of the end."""
        known = self._given_course if self._iterate is None else self._iterate
        return NewRowSteps.of(known) if isinstance(known, Iterate) else known

    def __getstate__(self) -> dict[str, Any]:
        """Send what new rows need in its short form."""
        known = self.__dict__
        return known if self._iterate is not None else {**known, "_given_course": self.course}

    def features(self, rows: Rows) -> Array:
        """Each row's f ≥ 0 at which training would leave it.  (b, m) → (b, k)."""
        if self.course is not None:
            rows = shifted(rows, self.offsets)
            check_finite(squared_norms(rows))
            found = self.course.follow(rows)
            check_finite(found)
            return found
        along = products(shifted(rows, self.offsets), self._directions)
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
        """Return the factor with what new rows need of the recipe, which is k·m an iteration."""
        if self._iterate is None:
            return self
        factor = GlnpFactor(self.P, self.offsets, self.M, course=self._iterate)
        factor.objective_ = self.objective_
        return factor

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """The base's, with the rows of F, which stay with their blocks, and the recipe for them."""
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
        """Prototypes, offsets, FᵀF and the course: enough for new rows."""
        state = {"P": self.P, "offsets": self.offsets, "M": self.M}
        return state if self.course is None else {**state, **self.course.state()}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> GlnpFactor:
        """Rebuild from :meth:`state`."""
        course = NewRowSteps.from_state(state)
        return cls(state["P"], state["offsets"], state["M"], course=course)

    def describe(self) -> dict[str, Any]:
        """Rank, iterations and the objective reached."""
        facts: dict[str, Any] = {"factor": self.kind, "rank": self.rank}
        if self.objective_:
            facts |= {"iterations": self.n_iter_, "objective": self.objective_[-1]}
        return facts


class MultiplicativeGlnpFactor(GlnpFactor):
    """GLNP by multiplicative updates."""

    solver = "multiplicative"


def _plan(block: Block) -> str:
    """Token of the cut a block belongs to; it tells training rows from new ones."""
    if block.plan is None:
        raise ParameterError("GLNP needs blocks made by cut_rows, which know the cut they are of.")
    return block.plan.token
