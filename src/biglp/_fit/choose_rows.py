"""What to label next: one sweep that finds candidates, then a batch chosen without rows.

1. A random sample of rows shows the graph (its leading eigenvectors) and the usual doubt.
2. The sweep: every unlabelled row gets its class probabilities and from them its doubt u, and
   becomes a candidate with a probability that grows with u. The random number of a row depends on
   the seed and its row number alone, so that no cut into blocks and no engine changes the
   candidates. Blocks return a few thousand row numbers in all, whatever n is.
3. The candidates' features are fetched, and :mod:`biglp._algebra.posterior` chooses among them.

The choice is a draw and not an arg-max: rows are drawn in proportion to u^a, times what else
counts, by adding Gumbel noise, made of the same random numbers, to the logarithm. The very largest
doubts belong to outliers and to places where classes overlap; a draw keeps to what is typical of
the rows in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.posterior import ALPHA, Posterior, choose_batch
from biglp._algebra.systems import MOST_LABELLED
from biglp._compiled import largest_column
from biglp._core.arrays import squared_norms, to_numpy
from biglp._core.blocks import Block
from biglp._core.parameters import positive_integer
from biglp._core.threads import one_blas_thread
from biglp._fit.sample import SampleSpectrum, SpectralSample, clustered
from biglp._graph.features import Features
from biglp._graph.graph import Graph
from biglp._labels.labels import Labels
from biglp._learn.base import Predictor, part_of_labels, sample_indices
from biglp._rows.source import row_noise

# --------------------------------------------------------------------------------------------------
# What to label first, when there are no labels yet: typical rows that cover the clusters.
#
# 1. A random sample of rows shows the graph. A row becomes the unit vector of its leading
#    eigenvectors, each weighted as label spreading weights it, so that the product of two rows
#    is their correlation: what the label of one says about the other.
# 2. k-means puts these vectors into as many clusters as rows are wanted, so that every row stands
#    for a place that labels spread over.
# 3. Of the half of each cluster that is nearest to its centre, the row in the densest place is
#    taken: it is like many others, and not on the border of its cluster.
#
# Only the sample is read, and everything but its features is small, so that the choice depends on
# the seed alone.


TYPICAL_SAMPLE, SAMPLE_BYTES, LEAST_SAMPLE = 4000, 64 << 20, 500
"""Rows that are looked at: so many, or so much of wide rows, but not fewer than these."""
MOST_CLUSTERS = 500
"""Rows that are chosen by clusters; more are random ones."""
NEIGHBOUR = 10
"""A row's place is as dense as this neighbour is near."""
CENTRAL = 0.5
"""Share of a cluster that is near enough to its centre."""
ROWS_AT_ONCE = 500
"""Rows whose distances to all of the sample are held at once."""


def typical_rows(graph: Graph, n: int, seed: int) -> np.ndarray:
    """Choose rows to label first, those of the largest clusters first; all where there are fewer.

    Row numbers, each once.  (n,).
    """
    source = graph.source
    n = min(positive_integer("n", n), source.n_rows)
    fitting = SAMPLE_BYTES // (source.n_features * source.dtype.itemsize)
    size = TYPICAL_SAMPLE if source.is_sparse else min(TYPICAL_SAMPLE, max(fitting, LEAST_SAMPLE))
    sample = SpectralSample.of(graph, size)
    prepared = to_numpy(graph.sample_rows(size))
    n_clusters = min(n, MOST_CLUSTERS)

    def central() -> np.ndarray:
        with one_blas_thread():
            clusters, squared = clustered(sample.directions(ALPHA), n_clusters, seed)
            # Squared distance of each row to one of its nearest others.
            norms = to_numpy(squared_norms(prepared))
            neighbour, spread = min(NEIGHBOUR, len(norms) - 1), np.empty(len(norms))
            for start in range(0, len(norms), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                products = prepared[part] @ prepared.T
                dense = products.toarray() if sparse.issparse(products) else products
                distances = np.partition(norms[None, :] - 2.0 * dense, neighbour, axis=1)
                spread[part] = np.maximum(distances[:, neighbour] + norms[part], 0.0)
        chosen = []
        for cluster in np.argsort(-np.bincount(clusters), kind="stable"):
            members = np.flatnonzero(clusters == cluster)
            if not len(members):
                break
            inner = members[squared[members] <= np.quantile(squared[members], CENTRAL)]
            chosen.append(int(inner[spread[inner].argmin()]))
        return np.array(chosen, dtype=np.int64)

    chosen = sample.rows[graph.engine.once(central)]
    if len(chosen) < n:  # fewer clusters than rows are wanted
        others = np.setdiff1d(sample_indices(source.n_rows, n + len(chosen), seed), chosen)
        others = np.random.default_rng(seed).permutation(others)
        chosen = np.concatenate([chosen, others])[:n]
    return chosen


# --------------------------------------------------------------------------------------------------


POOL_SAMPLE = 4000
"""Rows behind the graph; its leading eigenvectors are known well from so many."""
CANDIDATES = 2000
CANDIDATES_EACH = 4
"""Candidates: so many, or so many for each row that is wanted."""
ONE_BY_ONE = 500
"""Rows that are chosen one after the other; more are taken in the order of their scores then."""
LEAST_DOUBT = 1e-3
SIEVE_POWER = 4.0
"""A row becomes a candidate with a probability that grows with this power of its doubt."""
DOUBT_POWER, GAIN_POWER, OVERLAP_POWER = 8.0, 0.5, 2.0
"""How much doubt, gain and overlap count; chosen on MNIST and Fashion-MNIST: docs/accuracy.md."""
BELOW_ONE = 1.0 - np.finfo(np.float64).eps
NEXT_ROUND = 1_000_003
"""Step of the seed for each label that is known: every round has random numbers of its own."""


@dataclass(frozen=True)
class Pool:
    """Rows to choose from."""

    graph: Graph
    answer: Predictor  # what the model says of them
    labels: Labels | None = None  # labelled rows of the graph, which are not suggested
    known: Any = None  # (l, p): normalised features of labelled rows that are not in the graph
    # Rows that come first: some of a group that is unlike all labelled rows
    first: Sequence[int] = ()
    # (n, c): what the answer says of every row, where that is known; else a sweep finds it
    predicted: np.ndarray | None = None
    # :func:`pool_spectrum` of the graph, which does not depend on labels
    spectrum: SampleSpectrum | None = None

    def known_features(self, seed: int) -> Any:
        """Normalised features of the labelled rows, or of a random part of many; None of none."""
        if self.labels is None or len(self.labels.rows) == 0:
            return self.known
        return self.graph.features_of(part_of_labels(self.labels, MOST_LABELLED, seed).rows)


@dataclass(frozen=True)
class Suggestions:
    """Rows to label next, the most helpful first."""

    rows: np.ndarray  # (n,): row numbers
    doubts: np.ndarray  # (n,): 1 − (p₁ − p₂) of the two likeliest classes
    codes: np.ndarray  # (n,): class that each row has now
    confidence: np.ndarray  # (n,): its probability
    n_unlabelled: int  # rows that there were to choose from


def suggest_rows(pool: Pool, n: int, seed: int) -> Suggestions:
    """Choose the rows of a pool whose labels would help most."""
    n, graph, answer = positive_integer("n", n), pool.graph, pool.answer
    labelled = np.empty(0, dtype=np.int64) if pool.labels is None else pool.labels.rows
    n_rows = graph.source.n_rows
    n_unlabelled = n_rows - len(labelled)
    if n_unlabelled == 0:
        nothing = np.empty(0)
        return Suggestions(labelled[:0], nothing, nothing.astype(np.int64), nothing, 0)

    # 1. The sample: its leading eigenvectors, and how uncertain its rows are.
    sampled = graph.sample.rows(POOL_SAMPLE)
    if pool.predicted is not None and pool.spectrum is not None:
        spectrum, probabilities = pool.spectrum, pool.predicted[sampled]
    else:
        features = graph.sample_features(POOL_SAMPLE)
        rows = to_numpy(graph.sample_rows(POOL_SAMPLE)) if answer.needs_rows else None
        probabilities, _ = answer.outputs(features.astype(graph.source.dtype), rows)
        spectrum = SampleSpectrum.of(features, graph)
    wanted = max(CANDIDATES, CANDIDATES_EACH * n)
    scale = np.inf
    if 2 * wanted < n_unlabelled:
        scale = sieve_scale(uncertainty(probabilities), wanted / n_rows)

    # 2. The sweep: candidates, and those that come first whatever their uncertainty is.
    first = np.setdiff1d(np.asarray(pool.first, dtype=np.int64), labelled)[:n]
    sieve = partial(
        candidates,
        labelled=labelled,
        first=first,
        scale=scale,
        seed=seed + NEXT_ROUND * len(labelled),
    )
    if pool.predicted is None:
        ask = partial(_ask_block, features=graph.features, answer=answer, sieve=sieve)
        parts = graph.engine.map_blocks(ask, graph.blocks, label="suggestions")
    else:
        parts = [sieve(0, pool.predicted)]
    rows, doubts, noise, codes, confidence = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )

    # 3. The choice, one after the other, without rows.
    with one_blas_thread():  # so that the bits do not depend on the number of threads
        features = spectrum.rotated(graph.features_of(rows))
        # A candidate stands for 1/π rows like it, π being the chance that it had.
        chances = np.minimum(1.0, scale * doubts**SIEVE_POWER)
        weighted_gram = (features * (doubts / chances)[:, None]).T @ features
        # The largest of log w + Gumbel noise is a draw by w.
        uniform = np.clip(noise / chances, np.finfo(np.float64).tiny, BELOW_ONE)
        logs = DOUBT_POWER * np.log(doubts) - np.log(chances) - np.log(-np.log(uniform))
        known = pool.known_features(seed)
        known = np.empty((0, len(spectrum.values))) if known is None else spectrum.rotated(known)
        posterior = Posterior.from_labels(spectrum.values, len(sampled), known)
        powers = (GAIN_POWER, OVERLAP_POWER)
        n_chosen = min(n, ONE_BY_ONE)
        chosen = choose_batch(posterior, features, logs, weighted_gram, n_chosen, powers)
    if n > len(chosen):
        rest = np.setdiff1d(np.arange(len(rows)), chosen)
        rest = rest[np.argsort(-logs[rest], kind="stable")]
        chosen = np.concatenate([chosen, rest])
    indices = np.searchsorted(rows, first)  # blocks come in order, and so do their rows
    chosen = np.concatenate([indices, chosen[~np.isin(chosen, indices)]])[:n]
    return Suggestions(
        rows[chosen], doubts[chosen], codes[chosen], confidence[chosen], n_unlabelled
    )


def pool_spectrum(graph: Graph) -> SampleSpectrum:
    """Leading eigenvectors of a graph, as the sample of a pool shows them."""
    return SampleSpectrum.of(graph.sample_features(POOL_SAMPLE), graph)


def uncertainty(probabilities: Any) -> np.ndarray:
    """u = 1 − (p₁ − p₂) of the two likeliest classes, at least LEAST_DOUBT.  (b, c) → (b,)."""
    ordered = np.sort(to_numpy(probabilities), axis=1)
    margin = ordered[:, -1].astype(np.float64) - ordered[:, -2]
    return np.maximum(1.0 - margin, LEAST_DOUBT)


def sieve_scale(doubts: np.ndarray, share: float) -> float:
    """The t for which min(1, t·u^a) is ``share`` on average over a sample's rows."""
    powers = np.sort(doubts**SIEVE_POWER)[::-1]
    # With the first i rows cut off at 1, t = (share·m − i) / (the sum of the others).
    rest = powers.sum() - np.concatenate([[0.0], np.cumsum(powers)[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):  # rounding may leave nothing of it
        trials = (share * len(powers) - np.arange(len(powers))) / rest
    fits = (trials > 0) & (trials * powers <= 1.0)
    return float(trials[fits.argmax()]) if fits.any() else float(1.0 / powers[-1])


def _ask_block(
    block: Block,
    features: Features,
    answer: Predictor,
    sieve: Callable[..., tuple[np.ndarray, ...]],
) -> tuple[np.ndarray, ...]:
    """The candidates of a block."""
    rows = block.rows() if answer.needs_rows else None
    outputs, _ = answer.outputs(features.of_block(block)[0], rows)
    return sieve(block.start, to_numpy(outputs))


def candidates(
    start: int,
    probabilities: np.ndarray,
    *,
    labelled: np.ndarray,
    first: np.ndarray,
    scale: float,
    seed: int,
) -> tuple[np.ndarray, ...]:
    """Candidates among the rows from ``start`` on: row numbers, doubts, noise, classes, confidence.

    ``labelled`` rows are none, and the ``first`` all are; both increase.
    """
    stop = start + len(probabilities)
    doubts = uncertainty(probabilities)
    noise = row_noise(seed, start, stop, 1)[:, 0]
    chosen = noise < scale * doubts**SIEVE_POWER
    low, high = np.searchsorted(first, [start, stop])
    chosen[first[low:high] - start] = True
    low, high = np.searchsorted(labelled, [start, stop])
    chosen[labelled[low:high] - start] = False
    indices = np.flatnonzero(chosen)
    codes = largest_column(probabilities[indices])
    confidence = probabilities[indices, codes].astype(np.float64)
    return start + indices, doubts[indices], noise[indices], codes, confidence
