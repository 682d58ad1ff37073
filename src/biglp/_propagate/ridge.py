"""Ridge regression on a few labelled rows, with exact leave-one-out for every penalty.

With A = W^(1/2)(X − 1x̄ᵀ) = U·diag(s)·Vᵀ, z the targets in the same way weighted and centred,

    β(λ) = Aᵀ·U·diag(1/(s² + λ))·Uᵀz,    h_i = w_i/Σw + Σ_j U_ij²·s_j²/(s_j² + λ),

and the error for row i without row i is e_i / (1 − h_i): the intercept is not penalised.
U and s come from the smaller of AᵀA and AAᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows

PENALTIES = np.logspace(-4, 4, 17)
"""Candidates for λ, in units of the mean of s²."""
LEAST = 1e-200
"""s² below which a direction carries nothing: beside a row far out all others may be so close."""


@dataclass(frozen=True)
class Ridge:
    """A fitted ridge regression: values = rows·slopes + intercepts.

    Attributes
    ----------
    slopes, intercepts : ndarrays of shape (m, q) and (q,)
    held_out : ndarray of shape (l, q)
        What is said of each labelled row without it.
    """

    slopes: np.ndarray
    intercepts: np.ndarray
    held_out: np.ndarray


def fit_ridge(
    rows: Rows,
    values: np.ndarray,
    weights: np.ndarray,
    spread: np.ndarray,
    penalties: np.ndarray = PENALTIES,
) -> Ridge:
    """Fit to labelled rows with the penalty, for each target, of least leave-one-out error.

    Parameters
    ----------
    rows : array or CSR matrix of shape (l, m)
    values : ndarray of shape (l, q)
    weights : ndarray of shape (l,)
    spread : ndarray of shape (m,)
        Spread of the features over all rows: a handful of labelled rows does not know it.
    penalties : ndarray
        Candidates.
    """
    total = weights.sum()
    roots = np.sqrt(weights)[:, None]
    mean = weights @ values / total
    targets = roots * (values - mean)
    scaled: Rows = rows @ sparse.diags(1.0 / spread) if sparse.issparse(rows) else rows / spread
    middle = np.asarray(weights @ scaled / total).ravel()
    left, squares = _decomposed(scaled, middle, roots)
    size = squares.mean() if len(squares) and squares.mean() > 0 else 1.0
    turned = left.T @ targets
    held_out = np.full_like(values, np.inf)
    shrunk = np.zeros_like(turned)
    for penalty in penalties * size:
        kept = squares / (squares + penalty)
        own = weights / total + (left * left) @ kept
        errors = (targets - left @ (kept[:, None] * turned)) / roots
        # A row that decides its own value (a single one) has no error; it is told the mean.
        errors = np.where(own[:, None] < 1 - 1e-9, errors / np.maximum(1 - own, 1e-9)[:, None], 0)
        better = weights @ errors**2 < weights @ (values - held_out) ** 2
        held_out = np.where(better, values - errors, held_out)
        shrunk = np.where(better, turned / (squares + penalty)[:, None], shrunk)
    back = roots * (left @ shrunk)  # Aᵀ = (X − 1x̄ᵀ)ᵀW^(1/2)
    slopes = np.asarray(scaled.T @ back) - np.outer(middle, back.sum(axis=0))
    intercepts = mean - middle @ slopes
    return Ridge(slopes / spread[:, None], intercepts, held_out)


def _decomposed(
    scaled: Rows, middle: np.ndarray, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """U and s² of A, without directions that carry nothing."""
    if not sparse.issparse(scaled):
        centred = roots * (scaled - middle)
        if centred.shape[0] > centred.shape[1]:
            squares, right = np.linalg.eigh(centred.T @ centred)
            kept = squares > max(1e-10 * squares[-1], LEAST)
            return centred @ right[:, kept] / np.sqrt(squares[kept]), squares[kept]
        gram = centred @ centred.T
    else:  # the centre would fill all zeros: it is taken off the products instead
        products = np.asarray((scaled @ scaled.T).todense())
        ahead = np.asarray(scaled @ middle)
        gram = roots * (products - ahead[:, None] - ahead + middle @ middle) * roots.T
    squares, left = np.linalg.eigh(gram)
    kept = squares > max(1e-10 * squares[-1], LEAST)
    return left[:, kept], squares[kept]
