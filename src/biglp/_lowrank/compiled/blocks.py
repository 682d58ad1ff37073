"""The compiled loops on the arrays of a block: features, their Gram matrix, and answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from biglp._lowrank.compiled.gaussians import Tables, multiplied, table_of


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


class Multiplied(np.ndarray):
    """Features whose product with a few columns, as of one for each class, is compiled.

    BLAS copies all features first, which takes as long as reading them. The rest is NumPy's, and
    what comes of it is a plain array.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **others: Any) -> Any:
        """Multiply matrices of one type; leave everything else to NumPy."""
        plain = [x.view(np.ndarray) if isinstance(x, Multiplied) else x for x in inputs]
        if ufunc is np.matmul and method == "__call__" and not others:
            x, y = plain
            if (
                x.ndim == y.ndim == 2
                and x.dtype == y.dtype
                and x.size
                and isinstance(y, np.ndarray)
            ):
                return multiplied(x, table_of(y.T))[0]
        if "out" in others:
            others["out"] = tuple(np.asarray(x) for x in others["out"])
        return getattr(ufunc, method)(*plain, **others)
