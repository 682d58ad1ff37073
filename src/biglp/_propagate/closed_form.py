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

from biglp._propagate.conjugate import solve_in_layers
from biglp._propagate.sums import GramSums


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
