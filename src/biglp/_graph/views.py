"""One graph of several views of the same rows: the mean of the anchor graphs of all of them.

With Z_v the mixing weights of view v (of V), features are F = [Z_1, …, Z_V] / V. Rows sum to 1, so
F is an anchor graph with Λ = diag(Fᵀ1), and

    W = F·Λ⁻¹·Fᵀ = (W_1 + … + W_V) / V,     W_v = Z_v·Λ_v⁻¹·Z_vᵀ,   Λ_v = V·(part of Λ of view v).

One sweep sums all of them: the sums of view v are a diagonal block of those of F, times V. So
whoever learns from one view (:func:`views_of`) needs no sweep of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.sums import GramSums
from biglp._algebra.systems import is_sparse_rank
from biglp._core.arrays import Array, Rows
from biglp._core.blocks import cut_rows
from biglp._core.settings import GraphSettings
from biglp._core.size import Cost, Size
from biglp._graph.anchors import AnchorFactor
from biglp._graph.factor import Factor
from biglp._graph.features import Features, Normalisation, Packed
from biglp._graph.graph import Graph, TrainingRows
from biglp._graph.kernels import scatter
from biglp._rows.prepared import PreparedRows, Sample
from biglp._transforms import Chain
from biglp._transforms.base import below
from biglp._transforms.views import Views


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
        views, source = _views(rows.source.chain), rows.source
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


def _views(chain: Chain) -> Views:
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


@dataclass(frozen=True)
class OneView:
    """One view of a graph, and how what is learnt on it is asked of rows of all views."""

    name: str
    graph: Graph
    sums: GramSums
    columns: slice  # its features in a row
    # Σk × k: what turns coefficients of its features into those of all
    places: slice | None = None
    n_landmarks: int = 0
    n_features: int = 0
    n_views: int = 1

    def widen_coefficients(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of its features as those of the features of all views."""
        if self.places is None:
            return coefficients
        wide = np.zeros((self.n_landmarks, coefficients.shape[1]))
        wide[self.places] = coefficients * self.n_views
        return wide

    def widen_slopes(self, slopes: np.ndarray) -> np.ndarray:
        """Slopes of its rows as those of rows of all views."""
        if self.places is None:
            return slopes
        wide = np.zeros((self.n_features, slopes.shape[1]))
        wide[self.columns] = slopes
        return wide


def views_of(graph: Graph, sums: GramSums, n_labelled: int) -> list[OneView]:
    """Each view of a graph, with its sums; the graph itself where it has one only."""
    factor = graph.features.factor
    if not isinstance(factor, ViewsFactor):
        return [OneView(graph.view, graph, sums, slice(None))]
    source, views = graph.source, []
    root = np.sqrt(len(factor.parts))
    chains = _views(source.chain).chains
    for (name, part), columns, place in zip(
        factor.parts.items(), factor.columns, factor.places, strict=True
    ):
        gram = sums.gram[place, place] * root**2
        if sparse.issparse(gram) and not is_sparse_rank(part.rank, n_labelled):
            gram = gram.toarray()
        own = replace(
            sums,
            gram=sparse.csr_array(gram) if sparse.issparse(gram) else np.ascontiguousarray(gram),
            targets=sums.targets[place] * root,
            totals=sums.totals[place] * root,
            mixing=sums.mixing[place] / root,
        )
        sample: Any = SampleOfView(graph.sample, columns)
        rows = PreparedRows(source.inner, source.dtype, chains[name], source.device)
        features = Features(part, Normalisation(None, sums.n_rows))
        alone = Graph(graph.engine, rows, cut_rows(rows, rows.n_rows), features, sample, name)
        n_features = source.n_features
        views.append(
            OneView(name, alone, own, columns, place, factor.rank, n_features, len(factor.parts))
        )
    return views
