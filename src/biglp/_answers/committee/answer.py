"""The weighted answer of the committee for a block of rows.

Member e says logits ℓ_e (b × c); they are centred within each row, divided by the member's usual
size s_e, clipped at ±CUT and weighted:

    p(class j | row) ∝ exp( b_j + Σ_e w_e · clip((ℓ_ej − mean_j ℓ_ej) / s_e) ).

b holds the class prior with its weight, and takes off what members hold of it themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from biglp._answers.base import Answer
from biglp._answers.committee import MEMBERS
from biglp._answers.committee.columns import row_maxima, row_sums
from biglp._answers.committee.member import Asked, Opinion
from biglp._answers.committee.spread import FLOOR
from biglp._core.arrays import Array, Rows, like, namespace
from biglp._labels.labels import OwnLabels
from biglp._lowrank.base import check_finite

CUT = 8.0
"""Largest logit of one member in units of its usual size: no single opinion decides alone."""
LABEL_TRUST = 0.95
"""Probability that a given label is right."""


class WeightedOpinion(NamedTuple):
    """An opinion with its usual size and its weight; ``member`` is the name of its kind."""

    member: str
    opinion: Opinion
    scale: float
    weight: float


@dataclass(frozen=True)
class CommitteeAnswer(Answer):
    """What the members say of a row, weighted.

    Attributes
    ----------
    bias : ndarray of shape (c,)
        Weighted log-prior of the classes.
    opinions : tuple of WeightedOpinion
        In the order in which they are added.
    coefficients, slopes, intercepts : ndarrays of shape (p, a·c), (m, b·c) and (b·c,), or None
        Columns of the a opinions that use the graph, and of the b linear ones; None without any.
    """

    bias: np.ndarray
    opinions: tuple[WeightedOpinion, ...]
    coefficients: np.ndarray | None = field(init=False, repr=False)
    slopes: np.ndarray | None = field(init=False, repr=False)
    intercepts: np.ndarray | None = field(init=False, repr=False)

    kind = "committee"
    needs_rows = True

    def __post_init__(self) -> None:
        """Put side by side what is multiplied by the same features, or by the same rows."""
        for name in ("coefficients", "slopes", "intercepts"):
            columns = [getattr(one.opinion, name) for one in self.opinions]
            found = [column for column in columns if column is not None]
            object.__setattr__(self, name, np.hstack(found) if found else None)

    def expect(self, n_rows: int) -> None:
        """Tell the opinions how many rows will be asked about."""
        for one in self.opinions:
            one.opinion.expect(n_rows)

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """Class probabilities of a block of rows; no label reaches some through the graph."""
        c = len(self.bias)
        densities = lines = like(features, np.empty((features.shape[0], 0)))
        n_unreached = 0
        if self.coefficients is not None:
            densities = features @ like(features, self.coefficients)
            n_unreached = int((~(row_maxima(densities) > FLOOR)).sum())
        if self.slopes is not None and self.intercepts is not None:
            lines = rows @ like(rows, self.slopes) + like(densities, self.intercepts)
        xp = namespace(densities)
        total = xp.tile(like(densities, self.bias), (features.shape[0], 1))
        asked = Asked(rows, _columns(densities, c), _columns(lines, c))
        for one in self.opinions:
            total += one.weight * scaled_logits(one.opinion.logits(asked), one.scale)
        highest = row_maxima(total)
        check_finite(highest)  # new rows may be so far out that a product overflows
        total -= highest[:, None]
        answers = xp.exp(total)
        answers /= row_sums(answers)[:, None]
        if own is not None and len(own.rows):
            # Every label leaves 1 − LABEL_TRUST of the doubt: two labels leave its square.
            doubt = (1.0 - LABEL_TRUST) ** own.weights[:, None]
            answers[own.rows] *= like(answers, doubt)
            answers[own.rows] += like(answers, (1.0 - doubt) * own.shares)
        return answers, n_unreached

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which the answer is rebuilt: those of opinion i begin with ``i.``."""
        arrays = {
            "bias": self.bias,
            "members": np.array([one.member for one in self.opinions]),
            "scales": np.array([one.scale for one in self.opinions]),
            "weights": np.array([one.weight for one in self.opinions]),
        }
        for number, one in enumerate(self.opinions):
            arrays |= {f"{number}.{name}": array for name, array in one.opinion.state().items()}
        return arrays

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> CommitteeAnswer:
        """Rebuild from :meth:`state`, or from the arrays of a model of release 0.1."""
        if "members" not in state:
            state = _from_first_release(state)
        opinions = []
        facts = (state["members"].tolist(), state["scales"].tolist(), state["weights"].tolist())
        for number, (member, scale, weight) in enumerate(zip(*facts, strict=True)):
            prefix = f"{number}."
            arrays = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            opinion = MEMBERS[member].opinion(**arrays)
            opinions.append(WeightedOpinion(member, opinion, scale, weight))
        return cls(state["bias"], tuple(opinions))


def _columns(array: Array, width: int) -> Iterator[Array]:
    """A few columns at a time."""
    return (array[:, start : start + width] for start in range(0, array.shape[1], width))


def _from_first_release(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays as they are now from those of release 0.1, which had one array for all of a kind."""
    c = len(state["bias"])
    found = [("spread", {"coefficients": part}) for part in _columns(state["coefficients"], c)]
    linear = zip(_columns(state["slopes"], c), _columns(state["intercepts"][None], c), strict=True)
    names = ("logistic", "class means")
    found += [
        (name, {"slopes": slopes, "intercepts": levels[0]})
        for name, (slopes, levels) in zip(names, linear, strict=False)
    ]
    for name, prefix in (("forest", "forest_"), ("nearest labels", "nearest_")):
        arrays = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        found += [(name, arrays)] if arrays else []
    renewed = {name: state[name] for name in ("bias", "scales", "weights")}
    renewed["members"] = np.array([name for name, _ in found])
    for number, (_, arrays) in enumerate(found):
        renewed |= {f"{number}.{name}": array for name, array in arrays.items()}
    return renewed


def scaled_logits(logits: Array, scale: float) -> Array:
    """Centre logits within each row, divide them by their usual size and clip them."""
    centred = logits - (row_sums(logits) / logits.shape[1])[:, None]
    centred *= 1.0 / scale
    return centred.clip(-CUT, CUT)
