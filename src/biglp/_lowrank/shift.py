"""Shifting features to be non-negative (Algorithm S.1).

The text of the paper "adds the minimum"; the algorithm subtracts it where it is negative, which is
what makes the features non-negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, like, namespace, to_numpy
from biglp._core.blocks import Block
from biglp._engines import Engine


def column_minimums(engine: Engine, blocks: Sequence[Block]) -> np.ndarray:
    """Smallest value of every feature over all rows.  (m,)."""
    return np.min(engine.map_blocks(_block_minimum, blocks, label="minimums"), axis=0)


def negative_offsets(engine: Engine, blocks: Sequence[Block]) -> np.ndarray:
    """What Algorithm S.1 subtracts: the minimum of each feature that has negative values."""
    return np.minimum(column_minimums(engine, blocks), 0.0)


def shifted(rows: Rows, offsets: np.ndarray) -> Rows:
    """Rows minus offsets; CSR rows stay sparse when nothing is to be subtracted."""
    if not offsets.any():
        return rows
    dense = rows.toarray() if sparse.issparse(rows) else rows
    return dense - like(dense, offsets)


def _block_minimum(block: Block) -> np.ndarray:
    rows: Array = block.rows()
    if sparse.issparse(rows):
        return np.asarray(rows.min(axis=0).toarray()).ravel()
    return np.asarray(to_numpy(namespace(rows).amin(rows, 0)))
