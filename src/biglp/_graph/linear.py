"""The linear kernel: F = shifted X (Algorithm S.1).

W = F·Fᵀ with F = X − min(X, 0) column by column, so that W is non-negative. The rank is the number
of features. New rows are shifted by the same offsets. The text of the paper "adds the minimum"; the
algorithm subtracts it where it is negative, which is what makes the features non-negative.

Without the shift W has both signs, which on centred features is what the paper's "LP (linear)" must
have had: shifted, all rows are alike, the class with more labels wins everywhere, and its
accuracies are out of reach.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, check_finite, like, namespace, to_numpy
from biglp._core.blocks import Block
from biglp._core.parameters import true_or_false
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._engines import Engine
from biglp._graph.factor import Factor
from biglp._graph.graph import TrainingRows


class LinearFactor(Factor):
    """The rows themselves, shifted to be non-negative."""

    kind = "linear"
    params = {"shift": true_or_false}  # noqa: RUF012
    scales_features = False
    n_landmarks_counts = False
    overwritable = False  # without a shift they are the caller's own rows

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = offsets  # what is subtracted from each feature, (m,)
        self.rank = len(offsets)

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> LinearFactor:
        """Find the offsets in one sweep, unless rows are to be taken as they are."""
        if not settings.factor_params.get("shift", True):
            return cls(np.zeros(rows.source.n_features))
        return cls(negative_offsets(rows.engine, rows.blocks))

    @classmethod
    def rank_for(cls, settings: GraphSettings, n_rows: int, n_features: int) -> int:
        return n_features

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        # Features are the rows, and not stored.
        return super().cost(settings, size)._replace(stored_row=0, seconds_row=0.0)

    def features(self, rows: Rows) -> Array:
        """Shifted rows, dense.  (b, m) → (b, m)."""
        features = shifted(rows, self.offsets)
        features = features.toarray() if sparse.issparse(features) else features
        check_finite(features.sum(1))
        return features

    def block_features(self, block: Block) -> Array:
        # Never stored: the rows are the features.
        return self.features(block.rows())

    def state(self) -> dict[str, np.ndarray]:
        return {"offsets": self.offsets}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> LinearFactor:
        return cls(state["offsets"])


def negative_offsets(engine: Engine, blocks: Sequence[Block]) -> np.ndarray:
    """What Algorithm S.1 subtracts: the minimum of each feature that has negative values.  (m,)."""
    minimums = np.min(engine.map_blocks(_block_minimum, blocks, label="minimums"), axis=0)
    return np.minimum(minimums, 0.0)


def _block_minimum(block: Block) -> np.ndarray:
    rows: Array = block.rows()
    if sparse.issparse(rows):
        return np.asarray(rows.min(axis=0).toarray()).ravel()
    return np.asarray(to_numpy(namespace(rows).amin(rows, 0)))


def shifted(rows: Rows, offsets: np.ndarray) -> Rows:
    """Rows minus offsets; CSR rows stay sparse when nothing is to be subtracted."""
    if not offsets.any():
        return rows
    dense = rows.toarray() if sparse.issparse(rows) else rows
    return dense - like(dense, offsets)
