"""The compiled loops on the arrays of a block: features with their sums, and the Gram matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from biglp._lowrank.compiled.gaussians import Tables, multiplied, table_of
from biglp._lowrank.compiled.squares import normalised_gram
from biglp._propagate.normalise import Normalisation


class Made(NamedTuple):
    """What features are made from: landmarks, and the mixing of what they give, if any."""

    landmarks: Tables
    root: Tables | None


def tables(landmarks: np.ndarray, bandwidth: float, root: np.ndarray | None) -> Made:
    """Tables of a Nyström factor, in the type of its landmarks."""
    gamma = 0.5 / bandwidth**2
    lengths = gamma * np.einsum("ij,ij->i", landmarks, landmarks)
    by_rows = None if root is None else table_of(root.T.astype(landmarks.dtype))
    return Made(table_of(landmarks, gamma, lengths), by_rows)


def features(
    rows: np.ndarray, made_from: Made, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Features of a block, and their column sums in float64.

    Raises
    ------
    NonFiniteRowsError
        When a row holds NaN, infinity or values too large to square.
    """
    if made_from.root is None:
        return multiplied(rows, made_from.landmarks, out)
    return multiplied(multiplied(rows, made_from.landmarks)[0], made_from.root, out)


def gram(found: np.ndarray, normalisation: Normalisation) -> tuple[np.ndarray, np.ndarray, int]:
    """Normalise features in place; return F̄ᵀF̄, F̄ᵀ1 and how many rows were repaired."""
    factors, n_repaired = normalisation.factors(found)
    return *normalised_gram(found, factors), n_repaired
