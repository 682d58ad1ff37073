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


def class_mass(
    totals: np.ndarray, coefficients: np.ndarray, counts: np.ndarray, alpha: float
) -> np.ndarray:
    """Σ_i F_ij for every class, never below the mass of the labels alone.  (c,)."""
    return total_mass(counts, totals @ coefficients, alpha)


def total_mass(counts: np.ndarray, from_graph: np.ndarray, alpha: float) -> np.ndarray:
    """Mass of the labels themselves and what the graph adds to it.  (..., c) → (..., c)."""
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
