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
from biglp._compiled import searches
from biglp._compiled.pairs import TABLE_WIDTH
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
from biglp._core.blocks import cut_rows
from biglp._core.parameters import positive, positive_integer
from biglp._core.settings import GraphSettings
from biglp._core.size import EFFORTS, Cost, Size
from biglp._graph.factor import SWEEP_ENTRY, Factor, landmarks_for
from biglp._graph.features import DENSE_COLUMNS, Packed, not_taken
from biglp._graph.graph import TrainingRows
from biglp._graph.kernels import SEARCH_CELLS, SEARCH_ROWS, Search, pair_seconds, scatter
from biglp._graph.landmarks import LandmarkFactor
from biglp._rows.prepared import PreparedRows, Sample
from biglp._transforms import Chain
from biglp._transforms.base import below
from biglp._transforms.views import Views

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
"""Cells of a landmark's row of the sparse Gram matrix, and what their sums take."""


class AnchorFactor(LandmarkFactor):
    """Weights to the nearest landmarks."""

    kind = "anchors"
    params = {"n_nearest": positive_integer, "bandwidth_factor": positive}  # noqa: RUF012
    unit_degrees = True
    takes_half = True
    takes_views = True
    # A landmark for every other row of few, as many as are affordable of many. With few labels a
    # fine graph is the better one (20,000 images with one label a class: 78 % with 1,000 landmarks,
    # 81 % with 2,000, 82 % with 4,000), and up to a few hundred thousand rows it costs little
    # beside the rest.
    landmarks_by_effort = True
    usual = {"n_nearest": NEAREST}  # noqa: RUF012
    spacing_share = 0.4
    compiles = staticmethod(searches)

    def __init__(self, landmarks: np.ndarray, bandwidth: float, n_nearest: int = NEAREST) -> None:
        self.landmarks = landmarks
        self.bandwidth = float(bandwidth)
        self.n_nearest = min(n_nearest, len(landmarks))  # s
        self.rank = len(landmarks)

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> Any:
        """Choose landmarks and bandwidth, of every view where there are several."""
        if len(rows.source.chain.views) > 1:
            return ViewsFactor.fit(rows, settings)
        return super().fit(rows, settings)

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Any:
        if "views" in state:
            return ViewsFactor.from_state(state)
        return super().from_state(state)

    def left_out(self, effort: str, n_rows: int) -> list[dict[str, Any]]:
        """Landmarks that a larger effort would have, where this one decided on their number."""
        most = landmarks_for(EFFORTS["best"], n_rows)
        if self.rank != landmarks_for(EFFORTS[effort], n_rows) or self.rank >= most:
            return []  # the user's number, or fewer because rows repeat: more would not help
        seconds = (most - self.rank) * n_rows * pair_seconds(self.landmarks.shape[1])
        points = POINTS * ((1000 / self.rank) ** FALL - (1000 / most) ** FALL)
        return [not_taken("landmarks", self.rank, most, seconds, points)]

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
        table = 8 * rank**2 if rank <= TABLE_WIDTH else 0
        needed = CELL_BYTES * cells + table + chosen + solved
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


# --------------------------------------------------------------------------------------------------
# One graph of several views of the same rows: the mean of the anchor graphs of all of them.
#
# With Z_v the mixing weights of view v (of V), features are F = [Z_1, …, Z_V] / V. Rows sum to 1,
# so F is an anchor graph with Λ = diag(Fᵀ1), and
#
#     W = F·Λ⁻¹·Fᵀ = (W_1 + … + W_V) / V,     W_v = Z_v·Λ_v⁻¹·Z_vᵀ,   Λ_v = V·(part of Λ of view v).


class ViewsFactor(Factor):
    """Weights to the nearest landmarks of every view, side by side."""

    kind = "anchors"  # which makes one of these where rows have several views
    unit_degrees = True

    def __init__(self, parts: dict[str, AnchorFactor], columns: list[slice]) -> None:
        """Take the factor of each view, by its name, and where its features are in a row."""
        self.parts, self.columns = parts, columns
        self.ends = np.cumsum([part.rank for part in parts.values()]).tolist()
        self.rank = self.ends[-1]
        self.n_nearest = sum(part.n_nearest for part in parts.values())

    @property
    def places(self) -> list[slice]:
        """Where the landmarks of each view are among all."""
        return [slice(start, end) for start, end in zip([0, *self.ends], self.ends, strict=False)]

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> ViewsFactor:
        views, source = views_in(rows.source.chain), rows.source
        parts = {}
        for (name, chain), columns in zip(views.chains.items(), views.columns, strict=True):
            own = PreparedRows(source.inner, source.dtype, chain, source.device)
            blocks = cut_rows(own, max(block.n_rows for block in rows.blocks))
            sample: Any = SampleOfView(rows.sample, columns)
            view = TrainingRows(rows.engine, own, blocks, sample, name)
            parts[name] = AnchorFactor.fit(view, settings)
        return cls(parts, views.columns)

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        return AnchorFactor.cost(settings, size)

    def features(self, rows: Rows) -> Array:
        """F, as CSR rows of the nearest landmarks of all views.  (b, Σm) → (b, Σk)."""
        packed = []
        for part, columns, place in zip(
            self.parts.values(), self.columns, self.places, strict=True
        ):
            own = np.ascontiguousarray(rows[:, columns])
            numbers, weights = part.pack(part.features(own))
            packed.append((numbers.astype(np.int32) + place.start, weights / len(self.parts)))
        numbers, weights = (np.hstack(each) for each in zip(*packed, strict=True))
        return self.unpack((numbers, weights))

    def pack(self, features: Array) -> Packed:
        shape = (features.shape[0], self.n_nearest)
        columns = features.indices.astype(np.min_scalar_type(self.rank - 1)).reshape(shape)
        return columns, features.data.reshape(shape)

    def unpack(self, packed: Packed) -> Array:
        columns, weights = packed
        return scatter(columns.astype(np.int32, copy=False), weights, self.rank)

    def left_out(self, effort: str, n_rows: int) -> list[dict[str, Any]]:
        return next(iter(self.parts.values())).left_out(effort, n_rows)

    def state(self) -> dict[str, np.ndarray]:
        names = np.array(list(self.parts), dtype=np.str_)
        ends = np.array([columns.stop for columns in self.columns])
        return {"views": names, "ends": ends} | {
            f"{name}.{key}": array
            for name, part in self.parts.items()
            for key, array in part.state().items()
        }

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> ViewsFactor:
        names, ends = state["views"].tolist(), state["ends"].tolist()
        columns = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        parts = {name: AnchorFactor.from_state(below(state, f"{name}.")) for name in names}
        return cls(parts, columns)

    def describe(self) -> dict[str, Any]:
        first, *_ = self.parts.values()
        return first.describe()


def views_in(chain: Chain) -> Views:
    (views,) = chain.transforms
    assert isinstance(views, Views)
    return views


class SampleOfView:
    """The features of one view in a sample of rows; all else is that of the sample."""

    def __init__(self, sample: Sample, columns: slice) -> None:
        self._sample, self._columns = sample, columns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sample, name)

    def prepared(self, n: int, n_threads: int = 1) -> Rows:
        return np.ascontiguousarray(self._sample.prepared(n, n_threads)[:, self._columns])

    def take(self, rows: np.ndarray) -> Rows | None:
        taken = self._sample.take(rows)
        return None if taken is None else np.ascontiguousarray(taken[:, self._columns])

    def remember(self, rows: np.ndarray, prepared: Rows) -> None:
        """Nothing: only rows with all views are kept."""
