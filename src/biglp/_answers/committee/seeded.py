"""Seeded k-means: class means that move to where the unlabelled rows are.

Words and embeddings lie in directions, and a class is a bundle of them. Its mean over one or two
labels points anywhere in the bundle; its mean over all rows that seem to belong to it points to the
middle. So the class means of the labels are the start of a soft k-means on a sample of rows:

    q_ij ∝ exp( SHARPNESS · (x_i·μ_j − ½‖μ_j‖²) / s ),
    μ_j ← (Σ_i q_ij·x_i + LABEL_WEIGHT · Σ_l w_lj·x_l) / (Σ_i q_ij + LABEL_WEIGHT · Σ_l w_lj),

s being the usual size of the centred logits, so that the sharpness means the same for all rows. On
images and tables, whose classes are no round bundles, the means drift away; there nobody asks it.
What it says of held-out rows comes from the folds of logistic regression.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from biglp._answers.committee.logistic import folds
from biglp._answers.committee.member import (
    Evidence,
    LinearModel,
    Member,
    MemberFit,
    everywhere,
    usual_size,
)
from biglp._answers.standard import to_float64
from biglp._core.arrays import to_dense

ITERATIONS = 10
SHARPNESS, LABEL_WEIGHT = 4.0, 10.0
"""On two collections of texts sharpness 3 to 32 and weights 1 to 10 are within two points of each
other; a weight of 30 holds the means where the labels are and loses six."""


class SeededMember(Member):
    """Seeded k-means, where rows are words or embeddings."""

    name = "seeded k-means"
    starts = everywhere(0.0) | {"text": (0.3, 0.75), "embedding": (0.3, 0.4)}
    words = "k-means that starts at the labels"
    model = LinearModel

    @classmethod
    def candidates(cls, evidence: Evidence) -> list[Self]:
        """None where classes are no bundles of directions."""
        return [cls()] if evidence.kind in ("text", "embedding") else []

    def learn(self, evidence: Evidence) -> MemberFit:
        """Let the means of all labels move, and those of folds of them."""
        centre, spread = evidence.standard
        sample, rows = (
            (to_float64(to_dense(part)) - centre) / spread
            for part in (evidence.sample_rows, evidence.rows)
        )
        targets = evidence.targets
        means = seeded_means(sample, rows, targets)
        held_out = np.full(targets.shape, np.nan)
        for seen, left in folds(evidence.labelled.codes, evidence.problem.settings.seed):
            held_out[left] = nearness(rows[left], seeded_means(sample, rows[seen], targets[seen]))
        slopes = means.T / spread[:, None]
        levels = -0.5 * (means**2).sum(axis=1) - centre @ slopes
        return MemberFit(LinearModel(slopes, levels), held_out, nearness(sample, means))


def nearness(rows: np.ndarray, means: np.ndarray) -> np.ndarray:
    """How near rows are to each mean: −½‖x − μ‖², but for what all means share.  (b, c)."""
    return np.asarray(rows @ means.T - 0.5 * (means**2).sum(axis=1))


def seeded_means(sample: np.ndarray, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Class means of labelled rows, moved by a sample of all rows.

    Parameters
    ----------
    sample : ndarray of shape (b, m)
        Rows of a random sample, centred and on one scale.
    rows, targets : ndarrays of shape (l, m) and (l, c)
        Labelled rows and their w·Y.

    Returns
    -------
    means : ndarray of shape (c, m)
        A class without a label has the mean of all rows, zero.
    """
    counts, totals = targets.sum(axis=0), targets.T @ rows
    means = totals / np.where(counts > 0, counts, 1.0)[:, None]
    for _ in range(ITERATIONS):
        logits = nearness(sample, means)
        logits *= SHARPNESS / usual_size(logits)
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        shares /= shares.sum(axis=1, keepdims=True)
        shares *= counts > 0
        weights = shares.sum(axis=0) + LABEL_WEIGHT * counts
        moved = shares.T @ sample + LABEL_WEIGHT * totals
        means = moved / np.where(weights > 0, weights, 1.0)[:, None]
    return means
