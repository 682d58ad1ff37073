"""What to label first, when there are no labels yet: typical rows that cover the clusters.

1. A random sample of rows shows the graph. A row becomes the unit vector of its leading
   eigenvectors, each weighted as label spreading weights it, so that the product of two rows
   is their correlation: what the label of one says about the other.
2. k-means puts these vectors into as many clusters as rows are wanted, so that every row stands
   for a place that labels spread over.
3. Of the half of each cluster that is nearest to its centre, the row in the densest place is taken:
   it is like many others, and not on the border of its cluster.

Only the sample is read, and everything but its features is small, so that the choice depends on the
seed alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.posterior import ALPHA
from biglp._core.arrays import squared_norms, to_numpy
from biglp._core.parameters import positive_integer
from biglp._core.threads import one_blas_thread
from biglp._fit.sample_graph import Sample
from biglp._graph.graph import Graph
from biglp._rows.source import sample_indices

TYPICAL_SAMPLE, SAMPLE_BYTES, LEAST_SAMPLE = 4000, 64 << 20, 500
"""Rows that are looked at: so many, or so much of wide rows, but not fewer than these."""
MOST_CLUSTERS = 500
"""Rows that are chosen by clusters; more are random ones."""
ITERATIONS, RESTARTS, RESTARTED = 30, 5, 200
"""Iterations of k-means, and starts: so many, or fewer where these would be more centres in all."""
NEIGHBOUR = 10
"""A row's place is as dense as this neighbour is near."""
CENTRAL = 0.5
"""Share of a cluster that is near enough to its centre."""
ROWS_AT_ONCE = 500
"""Rows whose distances to all of the sample are held at once."""


def typical_rows(graph: Graph, n: int, seed: int) -> np.ndarray:
    """Choose rows to label first, those of the largest clusters first.

    Parameters
    ----------
    graph : Graph
    n : int
        How many rows; all when there are fewer.
    seed : int

    Returns
    -------
    rows : ndarray of shape (n,)
        Row numbers, each once.
    """
    n_rows = graph.source.n_rows
    n = min(positive_integer("n", n), n_rows)
    source = graph.source
    fitting = SAMPLE_BYTES // (source.n_features * source.dtype.itemsize)
    size = TYPICAL_SAMPLE if source.is_sparse else min(TYPICAL_SAMPLE, max(fitting, LEAST_SAMPLE))
    sample = Sample.of(graph, size, seed)
    prepared = to_numpy(graph.source.take(sample.rows))
    places = graph.engine.once(lambda: _central_rows(sample, prepared, min(n, MOST_CLUSTERS), seed))
    chosen = sample.rows[places]
    if len(chosen) < n:  # fewer clusters than rows are wanted
        others = np.setdiff1d(sample_indices(n_rows, n + len(chosen), seed), chosen)
        others = np.random.default_rng(seed).permutation(others)
        chosen = np.concatenate([chosen, others])[:n]
    return chosen


def _central_rows(sample: Sample, prepared: Any, n: int, seed: int) -> np.ndarray:
    """Places in a sample of one row a cluster, at most n."""
    with one_blas_thread():
        directions = sample.directions(ALPHA)
        clusters, squared = clustered(directions, n, seed)
        spread = neighbour_distances(prepared, NEIGHBOUR)
    chosen = []
    for cluster in np.argsort(-np.bincount(clusters), kind="stable"):
        members = np.flatnonzero(clusters == cluster)
        if not len(members):
            break
        central = members[squared[members] <= np.quantile(squared[members], CENTRAL)]
        chosen.append(int(central[spread[central].argmin()]))
    return np.array(chosen, dtype=np.int64)


def clustered(
    vectors: np.ndarray, n: int, seed: int, starts: int = RESTARTS
) -> tuple[np.ndarray, np.ndarray]:
    """k-means of a few thousand vectors: the best of several starts.

    Parameters
    ----------
    vectors : ndarray of shape (m, q)
    n : int
        Clusters; fewer are found where there are fewer distinct vectors.
    seed : int
    starts : int
        Starts, at most.

    Returns
    -------
    clusters : ndarray of shape (m,)
    squared : ndarray of shape (m,)
        Squared distance of each vector to its centre.
    """
    trials = [
        _lloyd(vectors, _start(vectors, n, np.random.default_rng((seed, start))))
        for start in range(max(1, min(starts, RESTARTED // n)))
    ]
    return min(trials, key=lambda trial: float(trial[1].sum()))


def _start(vectors: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Choose centres by k-means++, each the best of a few draws.  (n, q), or fewer.

    :func:`biglp._graph.kmeans.kmeans_start` draws for thousands of landmarks, where one group
    more or less does not count; here a group that gets no centre is a class without a label.
    """
    norms = np.einsum("ij,ij->i", vectors, vectors)
    draws = 2 + int(np.log(n))
    chosen: list[int] = []
    squared = np.ones(len(vectors))
    while len(chosen) < n and squared.sum() > 0:
        drawn = rng.choice(len(vectors), draws, p=squared / squared.sum())
        distances = norms[drawn][:, None] + norms - 2.0 * (vectors[drawn] @ vectors.T)
        distances[distances < 1e-9] = 0.0  # rounding: a copy of a centre is no new one
        trials = np.minimum(squared, distances) if chosen else distances
        best = int(trials.sum(axis=1).argmin())
        chosen.append(int(drawn[best]))
        squared = trials[best]
        squared[chosen] = 0.0
    return vectors[chosen]


def _lloyd(vectors: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lloyd's iteration until no vector changes its cluster; an empty cluster stays so."""
    norms = np.einsum("ij,ij->i", vectors, vectors)
    clusters = np.full(len(vectors), -1)
    for _ in range(ITERATIONS):
        squared = np.einsum("ij,ij->i", centres, centres) - 2.0 * (vectors @ centres.T)
        nearest = squared.argmin(axis=1)
        if (nearest == clusters).all():
            break
        clusters = nearest
        members = sparse.csr_array(
            (np.ones(len(vectors)), (clusters, np.arange(len(vectors)))),
            shape=(len(centres), len(vectors)),
        )
        counts = np.bincount(clusters, minlength=len(centres))
        means = (members @ vectors) / np.maximum(counts, 1)[:, None]
        centres = np.where(counts[:, None] > 0, means, centres)
    least = np.take_along_axis(squared, clusters[:, None], axis=1)[:, 0]
    # Vectors of a group without ties to others differ by rounding only, which must not rank them.
    return clusters, np.maximum(least + norms, 0.0).round(9)


def neighbour_distances(rows: Any, neighbour: int) -> np.ndarray:
    """Squared distance of each row to one of its nearest others.  (m, d) → (m,)."""
    norms = to_numpy(squared_norms(rows))
    neighbour = min(neighbour, len(norms) - 1)
    found = np.empty(len(norms))
    for start in range(0, len(norms), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        products = rows[part] @ rows.T
        dense = products.toarray() if sparse.issparse(products) else products
        squared = norms[None, :] - 2.0 * dense
        found[part] = np.partition(squared, neighbour, axis=1)[:, neighbour] + norms[part]
    return np.maximum(found, 0.0)
