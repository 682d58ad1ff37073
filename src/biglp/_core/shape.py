"""The size of a problem: all that its memory and its time depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.effort import DEFAULT_EFFORT


@dataclass(frozen=True)
class Shape:
    """The size of a problem.

    Attributes
    ----------
    n_rows, n_features, n_classes, n_labelled : int
        For regression, a class is a column of sums.
    values : float
        Numbers that are stored for a row; fewer than features where rows are sparse.
    dtype : numpy.dtype
        Type of the arithmetic.
    decoding : int
        Bytes that decoding a table or text takes, before the first sweep.
    part_bytes : int
        Bytes that a thread holds of the input beside its block.
    n_machines : int
        Machines that share out what is kept of the rows between sweeps.
    directions : int
        Features that sparse rows are projected on, or that rows become if these are more; else 0.
    effort : str
        What is spent on them.
    card_row : int
        Bytes that a prepared row takes of a card if it stays there; 0 where it is there anyway.
    """

    n_rows: int
    n_features: int
    n_classes: int
    n_labelled: int
    values: float
    dtype: np.dtype[Any]
    decoding: int = 0
    part_bytes: int = 0
    n_machines: int = 1
    directions: int = 0
    effort: str = DEFAULT_EFFORT
    card_row: int = 0

    @property
    def width(self) -> int:
        """Features of a row in the sweeps."""
        return self.directions or self.n_features

    @property
    def kept_rows(self) -> int:
        """Rows of which one machine keeps something between sweeps."""
        return -(-self.n_rows // self.n_machines)

    @property
    def row_bytes(self) -> float:
        """Bytes of a row as it is stored."""
        return self.values * self.dtype.itemsize


def values_per_row(sample: Rows) -> float:
    """Numbers that are stored for a row: all of a dense one, three for each entry of a sparse."""
    if sparse.issparse(sample):
        return 3.0 * sample.nnz / sample.shape[0]
    return float(sample.shape[1])
