"""Label propagation in closed form (Eq. 2.4, 2.5) for one α.

    F = (1−α)Y + F̄·C,   C = α(1−α)(I − αH)⁻¹B,   H and B divided by the radius of S.

The spectrum gives C as well, for every α, and leave-one-out uses that. For the answer itself the
system is solved by Cholesky: where H ≥ 0 (anchors, linear, GLNP) its factor has the signs of an
M-matrix, so that nothing cancels, C ≥ 0 to the last bit, and parts of the graph without labels get
exact zeros. Eigenvectors would mix such parts and leave rounding errors that look like labels. A
sparse H is solved with by conjugate gradients, in layers that keep both properties.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse

from biglp._algebra.conjugate import solve_in_layers
from biglp._algebra.sums import GramSums
from biglp._core.errors import warn_caller


def solve(sums: GramSums, alpha: float, radius: float) -> np.ndarray:
    """Solve for the coefficients C.

    Parameters
    ----------
    sums : GramSums
        H and B.
    alpha : float
        Weight of the neighbours, in (0, 1).
    radius : float
        What S is divided by so that its largest eigenvalue is at most 1.

    Returns
    -------
    coefficients : ndarray of shape (r, c)
    """
    share = alpha / radius
    if sparse.issparse(sums.gram):
        return (1.0 - alpha) * share * solve_in_layers(sums.gram, share, sums.targets)
    system = np.eye(len(sums.gram)) - share * sums.gram
    return (1.0 - alpha) * share * linalg.solve(system, sums.targets, assume_a="pos")


def without_noise(coefficients: np.ndarray, sums: GramSums, alpha: float) -> np.ndarray:
    """Put coefficients that are rounding errors at zero.  (p, c) → (p, c).

    Where H has entries of both signs (Nyström), parts of the graph that no label reaches come out
    as small numbers instead of zero. Where it has not, nothing has cancelled, and the smallest
    coefficient is as exact as the largest.
    """
    entries = sums.gram.data if sparse.issparse(sums.gram) else sums.gram
    if (entries >= 0).all():
        return coefficients
    size = np.abs(coefficients)
    # The solve multiplies rounding errors by its condition, at most 1 / (1 − α).
    noise = len(coefficients) * np.finfo(np.float64).eps / (1.0 - alpha) * size.max(axis=0)
    return np.where(size > noise, coefficients, 0.0)


# --------------------------------------------------------------------------------------------------
# Iterative label propagation (Eq. 2.3, Algorithm S.5) in r-space.
#
# The paper iterates on n-vectors, f ← αF̄F̄ᵀf + (1−α)f₀. With u = F̄ᵀf and b = F̄ᵀf₀ the same
# iteration is u ← αHu + (1−α)b on r numbers, and f = αF̄u + (1−α)f₀ at the end: every iteration
# costs O(r²c) whatever n is, and no row is touched.
#
# Two departures from S.5: it starts at f₀ instead of random numbers in [−1, 1], and the tolerance
# is relative. Scores are of size 1/n, so an absolute tolerance stops at once and leaves the random
# start in the labels.


def iterate(
    sums: GramSums, alpha: float, radius: float, *, max_iter: int = 10_000, tol: float = 1e-7
) -> tuple[np.ndarray, int]:
    """Iterate to the fixed point.

    Parameters
    ----------
    sums : GramSums
        H and B.
    alpha : float
        Weight of the neighbours, in (0, 1).
    radius : float
        What S is divided by so that its largest eigenvalue is at most 1.
    max_iter : int
        Most iterations.
    tol : float
        Stop when no entry changes by more than this fraction of the largest.

    Returns
    -------
    coefficients : ndarray of shape (r, c)
        C, so that F = (1−α)Y + F̄·C.
    n_iter : int
        Iterations done.
    """
    step = (alpha / radius) * sums.gram
    source = (1.0 - alpha) * sums.targets
    state = sums.targets
    change = np.inf
    for iteration in range(1, max_iter + 1):
        fresh = step @ state + source
        change = float(np.abs(fresh - state).max() / (np.abs(fresh).max() or 1.0))
        state = fresh
        if change <= tol * (1.0 - alpha):  # a slow iteration changes little long before its end
            return (alpha / radius) * state, iteration
    from biglp._core.errors import (
        StoppedShortWarning,  # loads scikit-learn, so only when it is needed
    )

    warn_caller(
        f"label propagation stopped after max_iter={max_iter} iterations with a relative change of "
        f"{change:.1e} (tolerance {tol:.0e}); use solver='closed_form', or a smaller alpha "
        f"(alpha={alpha} now).",
        StoppedShortWarning,
    )
    return (alpha / radius) * state, max_iter
