"""The linear kernel: F = shifted X.

W = F·Fᵀ with F = X − min(X, 0) column by column, so that W is non-negative. The rank is the number
of features. New rows are shifted by the same offsets. Without the shift W has both signs, which on
centred features is what the paper's "LP (linear)" must have had: shifted, all rows are alike, the
class with more labels wins everywhere, and its accuracies are out of reach.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, check_finite
from biglp._core.blocks import Block
from biglp._core.parameters import true_or_false
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._lowrank.base import Factor
from biglp._lowrank.rows import TrainingRows
from biglp._lowrank.shift import negative_offsets, shifted


class LinearFactor(Factor):
    """The rows themselves, shifted to be non-negative.

    Parameters
    ----------
    offsets : ndarray of shape (m,)
        What is subtracted from each feature.
    """

    kind = "linear"
    params = {"shift": true_or_false}  # noqa: RUF012
    scales_features = False
    n_landmarks_counts = False
    overwritable = False  # without a shift they are the caller's own rows

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = offsets
        self.rank = len(offsets)

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> LinearFactor:
        """Find the offsets in one sweep, unless rows are to be taken as they are."""
        if not settings.factor_params.get("shift", True):
            return cls(np.zeros(rows.source.n_features))
        return cls(negative_offsets(rows.engine, rows.blocks))

    @classmethod
    def rank_for(cls, settings: GraphSettings, n_rows: int, n_features: int) -> int:
        """Rank: the number of features."""
        return n_features

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """The base's; features are the rows, and not stored."""
        return super().cost(settings, size)._replace(stored_row=0, seconds_row=0.0)

    def features(self, rows: Rows) -> Array:
        """Shifted rows, dense.  (b, m) → (b, m)."""
        features = shifted(rows, self.offsets)
        features = features.toarray() if sparse.issparse(features) else features
        check_finite(features.sum(1))
        return features

    def block_features(self, block: Block) -> Array:
        """Never stored: the rows are the features."""
        return self.features(block.rows())

    def state(self) -> dict[str, np.ndarray]:
        """The offsets."""
        return {"offsets": self.offsets}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> LinearFactor:
        """Rebuild from the offsets."""
        return cls(state["offsets"])
