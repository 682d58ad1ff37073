"""Class shares: a threshold for each class, so that the answers have the shares of the labels.

Where all similarities are positive and nearly alike (a wide kernel, a linear one on shifted
features, a low rank), every row is mostly like every label. The scores of a row are then its degree
times a constant for each class, plus the little that tells rows apart, and the class with more
labels wins everywhere; no factor on the columns of F mends that. So the constant is taken off:

    G_ij = F_ij − τ_j·√d_i,    τ such that G_ij is the largest of its row in a share q_j of rows.

√d is the constant mode of the graph, √d = F̄·s with s = Fᵀ1, so that τ goes into the coefficients,
C − s·τᵀ, and new rows need nothing else. q_j is the share of class j among the labels.
"""

from __future__ import annotations

import numpy as np

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
        found = np.bincount((scores - offsets).argmax(axis=1), minlength=n_classes) / len(scores)
        if np.abs(found - shares).max() <= TOLERANCE:
            break
    return offsets - offsets.mean()
