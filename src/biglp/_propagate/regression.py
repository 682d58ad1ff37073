"""Regression by smoothing on the graph, blended with ridge regression.

With K = F̄(I − αH)⁻¹F̄ᵀ the similarity of rows through the graph, y centred and w the weights of the
labelled rows, a row's value is the weighted mean of the labels it is tied to (Nadaraya–Watson):

    f_i = ȳ + Σ_l K_il·w_l·(y_l − ȳ) / Σ_l K_il·w_l  =  ȳ + (F̄·C)_i,1 / (F̄·C)_i,2,

where C comes from the two columns Φ̄ᵀ(w·(y − ȳ)) and Φ̄ᵀw by the same solve as for classes. Where no
label reaches, f_i = ȳ. A row's own label counts through its features alone, so that a training row
gets the same value as a new row at the same place. Leave-one-out takes row i out of both columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import Array, namespace
from biglp._propagate.leave_one_out import LabelledRows, leave_one_out
from biglp._propagate.systems import System

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
    spectrum: System, features: np.ndarray, columns: np.ndarray, alpha: float
) -> np.ndarray:
    """Values of labelled rows by the graph, each without its own label.  (l, r) → (l, q)."""
    labelled = LabelledRows(features, np.zeros(len(features), dtype=np.int64), columns)
    sums, _ = leave_one_out(spectrum, labelled, alpha)
    everything = features @ spectrum.coefficients(alpha)[:, -1]
    limits = (
        (columns[:, :-1] / columns[:, -1:]).min(axis=0),
        (columns[:, :-1] / columns[:, -1:]).max(axis=0),
    )
    # What is left of a row's own weight when it is all there was is rounding.
    return np.asarray(smoothed(sums, limits, np.maximum(1e-9 * np.abs(everything), FLOOR)))


def held_out_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean of the other labels.  (l, q)."""
    rest = weights.sum() - weights
    sums = weights @ values - weights[:, None] * values
    return np.where(rest[:, None] > 0, sums / np.where(rest > 0, rest, 1.0)[:, None], 0.0)


def blend(opinions: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights of the graph, of ridge regression and of the mean, for each target.

    They are not negative, add up to 1, and minimise the squared error on held-out labels plus
    PULL·‖β − START‖².

    Parameters
    ----------
    opinions : ndarray of shape (3, l, q)
        What each says of labelled rows without their label, in units of the spread.
    values : ndarray of shape (l, q)
        The labels.
    weights : ndarray of shape (l,)

    Returns
    -------
    shares : ndarray of shape (3, q)
    """
    n_members, n_labels, n_targets = opinions.shape
    if n_labels < MIN_HELD_OUT:
        return np.tile(START[:, None], n_targets)
    from scipy.optimize import nnls  # slow to load, and scoring new rows does without

    roots = np.sqrt(weights * (n_labels / weights.sum()))
    pull = np.sqrt(PULL) * np.eye(n_members)
    firm = 1e4 * np.sqrt(n_labels) * np.ones((1, n_members))  # they add up to 1
    shares = np.empty((n_members, n_targets))
    for target in range(n_targets):
        system = np.vstack([(opinions[:, :, target] * roots).T, pull, firm])
        right = np.concatenate([roots * values[:, target], np.sqrt(PULL) * START, firm[0, :1]])
        shares[:, target], _ = nnls(system, right)
    return shares / shares.sum(axis=0)
