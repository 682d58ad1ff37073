"""Class balance: factors on the columns of F before the largest one wins.

Raw scores grow with the number of labels of a class, so the class with most labels wins wherever
little is known; in the limit α → 1 it wins everywhere. Class-mass normalisation divides each
column by its mass over all rows and multiplies it by the class's prior:

    F_ij ← F_ij · q_j / Σ_i F_ij,       Σ_i F_ij = (1−α)·ℓ_j + t·C_j.

The mass comes from t = F̄ᵀ1: no sweep is needed.

``prior_power`` τ makes the prior q_j ∝ ℓ_j^τ: 0 takes all classes as equally likely, 1 trusts the
shares among the labelled rows.
"""

from __future__ import annotations

import numpy as np

from biglp._core.errors import ParameterError

LEAST_SHARE = 1e-30
"""Share of all rows below which a class is none; products of such shares are zero in float32."""


def class_mass(counts: np.ndarray, from_graph: np.ndarray, alpha: float) -> np.ndarray:
    """Σ_i F_ij from ℓ and t·C, never below the mass of the labels alone.  (..., c) → (..., c)."""
    # With a non-negative graph the second term is positive; Nyström can make it slightly negative.
    return (1.0 - alpha) * counts + np.maximum(from_graph, 0.0)


def power_prior(counts: np.ndarray, power: float) -> np.ndarray:
    """Class prior q_j ∝ ℓ_j^τ, adding up to 1.  (c,)."""
    prior = counts.astype(np.float64) ** power
    return prior / prior.sum()


def given_prior(prior: object, n_classes: int) -> np.ndarray:
    """Check a prior given by the user.  (c,)."""
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n_classes,) or not np.isfinite(values).all() or (values <= 0).any():
        raise ParameterError(
            f"class_balance={prior!r} cannot be used; give 'auto', 'mass', 'share', 'centre', "
            f"'none', or {n_classes} positive numbers, one for each class in the order of classes_."
        )
    shares = values / values.max()  # their plain sum may be beyond all numbers
    shares /= shares.sum()
    if shares.min() < LEAST_SHARE:
        raise ParameterError(
            f"class_balance={prior!r} gives a class a share of {shares.min():.3g}; give shares of "
            f"{LEAST_SHARE:g} or more, or leave the labels of that class out."
        )
    return shares


# --------------------------------------------------------------------------------------------------
# Class shares: a threshold for each class, so that the answers have the shares of the labels.
#
# Where all similarities are positive and nearly alike (a wide kernel, a linear one on shifted
# features, a low rank), every row is mostly like every label. The scores of a row are then its
# degree times a constant for each class, plus the little that tells rows apart, and the class with
# more labels wins everywhere; no factor on the columns of F mends that. So the constant is taken
# off:
#
#     G_ij = F_ij − τ_j·√d_i,    τ such that G_ij is the largest of its row in a share q_j of rows.
#
# √d is the constant mode of the graph, √d = F̄·s with s = Fᵀ1, so that τ goes into the
# coefficients, C − s·τᵀ, and new rows need nothing else. q_j is the share of class j among the
# labels.


ROUNDS = 100
"""Most rounds over the classes; two classes need one."""
TOLERANCE = 1e-3
"""Shares this near to those that are wanted will do."""
MOST_CELLS = 20_000_000
"""Rows times classes squared, which a round takes."""


def share_offsets(scores: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """τ, adding up to 0, so that ``scores`` − τ is largest in column j for a share q_j of the rows.

    τ minimises the convex function mean_i max_j (g_ij − τ_j) + q·τ, whose gradient is the
    difference of shares. One class after the other is put at its minimum, a quantile.
    """
    n_classes = len(shares)
    # Every so many rows, not the first ones: a file may be sorted by class.
    scores = scores[:: -(-len(scores) // max(MOST_CELLS // n_classes**2, 1000))]
    offsets = np.median(scores, axis=0)
    for _ in range(1 if n_classes == 2 else ROUNDS):
        for code in range(1, n_classes):  # a common offset changes nothing, so the first may stay
            rest = np.delete(scores - offsets, code, axis=1).max(axis=1)
            offsets[code] = np.quantile(scores[:, code] - rest, 1.0 - shares[code])
        predicted = np.bincount((scores - offsets).argmax(axis=1), minlength=n_classes)
        if np.abs(predicted / len(scores) - shares).max() <= TOLERANCE:
            break
    return offsets - offsets.mean()
