"""The weighed answer of the committee for a block of rows.

Member e says logits ℓ_e (b × c); they are centred within each row, divided by the member's usual
size s_e, cut off at ±CUT and weighed:

    p(class j | row) ∝ exp( b_j + Σ_e w_e · clip((ℓ_ej − mean_j ℓ_ej) / s_e) ).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from biglp._answers.committee.forest import Forest
from biglp._answers.committee.nearest import Nearest
from biglp._core.arrays import Array, Rows, like, namespace
from biglp._labels.labels import OwnLabels

CUT = 8.0
"""Largest say of one member in units of its usual size: no single opinion is beyond appeal."""
FLOOR = 1e-30
"""Score below which the graph knows nothing of a class, within what float32 can hold."""
LABEL_TRUST = 0.95
"""Probability that a given label is right."""
_PARTS: dict[str, type[Forest] | type[Nearest]] = {"forest": Forest, "nearest": Nearest}
"""Members that are made of arrays of their own."""


@dataclass(frozen=True)
class CommitteeDecision:
    """What the members say of a row, weighed.

    Attributes
    ----------
    coefficients : ndarray of shape (p, a · c)
        Features times this are the class densities of label spreading at each of the a values of α.
    slopes, intercepts : ndarrays of shape (m, b · c) and (b · c,)
        The b linear opinions on the prepared rows: logistic regression, class means.
    scales, weights : ndarrays of shape (a + b,) or more
        Usual size and weight of each member: label spreading, the linear ones, the forest, the
        nearest labels.
    bias : ndarray of shape (c,)
        Weighed log-prior of the classes.
    forest : Forest, optional
        Trees, where they were asked and had something to say.
    nearest : Nearest, optional
        Labelled rows that vote on their neighbours, likewise.
    """

    coefficients: np.ndarray
    slopes: np.ndarray
    intercepts: np.ndarray
    scales: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    forest: Forest | None = None
    nearest: Nearest | None = None

    kind: ClassVar[str] = "committee"
    needs_rows: ClassVar[bool] = True

    def probabilities(
        self,
        features: Array,
        labelled: OwnLabels | None = None,
        rows: Rows = None,
    ) -> tuple[Array, int]:
        """Class probabilities of a block of rows.

        Parameters
        ----------
        features : array of shape (b, p)
            Normalised features.
        labelled : OwnLabels, optional
            The labels of the block's rows.
        rows : array or CSR matrix of shape (b, m)
            Prepared rows.

        Returns
        -------
        probabilities : array of shape (b, c)
            Rows add up to 1.
        n_unreached : int
            Rows that no label reaches through the graph.
        """
        densities = features @ like(features, self.coefficients)
        xp = namespace(densities)
        c = len(self.bias)
        total = xp.zeros_like(densities[:, :c]) + like(densities, self.bias)
        opinions = self._opinions(densities, rows)
        scales, weights = self.scales.tolist(), self.weights.tolist()
        for logits, scale, weight in zip(opinions, scales, weights, strict=True):
            total += weight * scaled_logits(logits, scale)
        n_unreached = int((~(densities > FLOOR)).all(1).sum())
        total -= xp.amax(total, 1)[:, None]
        answers = xp.exp(total)
        answers /= answers.sum(1)[:, None]
        if labelled is not None and len(labelled.rows):
            # Every label leaves 1 − LABEL_TRUST of the doubt: two labels leave its square.
            doubt = (1.0 - LABEL_TRUST) ** labelled.weights[:, None]
            answers[labelled.rows] *= like(answers, doubt)
            answers[labelled.rows] += like(answers, (1.0 - doubt) * labelled.shares)
        return answers, n_unreached

    def _opinions(self, densities: Array, rows: Rows) -> Iterator[Array]:
        """What the members say, one at a time so as not to hold it all."""
        c = len(self.bias)
        for start in range(0, densities.shape[1], c):
            yield graph_logits(densities[:, start : start + c])
        linear = rows @ like(rows, self.slopes) + like(densities, self.intercepts)
        for start in range(0, linear.shape[1], c):
            yield linear[:, start : start + c]
        for part in (self.forest, self.nearest):
            if part is not None:
                yield part.logits(rows)

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which the decision is rebuilt."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in _PARTS:
            part = own.pop(name)
            own |= {} if part is None else {f"{name}_{k}": v for k, v in vars(part).items()}
        return own

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> CommitteeDecision:
        """Rebuild from :meth:`state`."""
        own: dict[str, Any] = dict(state)
        for name, make in _PARTS.items():
            arrays = {k.removeprefix(f"{name}_"): own.pop(k) for k in state if k.startswith(name)}
            own[name] = make(**arrays) if arrays else None
        return cls(**own)


def graph_logits(densities: Array) -> Array:
    """Logarithm of class densities; where the graph knows nothing they are all the same."""
    return namespace(densities).log(densities.clip(min=FLOOR))


def scaled_logits(logits: Array, scale: float) -> Array:
    """Centre logits within each row, divide them by their usual size and cut them off."""
    centred = logits - logits.mean(1)[:, None]
    centred *= 1.0 / scale
    return centred.clip(-CUT, CUT)


def usual_size(logits: np.ndarray) -> float:
    """Median over rows of the largest centred logit: a size that few wild rows do not change."""
    centred = logits - logits.mean(axis=1, keepdims=True)
    size = float(np.median(np.abs(centred).max(axis=1)))
    return size if size > 0 else 1.0


def to_float64(rows: Rows) -> Rows:
    """Rows for the supervised member's own fit."""
    return rows.astype(np.float64) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
