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

from functools import cached_property
from typing import Any

import numpy as np

from biglp._compiled import TARGET_BLOCK_BYTES, makes_features
from biglp._core.arrays import Array, Rows
from biglp._core.blocks import Block
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._graph.kernels import Gaussians, gaussian_matrix
from biglp._graph.landmarks import LandmarkFactor

MAX_MIXING_CONDITION = 30.0
"""Largest condition number of G at which mixing is left to the sums."""


class NystromFactor(LandmarkFactor):
    """Nyström features of the Gaussian kernel."""

    kind = "nystrom"
    takes_half = True
    spacing_share = 0.45
    compiles = staticmethod(makes_features)

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
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """In larger blocks where the loops go over them."""
        cost = super().cost(settings, size)
        if cls.compiles(size.width, size.rank):
            cost = cost._replace(target=TARGET_BLOCK_BYTES)
        return cost

    def features(self, rows: Rows) -> Array:
        """C, or C·T where mixing afterwards would lose digits.  (b, m) → (b, k) or (b, r)."""
        return self._gaussians.features(rows)

    def block_sums(self, block: Block) -> tuple[Array]:
        """Column sums, made with the features, which are written where they are kept."""
        if not self._gaussians.compiled or "features" in block.memory:
            return super().block_sums(block)
        width = self.rank if self.mixing is None else len(self.landmarks)
        room = self.store.room((block.n_rows, width), self.landmarks.dtype)
        features, sums = self._gaussians.summed(block.rows(), room)
        stored = self.store.keep(self.pack(features))
        if stored is not None:
            block.memory["features"] = stored
        return (sums,)

    @cached_property
    def _gaussians(self) -> Gaussians:
        root = self._root if self.mixing is None else None
        return Gaussians(self.landmarks, self.bandwidth, root, self.compiled)


def eigenvalue_cutoff(k: int, dtype: np.dtype[Any]) -> float:
    """Relative size under which an eigenvalue of G is noise at the precision of the rows."""
    return float(k * np.finfo(dtype).eps)
