"""What to label next: one sweep that finds candidates, then a batch chosen without rows.

1. A random sample of rows shows the graph (its leading eigenvectors) and the usual doubt.
2. The sweep: every unlabelled row gets its class probabilities and from them its doubt u, and
   becomes a candidate with a probability that grows with u. The dice of a row depend on the seed
   and its number alone, so that no cut into blocks and no engine changes the candidates. Blocks
   return a few thousand row numbers in all, whatever n is.
3. The candidates' features are fetched, and :mod:`biglp._propagate.posterior` chooses among them.

The choice is a draw and not an arg-max: rows are drawn in proportion to u^a, times what else
counts, by adding Gumbel noise, made of the same dice, to the logarithm. The very largest doubts
belong to outliers and to places where classes overlap; a draw keeps to what is typical of the rows
in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import column_sums, largest_column, to_numpy
from biglp._core.blocks import Block
from biglp._engines import Engine
from biglp._engines.local import one_blas_thread
from biglp._fit.settings import positive_integer
from biglp._labels.labels import Labels
from biglp._lowrank.base import Factor
from biglp._lowrank.graph import labelled_rows, normalised_features
from biglp._lowrank.sampling import row_noise, sample_indices
from biglp._propagate.normalise import Normalisation
from biglp._propagate.posterior import Posterior, choose_batch
from biglp._propagate.sums import apply_mixing
from biglp._sources import PreparedSource

SAMPLE = 4000
"""Rows behind the graph; its leading eigenvectors are known well from so many."""
RANK = 100
"""Leading eigenvectors that are kept."""
CANDIDATES = 2000
CANDIDATES_EACH = 4
"""Candidates: so many, or so many for each row that is wanted."""
MOST_LABELLED = 5000
"""Labelled rows that the posterior knows of."""
ONE_BY_ONE = 500
"""Rows that are chosen one after the other; more are taken in the order of their scores then."""
LEAST_DOUBT = 1e-3
DENSE_RANK = 400
"""Rank up to which all eigenvectors are found faster than the leading ones alone."""
SIEVE_POWER = 4.0
"""A row becomes a candidate with a probability that grows with this power of its doubt."""
DOUBT_POWER, GAIN_POWER, OVERLAP_POWER = 8.0, 0.5, 2.0
"""How much doubt, gain and overlap count; chosen on MNIST and Fashion-MNIST: docs/accuracy.md."""
NEXT_ROUND = 1_000_003
"""Step of the seed for each label that is known: every round has dice of its own."""


@dataclass(frozen=True)
class Pool:
    """Rows to choose from.

    Attributes
    ----------
    source : PreparedSource
    blocks : sequence of Block
        The rows of the source.
    factor, normalisation
        Rows to normalised features.
    labels : Labels or None
        Labelled rows of the source, which are not suggested.
    known : ndarray or CSR matrix of shape (l, p), optional
        Normalised features of labelled rows that are not in the source.
    """

    source: PreparedSource
    blocks: Sequence[Block]
    factor: Factor
    normalisation: Normalisation
    labels: Labels | None = None
    known: Any = None

    def features(self, engine: Engine, rows: np.ndarray) -> Any:
        """Normalised features of chosen rows, before mixing.  (b, p), dense or CSR."""
        if self.factor.fresh_features or self.labels is None:
            found, _ = self.normalisation.apply(self.factor.features(self.source.take(rows)))
            return to_numpy(found)
        # GLNP: the features of a training row are with its block and nowhere else.
        marked = Labels(np.arange(1), rows, np.zeros(len(rows), dtype=np.int64), self.source.n_rows)
        unmixed = np.ones(1)
        return labelled_rows(
            engine, self.blocks, self.factor, self.normalisation, marked, unmixed
        ).features

    def known_features(self, engine: Engine, seed: int) -> Any:
        """Normalised features of the labelled rows, or of a random part of many; None of none."""
        if self.labels is None or len(self.labels.rows) == 0:
            return self.known
        part = sample_indices(len(self.labels.rows), MOST_LABELLED, seed)
        return self.features(engine, self.labels.rows[part])


@dataclass(frozen=True)
class Suggestions:
    """Rows to label next, the most helpful first.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Row numbers.
    doubts : ndarray of shape (n,)
        1 − (p₁ − p₂) of the two likeliest classes.
    codes : ndarray of shape (n,)
        Class that each row has now.
    confidence : ndarray of shape (n,)
        Its probability.
    n_unlabelled : int
        Rows that there were to choose from.
    """

    rows: np.ndarray
    doubts: np.ndarray
    codes: np.ndarray
    confidence: np.ndarray
    n_unlabelled: int


def suggest_rows(engine: Engine, pool: Pool, decision: Any, n: int, seed: int) -> Suggestions:
    """Choose the rows of a pool whose labels would help most."""
    n = positive_integer("n", n)
    labelled = np.empty(0, dtype=np.int64) if pool.labels is None else pool.labels.rows
    n_unlabelled = pool.source.n_rows - len(labelled)
    if n_unlabelled == 0:
        nothing = np.empty(0)
        return Suggestions(labelled[:0], nothing, nothing.astype(np.int64), nothing, 0)
    graph = SampleGraph.of(engine, pool, decision, seed)
    wanted = max(CANDIDATES, CANDIDATES_EACH * n)
    scale = np.inf if 2 * wanted >= n_unlabelled else graph.scale(wanted / pool.source.n_rows)
    function = partial(
        _candidates,
        factor=pool.factor,
        normalisation=pool.normalisation,
        decision=decision,
        labels=pool.labels,
        scale=scale,
        seed=seed + NEXT_ROUND * len(labelled),
    )
    found = engine.map_blocks(function, pool.blocks, label="suggestions")
    rows, doubts, dice, codes, confidence = (
        np.concatenate(part) for part in zip(*found, strict=True)
    )
    with one_blas_thread():  # so that the bits do not depend on the number of threads
        features = graph.rotated(pool.features(engine, rows))
        # A candidate stands for 1/π rows like it, π being the chance that it had.
        chances = np.minimum(1.0, scale * doubts**SIEVE_POWER)
        weighted_gram = (features * (doubts / chances)[:, None]).T @ features
        logs = DOUBT_POWER * np.log(doubts) - np.log(chances) + gumbel(dice / chances)
        chosen = choose_batch(
            graph.posterior(engine, pool, seed),
            features,
            logs,
            weighted_gram,
            min(n, ONE_BY_ONE),
            gain_power=GAIN_POWER,
            overlap_power=OVERLAP_POWER,
        )
    if n > len(chosen):
        rest = np.setdiff1d(np.arange(len(rows)), chosen)
        rest = rest[np.argsort(-logs[rest], kind="stable")]
        chosen = np.concatenate([chosen, rest])[:n]
    return Suggestions(
        rows[chosen], doubts[chosen], codes[chosen], confidence[chosen], n_unlabelled
    )


@dataclass(frozen=True)
class SampleGraph:
    """The graph as a random sample of rows shows it.

    Attributes
    ----------
    values : ndarray of shape (q,)
        Leading eigenvalues, within [0, 1].
    basis : ndarray of shape (p, q)
        From normalised features to the basis of the eigenvectors.
    n_rows : int
        Rows of the sample.
    doubts : ndarray of shape (m,)
        Doubt about each row of the sample.
    """

    values: np.ndarray
    basis: np.ndarray
    n_rows: int
    doubts: np.ndarray

    @classmethod
    def of(cls, engine: Engine, pool: Pool, decision: Any, seed: int) -> SampleGraph:
        """Look at a sample of the pool."""
        chosen = sample_indices(pool.source.n_rows, SAMPLE, seed)
        features = pool.features(engine, chosen)
        rows = pool.source.take(chosen) if decision.needs_rows else None
        probabilities, _ = decision.probabilities(features, None, _on_host(rows))
        with one_blas_thread():
            mixed, mixing = _mixed(features, pool)
            values, vectors = leading_eigenpairs(mixed, RANK)
            basis = mixing[:, None] * vectors if mixing.ndim == 1 else mixing @ vectors
        # Where the sample's graph has a radius above 1 (Nyström), S is divided by it.
        radius = max(1.0, float(values.max(initial=0.0)))
        return cls(values / radius, basis / np.sqrt(radius), len(chosen), doubt(probabilities))

    def rotated(self, features: Any) -> np.ndarray:
        """Features in the basis of the eigenvectors.  (b, p) → (b, q)."""
        return np.asarray(features @ self.basis, dtype=np.float64)

    def scale(self, share: float) -> float:
        """Return the t for which min(1, t·u^a) is ``share`` on average."""
        powers = np.sort(self.doubts**SIEVE_POWER)[::-1]
        # With the first i rows cut off at 1, t = (share·m − i) / (the sum of the others).
        rest = powers.sum() - np.concatenate([[0.0], np.cumsum(powers)[:-1]])
        trials = (share * len(powers) - np.arange(len(powers))) / rest
        fits = (trials > 0) & (trials * powers <= 1.0)
        return float(trials[fits.argmax()]) if fits.any() else float(1.0 / powers[-1])

    def posterior(self, engine: Engine, pool: Pool, seed: int) -> Posterior:
        """What the labels leave open."""
        known = pool.known_features(engine, seed)
        nothing = np.empty((0, len(self.values)))
        labelled = nothing if known is None else self.rotated(known)
        return Posterior.of(self.values, self.n_rows, labelled)


def doubt(probabilities: Any) -> np.ndarray:
    """Return u = 1 − (p₁ − p₂) of the two likeliest classes, at least LEAST_DOUBT.  (b,)."""
    ordered = np.sort(to_numpy(probabilities), axis=1)
    margin = ordered[:, -1].astype(np.float64) - ordered[:, -2]
    return np.maximum(1.0 - margin, LEAST_DOUBT)


def gumbel(dice: np.ndarray) -> np.ndarray:
    """Gumbel noise from numbers in [0, 1): the largest of log w + noise is a draw by w."""
    tiny = np.finfo(np.float64).tiny
    return -np.log(-np.log(np.clip(dice, tiny, 1.0 - np.finfo(np.float64).eps)))


def leading_eigenpairs(features: Any, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of the Gram matrix of features and their vectors.  (q,), (p, q)."""
    width = features.shape[1]
    gram = features.T @ features
    if width <= DENSE_RANK:
        dense = gram.toarray() if sparse.issparse(gram) else gram
        values, vectors = np.linalg.eigh(dense)
        values, vectors = values[-rank:], vectors[:, -rank:]
    else:
        from scipy.sparse.linalg import eigsh  # slow to load, and small graphs do without

        values, vectors = eigsh(gram, k=rank, v0=np.ones(width))
    useful = values > 1e-9 * max(float(values.max()), np.finfo(np.float64).tiny)
    return values[useful], vectors[:, useful]


def _mixed(features: Any, pool: Pool) -> tuple[Any, np.ndarray]:
    """Features of the sample as a graph of its own, and the mixing that makes them so."""
    features = features.astype(np.float64)
    if pool.factor.unit_degrees:
        totals = column_sums(features)
        mixing = np.where(totals > 0, 1.0, 0.0) / np.sqrt(np.where(totals > 0, totals, 1.0))
    else:
        # Degrees are those of all rows: the sample's share of the sums is made whole.
        width = features.shape[1]
        mixing = np.eye(width) if pool.factor.mixing is None else pool.factor.mixing
        mixing = mixing * np.sqrt(pool.normalisation.n_rows / features.shape[0])
    if sparse.issparse(features):
        mixed = features @ (sparse.diags(mixing) if mixing.ndim == 1 else mixing)
        return (mixed.tocsr() if sparse.issparse(mixed) else mixed), mixing
    return apply_mixing(features, mixing), mixing


def _candidates(
    block: Block,
    factor: Factor,
    normalisation: Normalisation,
    decision: Any,
    labels: Labels | None,
    scale: float,
    seed: int,
) -> tuple[np.ndarray, ...]:
    """Candidates of a block: row numbers, doubts, dice, classes and their probabilities."""
    rows = block.rows() if decision.needs_rows else None
    features, _ = normalised_features(block, factor, normalisation)
    probabilities, _ = decision.probabilities(features, None, rows)
    probabilities = to_numpy(probabilities)
    doubts = doubt(probabilities)
    dice = row_noise(seed, block.start, block.stop, 1)[:, 0]
    candidate = dice < scale * doubts**SIEVE_POWER
    if labels is not None:
        candidate[labels.within(block.start, block.stop)[0]] = False
    places = np.flatnonzero(candidate)
    codes = largest_column(probabilities[places])
    confidence = probabilities[places, codes].astype(np.float64)
    return block.start + places, doubts[places], dice[places], codes, confidence


def _on_host(rows: Any) -> Any:
    return None if rows is None else to_numpy(rows)
