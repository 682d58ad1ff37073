"""From normalised features to class probabilities, for training rows and new rows alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from biglp._core.arrays import Array, Rows, like, namespace
from biglp._labels.labels import OwnLabels


@dataclass(frozen=True)
class Decision:
    """The answer of the propagation, ready to be applied to any block of features.

    Attributes
    ----------
    coefficients : ndarray of shape (r, c)
        C · diag(weights): features times this are the balanced scores of unlabelled rows.
    own_label : ndarray of shape (c,)
        What a labelled row's own label adds to its class: (1−α) · weights.
    prior : ndarray of shape (c,)
        Class probabilities of a row that nothing reaches.
    own_shift : ndarray of shape (c,) or (1,)
        What a labelled row's own label adds to all classes, where labels are centred.
    """

    coefficients: np.ndarray
    own_label: np.ndarray
    prior: np.ndarray
    own_shift: np.ndarray = field(default_factory=lambda: np.zeros(1))

    kind: ClassVar[str] = "spreading"
    needs_rows: ClassVar[bool] = False

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`from_state` rebuilds the decision."""
        return {
            "coefficients": self.coefficients,
            "own_label": self.own_label,
            "prior": self.prior,
            "own_shift": self.own_shift,
        }

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Decision:
        """Rebuild from :meth:`state`."""
        return cls(**state)

    def probabilities(
        self,
        features: Array,
        labelled: OwnLabels | None = None,
        rows: Rows = None,
    ) -> tuple[Array, int]:
        """Class probabilities of a block of rows.

        Parameters
        ----------
        features : array of shape (b, r)
            Normalised features.
        labelled : OwnLabels, optional
            The labels of the block's rows.
        rows : ignored
            The features tell all.

        Returns
        -------
        probabilities : array of shape (b, c)
            Rows add up to 1.
        n_unreached : int
            Rows that no label reaches; they have the prior.
        """
        scores = features @ like(features, self.coefficients)
        if labelled is not None and len(labelled.rows):
            own = labelled.shares * self.own_label + self.own_shift
            scores[labelled.rows] += like(scores, own * labelled.weights[:, None])
        return as_probabilities(scores, self.prior)


def as_probabilities(scores: Array, prior: np.ndarray) -> tuple[Array, int]:
    """Turn scores of any sign into rows that add up to 1; also count rows that have no score.

    A score below zero says "unlike every label of this class" and counts as zero, unless a row has
    no other. ``prior`` is what rows without any score get.
    """
    xp = namespace(scores)
    signed, scores = scores, scores.clip(min=0)
    totals = scores @ xp.ones_like(scores[0])
    # A total so small that its reciprocal overflows tells as little as none at all.
    smallest = xp.finfo(scores.dtype).tiny
    doubtful = ~(totals > smallest)
    n_unreached = 0
    if bool(doubtful.any()):
        # Unlike all of them, and then to be compared; or no score at all.
        part = signed[doubtful]
        part = part - xp.amin(part, 1)[:, None]
        sums = part @ xp.ones_like(part[0])
        unreached = ~(sums > smallest)
        n_unreached = int(unreached.sum())
        part[unreached] = like(scores, prior)
        sums[unreached] = 1.0
        scores[doubtful], totals[doubtful] = part, sums
    scores *= (1.0 / totals)[:, None]
    return scores, n_unreached
