"""Sparse anchor graph: each row is a convex mix of its s nearest landmarks.

Not in the paper, and the best default we know. Notation: Z (n × k) holds the mixing weights,
Z_ij ∝ exp(−‖x_i − l_j‖² / 2σ²) over the s nearest landmarks, rows summing to 1, Λ = diag(Zᵀ1).
W = Z·Λ⁻¹·Zᵀ is non-negative with row sums Z·Λ⁻¹·Zᵀ1 = Z·1 = 1: every degree is exactly 1, so
S = W, its largest eigenvalue is 1, and the sweep for the degrees is not needed.

Features are Z; Λ^(−1/2) is known only after the sweep and is applied to its k × k result.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from biglp._algebra.systems import (
    COLUMNS_AT_ONCE,
    DENSE_ROWS_AT_ONCE,
    FACTOR_RANK,
    KEPT_FACTORS,
    MOST_LABELLED,
    MOST_SOLVED,
    is_factored,
    is_sparse_rank,
)
from biglp._compiled import is_search_worthwhile
from biglp._core.arrays import (
    PAIR_BYTES,
    ROWS_AT_ONCE,
    Array,
    RowEntries,
    Rows,
    check_finite,
    is_torch,
    namespace,
)
from biglp._core.parameters import positive, positive_integer
from biglp._core.settings import GraphSettings
from biglp._core.size import EFFORTS, Cost, Size, left_out, pair_seconds
from biglp._graph.factor import SWEEP_ENTRY
from biglp._graph.features import DENSE_COLUMNS, Packed
from biglp._graph.kernels import SEARCH_CELLS, SEARCH_ROWS, Search, scatter
from biglp._graph.landmarks import LandmarkFactor

POINTS, FALL = 2.3, 1.5
"""Points of accuracy that k landmarks lose to an endless number with a few labels of each class:
POINTS · (1000/k)^FALL. That is 1.5 from 1,000 to 2,000 landmarks and 0.5 from there to 4,000, about
the mean of images, which win twice that, and tables, which win little (docs/benchmarks.md)."""
NEAREST = 5
"""Landmarks that a row is tied to."""
KEPT_WIDTH = 128
"""Numbers that a row of sparse features takes, with those of its part in the Gram matrix and of
what members of a committee make of the row."""
CELLS, CELL_BYTES = 400, 120
"""Cells of a landmark's row of the sparse Gram matrix, and what their exact sums take."""


class AnchorFactor(LandmarkFactor):
    """Weights to the nearest landmarks."""

    kind = "anchors"
    params = {"n_nearest": positive_integer, "bandwidth_factor": positive}  # noqa: RUF012
    unit_degrees = True
    takes_half = True
    # A landmark for every other row of few, as many as are affordable of many. With few labels a
    # fine graph is the better one (20,000 images with one label a class: 78 % with 1,000 landmarks,
    # 81 % with 2,000, 82 % with 4,000), and up to a few hundred thousand rows it costs little
    # beside the rest.
    landmarks_by_effort = True
    usual = {"n_nearest": NEAREST}  # noqa: RUF012
    spacing_share = 0.4
    compiles = staticmethod(is_search_worthwhile)

    def __init__(self, landmarks: np.ndarray, bandwidth: float, n_nearest: int = NEAREST) -> None:
        self.landmarks = landmarks
        self.bandwidth = float(bandwidth)
        self.n_nearest = min(n_nearest, len(landmarks))  # s
        self.rank = len(landmarks)

    def left_out(self, effort: str, n_rows: int) -> list[dict[str, Any]]:
        """Landmarks that a larger effort would have, where this one decided on their number."""
        most = EFFORTS["best"].landmarks_for(n_rows)
        if self.rank != EFFORTS[effort].landmarks_for(n_rows) or self.rank >= most:
            return []  # the user's number, or fewer because rows repeat: more would not help
        seconds = (most - self.rank) * n_rows * pair_seconds(self.landmarks.shape[1])
        points = POINTS * ((1000 / self.rank) ** FALL - (1000 / most) ** FALL)
        return [left_out("landmarks", self.rank, most, seconds, points)]

    @cached_property
    def _search(self) -> Search:
        return Search(self.landmarks, self.compiled)

    def features(self, rows: Rows) -> Array:
        """Z, with s entries a row: CSR for NumPy rows, RowEntries for torch.  (b, m) → (b, k)."""
        columns, squared = self._search.nearest(rows, self.n_nearest)
        check_finite(squared)
        # ‖x‖² cancels between numerator and denominator, as does the nearest distance, which is
        # taken out so that the nearest weight is 1 before normalising and no row underflows.
        nearest = squared[:, :1]
        squared -= nearest.copy() if isinstance(nearest, np.ndarray) else nearest.clone()
        weights = namespace(squared).exp(squared * (-0.5 / self.bandwidth**2))
        weights /= weights.sum(1)[:, None]
        return self.unpack((columns, weights))

    def pack(self, features: Array) -> Packed:
        """Landmark numbers in as few bytes as they need, and weights."""
        if isinstance(features, RowEntries):
            return features.columns, features.weights
        shape = (features.shape[0], self.n_nearest)
        columns = features.indices.astype(np.min_scalar_type(self.rank - 1)).reshape(shape)
        return columns, features.data.reshape(shape)

    def unpack(self, packed: Packed) -> Array:
        columns, weights = packed
        if is_torch(weights):
            return RowEntries(columns.int(), weights, self.rank)
        return scatter(columns.astype(np.int32, copy=False), weights, self.rank)

    @classmethod
    def sweep_cost(cls, size: Size, device: str) -> Cost:
        """The few nearest landmarks of a row, for which a block holds distances of some rows."""
        if device != "cpu":  # distances to all landmarks are held for a part of the rows only
            return super().sweep_cost(replace(size, rank=8 * NEAREST), device)
        row = super().sweep_cost(size, device).row
        cells = size.rank * (max(SEARCH_CELLS // size.rank, SEARCH_ROWS) + 2 * size.width)
        if size.rank > DENSE_COLUMNS:  # answers come later
            width = KEPT_WIDTH + 10 * size.n_classes
            row = int(size.dtype.itemsize * (size.values + width + size.n_classes)) + 64
        return Cost(row=row, block=int(size.dtype.itemsize * cells))

    @classmethod
    def solving_bytes(cls, settings: GraphSettings, size: Size) -> int:
        rank, classes = size.rank, size.n_classes
        nearest = int(settings.factor_params.get("n_nearest", NEAREST))
        half = 2 * 8 * rank * (DENSE_ROWS_AT_ONCE + classes)
        if not is_sparse_rank(rank, size.n_labelled):
            if rank < FACTOR_RANK:
                return super().solving_bytes(settings, size)
            # Sums, the factors that are kept and one that is made; with labels of two thirds of r
            # rows, the inverse of a factor. Labelled rows are sparse, and few at a time are not.
            learnt = min(size.n_labelled, MOST_LABELLED)
            squares = 2 + KEPT_FACTORS + (3 * learnt > 2 * rank)
            return 8 * squares * rank**2 + half + 8 * learnt * (8 * nearest + 6 * classes)
        # A row ties each of its landmarks to the others; rows share most of these cells.
        cells = min(rank**2, rank + nearest * (nearest - 1) * size.n_rows, CELLS * rank)
        # Labelled rows are sparse too, and solved for a few at a time.
        chosen = 8 * MOST_SOLVED * (8 * nearest + 6 * classes)
        solved = 8 * 8 * rank * (COLUMNS_AT_ONCE + classes)
        needed = CELL_BYTES * cells + chosen + solved
        if is_factored(rank, size.n_labelled, classes, cells):
            # The sums are done by then, and of a cell only its number and place are left.
            return max(needed, KEPT_FACTORS * (8 * rank**2 + half) + 16 * cells + chosen)
        return needed

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """Sparse features, and with thousands of landmarks sparse sums."""
        cost, rank = super().cost(settings, size), size.rank
        nearest = int(settings.factor_params.get("n_nearest", NEAREST))
        index = np.min_scalar_type(rank - 1).itemsize if settings.device == "cpu" else 4
        sweep = SWEEP_ENTRY * size.n_rows * nearest**2
        return cost._replace(
            sums_row=16 * nearest**2,
            gpu=cost.gpu + PAIR_BYTES * nearest**2 * min(ROWS_AT_ONCE, size.n_rows),
            stored_row=nearest * (size.dtype.itemsize + index),
            seconds={**cost.seconds, "Gram": sweep, "labels": sweep / 2},
        )
