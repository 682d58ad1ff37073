"""Ridge regression on a few labelled rows, with exact leave-one-out for every penalty.

With A = W^(1/2)(X − 1x̄ᵀ) = U·diag(s)·Vᵀ, z the targets in the same way weighted and centred,

    β(λ) = Aᵀ·U·diag(1/(s² + λ))·Uᵀz,    h_i = w_i/Σw + Σ_j U_ij²·s_j²/(s_j² + λ),

and the error for row i without row i is e_i / (1 − h_i): the intercept is not penalised.
U and s come from the smaller of AᵀA and AAᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.spreading import LabelledRows, leave_one_out
from biglp._algebra.systems import System
from biglp._core.arrays import Array, Rows, namespace

PENALTIES = np.logspace(-4, 4, 17)
"""Candidates for λ, in units of the mean of s²."""
LEAST = 1e-200
"""s² below which a direction carries nothing: beside a row far out all others may be so close."""


@dataclass(frozen=True)
class Ridge:
    """A fitted ridge regression: values = rows·slopes + intercepts."""

    slopes: np.ndarray  # (m, q)
    intercepts: np.ndarray  # (q,)
    held_out: np.ndarray  # predictions for each labelled row without its label, (l, q)


def fit_ridge(
    rows: Rows,
    values: np.ndarray,
    weights: np.ndarray,
    spread: np.ndarray,
    penalties: np.ndarray = PENALTIES,
) -> Ridge:
    """Fit labelled rows (l, m) to values (l, q), each target with the penalty of least error.

    The error is that of leave-one-out, with ``weights`` (l,). ``spread`` (m,) is that of the
    features over all rows: a handful of labelled rows does not know it.
    """
    total = weights.sum()
    roots = np.sqrt(weights)[:, None]
    mean = weights @ values / total
    targets = roots * (values - mean)
    scaled: Rows = rows @ sparse.diags(1.0 / spread) if sparse.issparse(rows) else rows / spread
    middle = np.asarray(weights @ scaled / total).ravel()
    # U and s² of A, without directions that carry nothing.
    if sparse.issparse(scaled):  # the centre would fill all zeros: it is taken off the products
        products = np.asarray((scaled @ scaled.T).todense())
        ahead = np.asarray(scaled @ middle)
        gram, tall = roots * (products - ahead[:, None] - ahead + middle @ middle) * roots.T, False
    else:
        centred = roots * (scaled - middle)
        tall = centred.shape[0] > centred.shape[1]
        gram = centred.T @ centred if tall else centred @ centred.T
    squares, left = np.linalg.eigh(gram)
    useful = squares > max(1e-10 * squares[-1], LEAST)
    left, squares = left[:, useful], squares[useful]
    if tall:
        left = centred @ left / np.sqrt(squares)
    size = squares.mean() if len(squares) and squares.mean() > 0 else 1.0
    turned = left.T @ targets
    held_out = np.full_like(values, np.inf)
    shrunk = np.zeros_like(turned)
    for penalty in penalties * size:
        share = squares / (squares + penalty)
        own = weights / total + (left * left) @ share
        errors = (targets - left @ (share[:, None] * turned)) / roots
        # A row that decides its own value (a single one) has no error; it is told the mean.
        errors = np.where(own[:, None] < 1 - 1e-9, errors / np.maximum(1 - own, 1e-9)[:, None], 0)
        better = weights @ errors**2 < weights @ (values - held_out) ** 2
        held_out = np.where(better, values - errors, held_out)
        shrunk = np.where(better, turned / (squares + penalty)[:, None], shrunk)
    back = roots * (left @ shrunk)  # Aᵀ = (X − 1x̄ᵀ)ᵀW^(1/2)
    slopes = np.asarray(scaled.T @ back) - np.outer(middle, back.sum(axis=0))
    intercepts = mean - middle @ slopes
    return Ridge(slopes / spread[:, None], intercepts, held_out)


# --------------------------------------------------------------------------------------------------
# Regression by smoothing on the graph, blended with ridge regression.
#
# With K = F̄(I − αH)⁻¹F̄ᵀ the similarity of rows through the graph, y centred and w the weights of
# the labelled rows, a row's value is the weighted mean of the labels it is tied to
# (Nadaraya–Watson):
#
#     f_i = ȳ + Σ_l K_il·w_l·(y_l − ȳ) / Σ_l K_il·w_l  =  ȳ + (F̄·C)_i,1 / (F̄·C)_i,2,
#
# where C comes from the two columns Φ̄ᵀ(w·(y − ȳ)) and Φ̄ᵀw by the same solve as for classes. Where
# no label reaches, f_i = ȳ. A row's own label counts through its features alone, so that a training
# row gets the same value as a new row at the same place. Leave-one-out takes row i out of both
# columns.


FLOOR = 1e-30
"""Weight of all labels below which none reaches a row, within what float32 can hold."""
PULL = 1.0
START = np.array([0.5, 0.5, 0.0])
"""Weights of the graph, of ridge regression and of the mean where labels do not tell."""
MIN_HELD_OUT = 3


def smoothed(sums: Array, limits: Array, floor: Any = FLOOR) -> Array:
    """Weighted means from sums of labels and of weights; 0 where there is no weight.

    A factor with negative entries (Nyström) can bring them out of the range of the labels; they are
    put back into it.
    """
    xp = namespace(sums)
    reached = (sums[:, -1] > floor)[:, None]
    weight = xp.where(reached, sums[:, -1:], xp.ones_like(sums[:, -1:]))
    means = xp.where(reached, sums[:, :-1] / weight, xp.zeros_like(sums[:, :-1]))
    return xp.minimum(xp.maximum(means, limits[0]), limits[1])


def held_out_values(
    system: System, features: np.ndarray, columns: np.ndarray, alpha: float
) -> np.ndarray:
    """Values of labelled rows by the graph, each without its own label.  (l, r) → (l, q)."""
    labelled = LabelledRows(features, np.zeros(len(features), dtype=np.int64), columns)
    sums, _ = leave_one_out(system, labelled, alpha)
    everything = features @ system.coefficients(alpha)[:, -1]
    values = columns[:, :-1] / columns[:, -1:]
    limits = (values.min(axis=0), values.max(axis=0))
    # What is left of a row's own weight when it is all there was is rounding.
    return np.asarray(smoothed(sums, limits, np.maximum(1e-9 * np.abs(everything), FLOOR)))


def held_out_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean of the other labels.  (l, q)."""
    rest = weights.sum() - weights
    sums = weights @ values - weights[:, None] * values
    return np.where(rest[:, None] > 0, sums / np.where(rest > 0, rest, 1.0)[:, None], 0.0)


def blend(held_out: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights of the graph, of ridge regression and of the mean, for each target.  (3, q).

    They are not negative, add up to 1, and minimise the squared error of ``held_out`` (3, l, q),
    what each says of labelled rows without their label in units of the spread, against ``values``
    (l, q), plus PULL·‖β − START‖².
    """
    n_members, n_labels, n_targets = held_out.shape
    if n_labels < MIN_HELD_OUT:
        return np.tile(START[:, None], n_targets)
    from scipy.optimize import nnls  # slow to load, and scoring new rows does without

    roots = np.sqrt(weights * (n_labels / weights.sum()))
    pull = np.sqrt(PULL) * np.eye(n_members)
    firm = 1e4 * np.sqrt(n_labels) * np.ones((1, n_members))  # they add up to 1
    parts = np.empty((n_members, n_targets))
    for target in range(n_targets):
        system = np.vstack([(held_out[:, :, target] * roots).T, pull, firm])
        right = np.concatenate([roots * values[:, target], np.sqrt(PULL) * START, firm[0, :1]])
        parts[:, target], _ = nnls(system, right)
    return parts / parts.sum(axis=0)
