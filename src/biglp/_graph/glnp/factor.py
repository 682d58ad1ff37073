"""GLNP: global linear neighbourhoods (section 2.3, Eq. GL_F of the paper).

W = FFᵀ with F ≥ 0 (n × k) minimising Q(F) = ‖X − FFᵀX‖²: every row is rebuilt from all the others
through k prototypes P = FᵀX (k × m). The parts:

- :mod:`.descent`: objective, start, when to stop, and how rows of F stay with their blocks;
- :mod:`.steps`: the two ways to take a step;
- :mod:`.new_rows`: the same for new rows;
- here: the factor.

A row's f is the one that training ends with. New rows take the steps that training took, so that
the same row has the same label, in training or later. Where these are not known (the paper's start,
models of earlier releases) they have the f of the end that training goes to: where the gradient of
Q vanishes, each row of F is the f ≥ 0 minimising f·PPᵀ·fᵀ − 2·x·Pᵀ·(2I − FᵀF)·fᵀ, a small
non-negative least-squares problem of the row alone. Its second term weighs what the row does to the
prototypes.

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
from biglp._core.parameters import anything, not_negative, not_negative_integer
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size, pair_seconds
from biglp._graph.factor import SWEEP_ENTRY, Factor
from biglp._graph.glnp.descent import (
    ClusterStart,
    Descent,
    Iterate,
    Start,
    UniformStart,
)
from biglp._graph.glnp.new_rows import NewRowSteps, nonnegative_least_squares
from biglp._graph.glnp.steps import descend_gradient, descend_multiplicative
from biglp._graph.graph import TrainingRows
from biglp._graph.kernels import products
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
