"""Sparse anchor graph: each row is a convex mix of its s nearest landmarks.

Not in the paper, and the best default we know. Notation: Z (n × k) holds the mixing weights,
Z_ij ∝ exp(−‖x_i − l_j‖² / 2σ²) over the s nearest landmarks, rows summing to 1, Λ = diag(Zᵀ1).
W = Z·Λ⁻¹·Zᵀ is non-negative with row sums Z·Λ⁻¹·Zᵀ1 = Z·1 = 1: every degree is exactly 1, so
S = W, its largest eigenvalue is 1, and the sweep for the degrees is not needed.

:meth:`AnchorFactor.features` returns Z; Λ^(−1/2) is known only after the sweep and is applied to
its k × k result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, namespace
from biglp._lowrank.base import Factor, check_finite
from biglp._lowrank.kernels import SEARCH_WIDTH, nearest_landmarks, scatter
from biglp._lowrank.stores import Packed


class AnchorFactor(Factor):
    """Weights to the nearest landmarks.

    Parameters
    ----------
    landmarks : ndarray of shape (k, m)
        Landmarks, in the precision of the rows.
    bandwidth : float
        σ of the weights.
    n_nearest : int
        s, the number of landmarks a row is tied to.
    """

    kind = "anchors"
    unit_degrees = True

    def __init__(self, landmarks: np.ndarray, bandwidth: float, n_nearest: int = 3) -> None:
        self.landmarks = landmarks
        self.bandwidth = float(bandwidth)
        self.n_nearest = min(n_nearest, len(landmarks))
        self.rank = len(landmarks)

    def features(self, rows: Rows) -> Array:
        """Z, with s entries a row: CSR for NumPy rows, dense for torch.  (b, m) → (b, k)."""
        columns, squared = nearest_landmarks(rows, self.landmarks, self.n_nearest)
        check_finite(squared)
        # ‖x‖² cancels between numerator and denominator, as does the nearest distance, which is
        # taken out so that the nearest weight is 1 before normalising and no row underflows.
        squared -= (
            squared[:, :1].copy() if isinstance(squared, np.ndarray) else squared[:, :1].clone()
        )
        weights = namespace(squared).exp(squared * (-0.5 / self.bandwidth**2))
        weights /= weights.sum(1)[:, None]
        return scatter(columns, weights, self.rank)

    def pack(self, features: Array) -> Packed:
        """Landmark numbers in as few bytes as they need, and weights."""
        if not sparse.issparse(features):
            return (features,)
        shape = (features.shape[0], self.n_nearest)
        columns = features.indices.astype(self._index_type).reshape(shape)
        return columns, features.data.reshape(shape)

    def unpack(self, packed: Packed) -> Array:
        """CSR matrix from landmark numbers and weights."""
        if len(packed) == 1:
            return packed[0]
        columns, weights = packed
        return scatter(columns.astype(np.int32), weights, self.rank)

    @property
    def _index_type(self) -> Any:
        return np.min_scalar_type(self.rank - 1)

    def stored_bytes_per_row(self, itemsize: int) -> int:
        """Bytes of one row in the store."""
        return self.n_nearest * (itemsize + np.dtype(self._index_type).itemsize)

    def bytes_per_row(self, n_features: int, itemsize: int, device: str = "cpu") -> int:
        """Distances to the landmarks and the few that are kept, which torch holds among zeros."""
        width = min(self.rank, SEARCH_WIDTH) if device == "cpu" else 3 * self.rank
        return itemsize * (n_features + width) + 4 * self.n_nearest * (itemsize + 4)

    def state(self) -> dict[str, np.ndarray]:
        """Landmarks, bandwidth and s."""
        return {
            "landmarks": self.landmarks,
            "bandwidth": np.array(self.bandwidth),
            "n_nearest": np.array(self.n_nearest),
        }

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> AnchorFactor:
        """Rebuild from landmarks, bandwidth and s."""
        return cls(state["landmarks"], float(state["bandwidth"]), int(state["n_nearest"]))

    def describe(self) -> dict[str, Any]:
        """Landmarks, s and bandwidth."""
        return {
            "factor": self.kind,
            "landmarks": self.rank,
            "nearest": self.n_nearest,
            "bandwidth": self.bandwidth,
        }
