"""Label spreading at one α, as class densities.

Column j of F divided by its mass is the distribution over rows of a walk that starts at the labels
of class j, so n·F_ij / Σ_i F_ij is 1 on average for every class, however many labels it has.
Leave-one-out is exact and free (:mod:`biglp._algebra.leave_one_out`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from biglp._algebra.balance import class_mass
from biglp._algebra.leave_one_out import LabelledRows, leave_one_out, left_alone
from biglp._algebra.systems import System
from biglp._answers.committee.columns import row_maxima
from biglp._answers.committee.member import Asked, Evidence, Member, MemberFit, MemberModel, Starts
from biglp._core.arrays import Array, namespace

STARTS: dict[float, Starts] = {
    0.9: {
        "table": (0.06, 0.01),
        "clusters": (0.35, 0.6),
        "pixels": (0.0, 0.3),
        "text": (0.02, 0.03),
        "embedding": (0.1, 0.2),
    },
    0.99: {
        "table": (0.01, 0.01),
        "clusters": (0.7, 0.7),
        "pixels": (1.15, 1.2),
        "text": (0.15, 0.3),
        "embedding": (0.45, 0.55),
    },
}
"""The α that are asked, and their starting weights (see :mod:`.weights`)."""
DEPTH = 10.0
"""The graph calls no class less likely than e^−DEPTH times the likeliest. In a graph of parts that
are hardly tied, logarithms go down to that of FLOOR: their usual size would be that of "not
reached", and dividing by it would leave nothing of what is said among the classes that are."""
FLOOR = 1e-30
"""Density below which the graph knows nothing of a class, within what float32 can hold."""


@dataclass(frozen=True)
class GraphModel(MemberModel):
    """Class densities by label spreading.

    Attributes
    ----------
    coefficients : ndarray of shape (p, c)
        Features times this are class densities.
    """

    coefficients: np.ndarray

    def logits(self, asked: Asked) -> Array:
        """Logarithm of the densities that are ready."""
        return graph_logits(next(asked.densities))


@dataclass(frozen=True)
class SpreadMember(Member):
    """Label spreading at one α."""

    name: str
    alpha: float

    words = "label spreading on the graph"
    says_graph = True
    model = GraphModel

    @classmethod
    def candidates(cls, evidence: Evidence) -> list[Self]:
        """One for each α, or for the user's own."""
        given = evidence.problem.settings.alpha
        alphas = tuple(STARTS) if given is None else (given,)
        return [cls(f"spread {alpha:g}", alpha) for alpha in alphas]

    def start(self, evidence: Evidence) -> float:
        """That of its α; the user's own has the weight of all."""
        given = evidence.problem.settings.alpha
        starts = STARTS.values() if given is not None else (STARTS[self.alpha],)
        return sum(evidence.between(*one[evidence.kind]) for one in starts)

    def learn(self, evidence: Evidence) -> MemberFit:
        """Propagate, and leave each label out."""
        problem = evidence.problem
        coefficients, n_iter = problem.spread(self.alpha)
        density = density_coefficients(problem.system, coefficients, self.alpha)
        model = GraphModel(problem.sums.unmix(density))
        sample = graph_logits(np.asarray(evidence.sample_features @ model.coefficients))
        held_out = held_out_by_graph(problem.system, evidence.labelled, self.alpha)
        return MemberFit(model, held_out, sample, n_iter)


def graph_logits(densities: Array) -> Array:
    """Logarithm of class densities; where the graph knows nothing they are all the same."""
    logits = namespace(densities).log(densities.clip(min=FLOOR))
    return logits.clip(min=row_maxima(logits)[:, None] - DEPTH)


def density_coefficients(system: System, coefficients: np.ndarray, alpha: float) -> np.ndarray:
    """C scaled so that F̄·C are class densities, 1 on average.  (r, c)."""
    sums = system.sums
    mass = class_mass(sums.totals, coefficients, sums.counts, alpha)
    return coefficients * (sums.n_rows / mass)


def held_out_by_graph(system: System, labelled: LabelledRows, alpha: float) -> np.ndarray:
    """Logits of each labelled row without its own label; NaN where it was its class's only one."""
    scores, masses = leave_one_out(system, labelled, alpha)
    alone = left_alone(system.sums.counts, labelled.targets(scores.shape[1]))
    # A class without any other label has no mass; its row is left out below.
    masses[alone] = 1.0
    logits: np.ndarray = graph_logits(scores * (system.sums.n_rows / masses))
    logits[alone] = np.nan
    return logits
