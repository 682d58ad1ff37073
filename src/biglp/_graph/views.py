"""One view of a graph of several (:mod:`.anchors`), by itself.

The sums of view v are a diagonal block of those of all views, times V: whoever learns from one view
needs no sweep of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.sums import GramSums
from biglp._algebra.systems import is_sparse_rank
from biglp._core.blocks import cut_rows
from biglp._graph.anchors import SampleOfView, ViewsFactor, views_in
from biglp._graph.features import Features, Normalisation
from biglp._graph.graph import Graph
from biglp._rows.prepared import PreparedRows


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
    chains = views_in(source.chain).chains
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
