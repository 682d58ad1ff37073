"""The weighed answer of the committee for a block of rows.

Member e says logits ℓ_e (b × c); they are centred within each row, divided by the member's usual
size s_e, cut off at ±CUT and weighed:

    p(class j | row) ∝ exp( b_j + Σ_e w_e · clip((ℓ_ej − mean_j ℓ_ej) / s_e) ).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from scipy import sparse

from biglp._arrays import Array, Rows, like, namespace
from biglp._committee.forest import Forest
from biglp._labels import OwnLabels

CUT = 8.0
"""Largest say of one member in units of its usual size: no single opinion is beyond appeal."""
FLOOR = 1e-30
"""Score below which the graph knows nothing of a class, within what float32 can hold."""
LABEL_TRUST = 0.95
"""Probability that a given label is right."""
_TREES = "forest_"


@dataclass(frozen=True)
class CommitteeDecision:
    """What the members say of a row, weighed.

    Attributes
    ----------
    coefficients : ndarray of shape (p, a · c)
        Features times this are the class densities of label spreading at each of the a values of α.
    slopes, intercepts : ndarrays of shape (m, c) and (c,)
        Logistic regression on the prepared rows.
    scales, weights : ndarrays of shape (a + 1,) or (a + 2,)
        Usual size and weight of each member: label spreading, logistic regression, the forest.
    bias : ndarray of shape (c,)
        Weighed log-prior of the classes.
    forest : Forest, optional
        Trees, where they were asked and had something to say.
    """

    coefficients: np.ndarray
    slopes: np.ndarray
    intercepts: np.ndarray
    scales: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    forest: Forest | None = None

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
        n_alphas = self.coefficients.shape[1] // c
        for member in range(n_alphas):
            logits = graph_logits(densities[:, member * c : (member + 1) * c])
            total += self._say(logits, member)
        logits = rows @ like(rows, self.slopes) + like(densities, self.intercepts)
        total += self._say(logits, n_alphas)
        if self.forest is not None:
            total += self._say(self.forest.logits(rows), n_alphas + 1)
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

    def _say(self, logits: Array, member: int) -> Array:
        return float(self.weights[member]) * scaled_logits(logits, float(self.scales[member]))

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which the decision is rebuilt."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        forest = own.pop("forest")
        return own if forest is None else own | {f"{_TREES}{k}": v for k, v in vars(forest).items()}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> CommitteeDecision:
        """Rebuild from :meth:`state`."""
        own = {name: array for name, array in state.items() if not name.startswith(_TREES)}
        trees = {k.removeprefix(_TREES): state[k] for k in state if k.startswith(_TREES)}
        return cls(**own, forest=Forest(**trees) if trees else None)


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
