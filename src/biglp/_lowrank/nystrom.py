"""Nyström factor of the Gaussian kernel (Algorithm 2 of the paper, Eq. 2.5).

Notation: L the k landmarks, C = w(X, L) (n × k), G = w(L, L) (k × k) = V·diag(λ)·Vᵀ.
W ≈ C·G⁺·Cᵀ = F·Fᵀ with F = C·V_r·diag(λ_r)^(−1/2).

The text of the paper takes an element-wise root of G⁺, which is not a factor and is NaN wherever
G⁺ is negative; its Algorithm 2 has the eigen form used here. Unlike Algorithm 2, eigenvalues below
a cut-off are dropped: repeated landmarks and low-dimensional data make some of them zero or less.

T = V_r·diag(λ_r)^(−1/2) can be applied to every row, or once to the sums over all rows. The second
saves a k × k product a row, but multiplies the rounding errors of the sums by the condition number
of G, so it is done only where that is small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import Array, Rows, like
from biglp._lowrank.kernels import gaussian, gaussian_matrix
from biglp._lowrank.landmark_factor import LandmarkFactor
from biglp._lowrank.settings import GraphSettings

MAX_MIXING_CONDITION = 30.0
"""Largest condition number of G at which mixing is left to the sums."""


class NystromFactor(LandmarkFactor):
    """Nyström features of the Gaussian kernel.

    Parameters
    ----------
    landmarks : ndarray of shape (k, m)
        Landmarks, in the precision of the rows.
    bandwidth : float
        σ of the kernel.
    """

    kind = "nystrom"
    takes_half = True
    spacing_share = 0.45

    def __init__(self, landmarks: np.ndarray, bandwidth: float) -> None:
        self.landmarks = landmarks
        self.bandwidth = float(bandwidth)
        kernel = gaussian_matrix(landmarks, bandwidth)
        values, vectors = np.linalg.eigh(kernel)
        keep = values > eigenvalue_cutoff(len(landmarks), landmarks.dtype) * values[-1]
        self._root = vectors[:, keep] / np.sqrt(values[keep])  # T = V_r·diag(λ_r)^(−1/2), (k, r)
        self.rank = int(keep.sum())
        if values[-1] <= MAX_MIXING_CONDITION * values[keep][0]:
            self.mixing = self._root

    @classmethod
    def on(cls, landmarks: np.ndarray, bandwidth: float, settings: GraphSettings) -> NystromFactor:
        """Take the kernel between the landmarks apart."""
        return cls(landmarks, bandwidth)

    def features(self, rows: Rows) -> Array:
        """C, or C·T where mixing afterwards would lose digits.  (b, m) → (b, k) or (b, r)."""
        kernel = gaussian(rows, self.landmarks, self.bandwidth)
        return kernel if self.mixing is not None else kernel @ like(kernel, self._root)

    def state(self) -> dict[str, np.ndarray]:
        """Landmarks and bandwidth: the rest follows."""
        return {"landmarks": self.landmarks, "bandwidth": np.array(self.bandwidth)}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> NystromFactor:
        """Rebuild from landmarks and bandwidth."""
        return cls(state["landmarks"], float(state["bandwidth"]))


def eigenvalue_cutoff(k: int, dtype: np.dtype[Any]) -> float:
    """Relative size under which an eigenvalue of G is noise at the precision of the rows."""
    return float(k * np.finfo(dtype).eps)
