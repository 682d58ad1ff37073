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
from biglp._answers.committee.member import Asked, MemberModel
from biglp._answers.committee.spread import FLOOR
from biglp._core.arrays import Array, Rows, check_finite, like, namespace
from biglp._labels.labels import OwnLabels

CUT = 8.0
"""Largest logit of one member in units of its usual size: no single member decides alone."""
LABEL_TRUST = 0.95
"""Probability that a given label is right."""


class WeightedModel(NamedTuple):
    """What a member has learnt, with its usual size and weight; ``member`` names its kind."""

    member: str
    model: MemberModel
    scale: float
    weight: float


@dataclass(frozen=True)
class CommitteeAnswer(Answer):
    """What the members say of a row, weighted.

    Attributes
    ----------
    bias : ndarray of shape (c,)
        Weighted log-prior of the classes.
    models : tuple of WeightedModel
        In the order in which they are added.
    coefficients, slopes, intercepts : ndarrays of shape (p, a·c), (m, b·c) and (b·c,), or None
        Columns of the a models that say the graph, and of the b linear ones; None without any.
    """

    bias: np.ndarray
    models: tuple[WeightedModel, ...]
    coefficients: np.ndarray | None = field(init=False, repr=False)
    slopes: np.ndarray | None = field(init=False, repr=False)
    intercepts: np.ndarray | None = field(init=False, repr=False)

    kind = "committee"
    needs_rows = True

    def __post_init__(self) -> None:
        """Put side by side what is multiplied by the same features, or by the same rows."""
        for name in ("coefficients", "slopes", "intercepts"):
            columns = [getattr(one.model, name) for one in self.models]
            found = [column for column in columns if column is not None]
            object.__setattr__(self, name, np.hstack(found) if found else None)

    def expect(self, n_rows: int) -> None:
        """Tell the models how many rows will be asked about."""
        for one in self.models:
            one.model.expect(n_rows)

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """Class probabilities of a block of rows; no label reaches some through the graph."""
        c, n_unreached = len(self.bias), 0
        densities = lines = iter(())
        if self.coefficients is not None:
            found = features @ like(features, self.coefficients)
            densities, n_unreached = _columns(found, c), int((~(row_maxima(found) > FLOOR)).sum())
        if self.slopes is not None and self.intercepts is not None:
            found = rows @ like(rows, self.slopes)
            lines = _columns(found + like(found, self.intercepts), c)
        asked, total = Asked(rows, densities, lines), None
        for one in self.models:
            logits = one.weight * scaled_logits(one.model.logits(asked), one.scale)
            if total is None:
                total = logits + like(logits, self.bias)
            else:
                total += logits
        xp = namespace(total)
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
        """Arrays from which the answer is rebuilt: those of model i begin with ``i.``."""
        arrays = {
            "bias": self.bias,
            "members": np.array([one.member for one in self.models]),
            "scales": np.array([one.scale for one in self.models]),
            "weights": np.array([one.weight for one in self.models]),
        }
        for number, one in enumerate(self.models):
            arrays |= {f"{number}.{name}": array for name, array in one.model.state().items()}
        return arrays

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> CommitteeAnswer:
        """Rebuild from :meth:`state`."""
        models = []
        facts = (state["members"].tolist(), state["scales"].tolist(), state["weights"].tolist())
        for number, (member, scale, weight) in enumerate(zip(*facts, strict=True)):
            prefix = f"{number}."
            arrays = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            model = MEMBERS[member].model.from_state(arrays)
            models.append(WeightedModel(member, model, scale, weight))
        return cls(state["bias"], tuple(models))


def _columns(array: Array, width: int) -> Iterator[Array]:
    """A few columns at a time."""
    return (array[:, start : start + width] for start in range(0, array.shape[1], width))


def scaled_logits(logits: Array, scale: float) -> Array:
    """Centre logits within each row, divide them by their usual size and clip them."""
    centred = logits - (row_sums(logits) / logits.shape[1])[:, None]
    centred *= 1.0 / scale
    return centred.clip(-CUT, CUT)
