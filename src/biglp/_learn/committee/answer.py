"""The weighted answer of the committee for a block of rows.

Member e says logits ℓ_e (b × c); they are centred within each row, divided by the member's usual
size s_e, clipped at ±CUT and weighted:

    p(class j | row) ∝ exp( b_j + Σ_e w_e · clip((ℓ_ej − mean_j ℓ_ej) / s_e) ).

b holds the class prior with its weight, and takes off what members hold of it themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from biglp._algebra.balance import class_mass
from biglp._algebra.spreading import leave_one_out, left_alone
from biglp._core.arrays import Array, Rows, check_finite, is_torch, like, namespace
from biglp._graph.views import OneView
from biglp._labels.labels import OwnLabels
from biglp._learn.base import Predictor
from biglp._learn.committee import MEMBERS
from biglp._learn.committee.member import LinearModel, Member, MemberFit, MemberModel, TrainingSet
from biglp._learn.committee.starting_weights import STARTING_WEIGHTS, Starts

# --------------------------------------------------------------------------------------------------
# Sums and maxima of rows with a few columns.
#
# NumPy takes each row by itself, 15 to 40 ns of it, where adding one column to another takes less
# than one. Up to seven numbers it adds in their order too, so that the bits are the same.


FEW = 8
"""Columns from which on NumPy adds in another order."""


def of_each_row(combine: np.ufunc, array: Array) -> Array:
    """Sum (``np.add``) or largest entry (``np.maximum``) of each row; NaN where there is one.

    (b, c) → (b,).
    """
    total = combine is np.add
    if is_torch(array):
        return array.sum(1) if total else array.amax(1)
    if not 0 < array.shape[1] < (FEW if total else 2 * FEW):
        return combine.reduce(array, axis=1)
    found = array[:, 0].copy()
    for column in array.T[1:]:
        combine(found, column, out=found)
    return found


# --------------------------------------------------------------------------------------------------
# Label spreading at one α, as class densities.
#
# Column j of F divided by its mass is the distribution over rows of a walk that starts at the
# labels of class j, so n·F_ij / Σ_i F_ij is 1 on average for every class, however many labels it
# has. Leave-one-out is exact and free (:mod:`biglp._algebra.spreading`).


ALPHAS = (0.9, 0.99)
"""The α that are asked."""
DEPTH = 10.0
"""The graph calls no class less likely than e^−DEPTH times the likeliest. In a graph of parts that
are hardly tied, logarithms go down to that of FLOOR: their usual size would be that of "not
reached", and dividing by it would leave nothing of what is said among the classes that are."""
FLOOR = 1e-30
"""Density below which the graph knows nothing of a class, within what float32 can hold."""


@dataclass(frozen=True)
class GraphModel(MemberModel):
    """Class densities by label spreading."""

    coefficients: np.ndarray  # (p, c): features times this are class densities


@dataclass(frozen=True)
class SpreadMember(Member):
    """Label spreading at one α."""

    name: str
    alpha: float
    starts: tuple[Starts, ...] = ()

    words = "label spreading on the graph"
    says_graph = True
    model = GraphModel

    @classmethod
    def candidates(cls, evidence: TrainingSet) -> list[Self]:
        """One for each α, or for the user's own, which has the weight of all."""
        given = evidence.problem.settings.alpha
        if given is None:
            return [cls(f"spread {alpha:g}", alpha) for alpha in ALPHAS]
        starts = tuple(STARTING_WEIGHTS[f"spread {alpha:g}"] for alpha in ALPHAS)
        return [cls(f"spread {given:g}", given, starts)]

    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Propagate, and leave each label out."""
        problem, system, alpha = evidence.problem, evidence.problem.system, self.alpha
        sums = system.sums
        coefficients, n_iter = problem.spread(alpha)
        # C is scaled so that F̄·C are class densities, 1 on average.
        mass = class_mass(sums.counts, sums.totals @ coefficients, alpha)
        model = GraphModel(problem.sums.unmix(coefficients * (sums.n_rows / mass)))
        sample = graph_logits(np.asarray(evidence.sample_features @ model.coefficients))
        scores, masses = leave_one_out(system, evidence.labelled, alpha)
        # A class without any other label has no mass: nothing is said of its row.
        alone = left_alone(sums.counts, evidence.targets)
        masses[alone] = 1.0
        held_out = graph_logits(scores * (sums.n_rows / masses))
        held_out[alone] = np.nan
        return MemberFit(model, held_out, sample, n_iter)


def graph_logits(densities: Array) -> Array:
    """Logarithm of class densities; where the graph knows nothing they are all the same."""
    logits = namespace(densities).log(densities.clip(min=FLOOR))
    return logits.clip(min=of_each_row(np.maximum, logits)[:, None] - DEPTH)


# --------------------------------------------------------------------------------------------------


CUT = 8.0
"""Largest logit of one member in units of its usual size: no single member decides alone."""
LABEL_TRUST = 0.95
"""Probability that a given label is right."""


class WeightedModel(NamedTuple):
    """What a member has learnt, with its usual size and weight; ``member`` names its kind."""

    member: str
    model: MemberModel
    columns: slice | None  # what it sees of a row, where that is not all
    scale: float
    weight: float


def widened(model: MemberModel, view: OneView | None) -> tuple[MemberModel, slice | None]:
    """What a member has learnt on one view, as it is asked of rows of all, and what it sees."""
    if view is None or view.places is None:
        return model, None
    if model.coefficients is not None:
        return GraphModel(view.widen_coefficients(model.coefficients)), None
    if model.slopes is not None and model.intercepts is not None:
        return LinearModel(view.widen_slopes(model.slopes), model.intercepts), None
    return model, view.columns


@dataclass(frozen=True)
class CommitteePredictor(Predictor):
    """What the members say of a row, weighted."""

    bias: np.ndarray  # (c,): weighted log-prior of the classes
    models: tuple[WeightedModel, ...]  # in the order in which they are added
    # (p, a·c), (m, b·c) and (b·c,): columns of the a models that say the graph, and of the b
    # linear ones; None without any
    coefficients: np.ndarray | None = field(init=False, repr=False)
    slopes: np.ndarray | None = field(init=False, repr=False)
    intercepts: np.ndarray | None = field(init=False, repr=False)

    kind = "committee"
    needs_rows = True

    def __post_init__(self) -> None:
        """Put side by side what is multiplied by the same features, or by the same rows."""
        for name in ("coefficients", "slopes", "intercepts"):
            columns = [getattr(one.model, name) for one in self.models]
            present = [column for column in columns if column is not None]
            object.__setattr__(self, name, np.hstack(present) if present else None)

    def expect(self, n_rows: int) -> None:
        """Tell the models how many rows will be asked about."""
        for one in self.models:
            vars(one.model)["expected"] = n_rows

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """Class probabilities of a block of rows; no label reaches some through the graph."""
        c, n_unreached, n_graphs, n_lines, total = len(self.bias), 0, 0, 0, None
        if self.coefficients is not None:
            densities = features @ like(features, self.coefficients)
            n_unreached = int((~(of_each_row(np.maximum, densities) > FLOOR)).sum())
        if self.slopes is not None and self.intercepts is not None:
            lines = rows @ like(rows, self.slopes)
            lines = lines + like(lines, self.intercepts)
        for one in self.models:
            if one.model.coefficients is not None:
                logits = graph_logits(densities[:, n_graphs : n_graphs + c])
                n_graphs += c
            elif one.model.slopes is not None:
                logits = lines[:, n_lines : n_lines + c]
                n_lines += c
            else:
                logits = one.model.of(rows if one.columns is None else rows[:, one.columns])
            logits = one.weight * scaled_logits(logits, one.scale)
            if total is None:
                total = logits + like(logits, self.bias)
            else:
                total += logits
        xp = namespace(total)
        highest = of_each_row(np.maximum, total)
        check_finite(highest)  # new rows may be so far out that a product overflows
        total -= highest[:, None]
        answers = xp.exp(total)
        answers /= of_each_row(np.add, answers)[:, None]
        if own is not None and len(own.rows):
            # Every label leaves 1 − LABEL_TRUST of the doubt: two labels leave its square.
            doubt = (1.0 - LABEL_TRUST) ** own.weights[:, None]
            answers[own.rows] *= like(answers, doubt)
            answers[own.rows] += like(answers, (1.0 - doubt) * own.shares)
        return answers, n_unreached

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which the answer is rebuilt: those of model i begin with ``i.``."""
        arrays = {
            "bias": self.bias,
            "members": np.array([one.member for one in self.models]),
            "scales": np.array([one.scale for one in self.models]),
            "weights": np.array([one.weight for one in self.models]),
        }
        if any(one.columns is not None for one in self.models):
            bounds = [one.columns or slice(-1, -1) for one in self.models]
            arrays["columns"] = np.array([[each.start, each.stop] for each in bounds])
        for number, one in enumerate(self.models):
            arrays |= {f"{number}.{name}": array for name, array in one.model.state().items()}
        return arrays

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> CommitteePredictor:
        """Rebuild from :meth:`state`."""
        models = []
        facts = (state["members"].tolist(), state["scales"].tolist(), state["weights"].tolist())
        bounds = state["columns"].tolist() if "columns" in state else [[-1, -1]] * len(facts[0])
        for number, (member, scale, weight) in enumerate(zip(*facts, strict=True)):
            columns = slice(*bounds[number]) if bounds[number][0] >= 0 else None
            prefix = f"{number}."
            arrays = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            models.append(
                WeightedModel(member, MEMBERS[member].model(**arrays), columns, scale, weight)
            )
        return cls(state["bias"], tuple(models))


def scaled_logits(logits: Array, scale: float) -> Array:
    """Centre logits within each row, divide them by their usual size and clip them."""
    centred = logits - (of_each_row(np.add, logits) / logits.shape[1])[:, None]
    centred *= 1.0 / scale
    return centred.clip(-CUT, CUT)
