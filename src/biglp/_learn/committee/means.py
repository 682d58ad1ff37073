"""Nearest class mean: all that a handful of labels can say about many features.

With hundreds of features and tens of labels even regularised logistic regression follows the noise
of single features. Distances to the class means do not: they are the limit of logistic regression
under ever stronger regularisation, and of a Gaussian kernel that grows ever wider.

Class j has labels of weight n_j = Σ_i w_ij and mean μ_j = Σ_i w_ij·x_i / n_j. A row x is as near to
it as −½‖x − μ_j‖² says. But the mean of few rows is off by its own noise, so that ‖x − μ_j‖² is too
large by σ²/n_j on average, where σ² is the variance of rows around their class's mean:

    ℓ_j(x) = x·μ_j − ½(‖μ_j‖² − σ²/n_j),

−½‖x‖² being the same for all classes. Without row i the mean is
(n_j·μ_j − w_ij·x_i) / (n_j − w_ij),
so that leave-one-out costs one product of the labelled rows with the means.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from biglp._algebra.spreading import left_alone
from biglp._core.arrays import Rows, to_dense
from biglp._learn.base import Standard
from biglp._learn.committee.logistic import folds
from biglp._learn.committee.member import LinearModel, Member, MemberFit, TrainingSet, usual_size


class MeansMember(Member):
    """Nearest class mean."""

    name = "class means"
    # What remains of it when it predicts nothing. If all weights went to zero, every row would be
    # called the class with most labels; two dozen labels are predicted badly by chance alone, and
    # members that seem to know nothing are then right two times of three.
    least = 0.04
    worth = 0.02
    words = "nearest class mean"
    model = LinearModel

    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Find the means, and each without one row."""
        rows = evidence.rows.astype(np.float64, copy=False)
        model, held_out = fit_class_means(rows, evidence.targets, evidence.standard)
        return MemberFit(model, held_out, model.of(evidence.sample_rows))


def fit_class_means(
    rows: Rows, targets: np.ndarray, standard: Standard
) -> tuple[LinearModel, np.ndarray]:
    """Class means of labelled rows, and what they say of each of them without its own label.

    Distances are those of the graph: features are centred, so as not to lose digits, and divided by
    one common spread.

    ``rows``: (l, m): labelled rows, in float64; ``targets``: (l, c): w·Y of these rows;
    ``standard``: centre and spread of the features over all rows; ``model``: a class without a
    row gets a low logit; ``held_out``: (l, c): NaN where a row was its class's only one.
    """
    centre, spread = standard
    size = float(np.sqrt((spread**2).mean()))
    rows = rows / size if sparse.issparse(rows) else (rows - centre) / size
    counts = targets.sum(axis=0)
    seen = counts > 0
    number = np.where(seen, counts, 1.0)
    means = np.asarray((rows.T @ targets).T) / number[:, None]
    squares = np.einsum("jm,jm->j", means, means)
    own = np.asarray((rows.multiply(rows) if sparse.issparse(rows) else rows**2).sum(axis=1))
    own = own.ravel()
    products = np.asarray(rows @ means.T)
    scatter = float((targets * (own[:, None] - 2.0 * products + squares)).sum())
    variance = max(scatter, 0.0) / max(float(counts.sum()) - int(seen.sum()), 1.0)
    levels = -0.5 * (squares - variance / number)
    # As far away as one more row is from the centre of all: m, features having a spread of 1.
    levels[~seen] = levels[seen].min() - rows.shape[1]
    slopes = means.T / size
    model = LinearModel(slopes, levels - (0.0 if sparse.issparse(rows) else centre @ slopes))
    left = np.where(counts - targets > 1e-9 * number, counts - targets, 1.0)
    without = (counts * products - targets * own[:, None]) / left
    norms = counts**2 * squares - 2.0 * counts * targets * products + targets**2 * own[:, None]
    held_out = without - 0.5 * (norms / left**2 - variance / left)
    held_out[:, ~seen] = levels[~seen]
    held_out[left_alone(counts, targets)] = np.nan
    return model, held_out


# --------------------------------------------------------------------------------------------------
# Seeded k-means: class means that move to where the unlabelled rows are.
#
# Words and embeddings lie in directions, and a class is a bundle of them. Its mean over one or two
# labels points anywhere in the bundle; its mean over all rows that seem to belong to it points to
# the middle. So the class means of the labels are the start of a soft k-means on a sample of rows:
#
#     q_ij ∝ exp( SHARPNESS · (x_i·μ_j − ½‖μ_j‖²) / s ),
#     μ_j ← (Σ_i q_ij·x_i + LABEL_WEIGHT · Σ_l w_lj·x_l) / (Σ_i q_ij + LABEL_WEIGHT · Σ_l w_lj),
#
# s being the usual size of the centred logits, so that the sharpness means the same for all rows.
# On images and tables, whose classes are no round bundles, the means drift away; there nobody asks
# it. What it says of held-out rows comes from the folds of logistic regression.


ITERATIONS = 10
SHARPNESS, LABEL_WEIGHT = 4.0, 10.0
"""On two collections of texts sharpness 3 to 32 and weights 1 to 10 are within two points of each
other; a weight of 30 holds the means where the labels are and loses six."""


class SeededMember(Member):
    """Seeded k-means, where rows are words or embeddings."""

    name = "seeded k-means"
    words = "k-means that starts at the labels"
    model = LinearModel
    kinds = ("text", "embedding")  # classes are bundles of directions there

    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Let the means of all labels move, and those of folds of them."""
        centre, spread = evidence.standard
        sample, rows = (
            (to_dense(part).astype(np.float64, copy=False) - centre) / spread
            for part in (evidence.sample_rows, evidence.rows)
        )
        targets = evidence.targets
        means = seeded_means(sample, rows, targets)
        held_out = np.full(targets.shape, np.nan)
        for seen, left in folds(evidence.part.codes, evidence.problem.settings.seed):
            held_out[left] = nearness(rows[left], seeded_means(sample, rows[seen], targets[seen]))
        slopes = means.T / spread[:, None]
        levels = -0.5 * (means**2).sum(axis=1) - centre @ slopes
        return MemberFit(LinearModel(slopes, levels), held_out, nearness(sample, means))


def nearness(rows: np.ndarray, means: np.ndarray) -> np.ndarray:
    """How near rows are to each mean: −½‖x − μ‖², but for what all means share.  (b, c)."""
    return np.asarray(rows @ means.T - 0.5 * (means**2).sum(axis=1))


def seeded_means(sample: np.ndarray, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Class means of labelled rows, moved by a sample of all rows.

    ``sample``: (b, m): rows of a random sample, centred and on one scale; ``rows, targets``: (l,
    m) and (l, c); Labelled rows and their w·Y; ``means``: (c, m): a class without a label has the
    mean of all rows, zero.
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
