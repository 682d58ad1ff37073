"""The graph as a random sample of its rows shows it: leading eigenvectors, clusters and a map.

With the sample's own features Φ̄ (m × p) and their mixing T, H = TᵀΦ̄ᵀΦ̄T has the graph's leading
eigenvalues λ. In the basis V of its eigenvectors a row is ψ = VᵀTᵀφ̄, and Ψ = Φ̄TV has
ΨᵀΨ = diag(λ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.posterior import ALPHA
from biglp._algebra.sums import apply_mixing
from biglp._compiled import column_sums
from biglp._core.arrays import Array, Rows, like, to_dense, to_numpy
from biglp._core.threads import one_blas_thread
from biglp._graph.anchors import AnchorFactor
from biglp._graph.graph import Graph
from biglp._graph.kernels import nearest_landmarks, searchable
from biglp._labels.labels import OwnLabels
from biglp._learn.base import Predictor
from biglp._transforms.project import leading_directions

ROWS_PER_GROUP = 4
"""Rows of a sample for each group of landmarks."""
RANK = 100
"""Leading eigenvectors that are kept."""
OVERSAMPLES, POWER_STEPS = 20, 8
"""Of the randomised decomposition of larger graphs. Where eigenvalues are close to each other the
last of them come out some percent too small, which changes no choice."""
DENSE_RANK = 400
"""Rank up to which all eigenvectors are found faster than the leading ones alone."""


@dataclass(frozen=True)
class SampleSpectrum:
    """Leading eigenvectors of a graph."""

    values: np.ndarray  # (q,): eigenvalues, within [0, 1], increasing
    basis: np.ndarray  # (p, q): from normalised features to the basis of the eigenvectors

    @classmethod
    def of(cls, features: Any, graph: Graph, rank: int = RANK) -> SampleSpectrum:
        """Take the features of a sample of a graph's rows apart.  (m, p)."""
        factor, groups = graph.factor, None
        most = max(features.shape[0] // ROWS_PER_GROUP, 1)
        with one_blas_thread():  # so that the bits do not depend on the number of threads
            # A graph that is fine for all rows falls to pieces on a sample of them: its landmarks
            # have a row or two each. Landmarks that are close to each other count as one then.
            if isinstance(factor, AnchorFactor) and factor.rank > most:
                landmarks = factor.landmarks
                centres = landmarks[np.unique(np.linspace(0, len(landmarks) - 1, most).astype(int))]
                rows = searchable(landmarks)
                # Once to move the centres, once to be in the nearest one's group.
                for _ in range(2):
                    nearest = to_numpy(nearest_landmarks(rows, centres, 1)[0])[:, 0]
                    ties = (np.ones(len(nearest)), (np.arange(len(nearest)), nearest))
                    groups = sparse.csr_matrix(ties, shape=(len(nearest), len(centres)))
                    sizes = np.maximum(column_sums(groups), 1.0)
                    centres = (to_dense(groups.T @ rows) / sizes[:, None]).astype(landmarks.dtype)
                features = features @ groups
            # Features of the sample as a graph of its own, and the mixing that makes them so.
            if factor.unit_degrees:
                totals = column_sums(features)
                mixing = np.where(totals > 0, 1.0, 0.0) / np.sqrt(np.where(totals > 0, totals, 1.0))
            else:
                # Degrees are those of all rows: the sample's share of the sums is made whole.
                mixing = np.ones(features.shape[1]) if factor.mixing is None else factor.mixing
                mixing = mixing * np.sqrt(graph.features.normalisation.n_rows / features.shape[0])
            if sparse.issparse(features):
                mixed = features @ (sparse.diags(mixing) if mixing.ndim == 1 else mixing)
                mixed = mixed.tocsr() if sparse.issparse(mixed) else mixed
            else:
                mixed = apply_mixing(features, mixing)
            values, vectors = leading_eigenpairs(mixed, rank)
            basis = mixing[:, None] * vectors if mixing.ndim == 1 else mixing @ vectors
            basis = basis if groups is None else np.asarray(groups @ basis)
        # Where the sample's graph has a radius above 1 (Nyström), S is divided by it.
        radius = max(1.0, float(values.max(initial=0.0)))
        return cls(values / radius, basis / np.sqrt(radius))

    def rotated(self, features: Any) -> np.ndarray:
        """Features in the basis of the eigenvectors.  (b, p) → (b, q)."""
        return np.asarray(features @ self.basis, dtype=np.float64)


@dataclass(frozen=True)
class SpectralSample:
    """Some rows of a graph, in the basis of its eigenvectors."""

    rows: np.ndarray  # (m,): row numbers, increasing
    spectrum: SampleSpectrum
    rotated: np.ndarray  # (m, q): their features ψ

    @classmethod
    def of(cls, graph: Graph, size: int, features: Any = None, rank: int = RANK) -> SpectralSample:
        """Look at the first rows of a graph's sample; ``features`` where they are known."""
        features = graph.sample_features(size) if features is None else features
        spectrum = SampleSpectrum.of(features, graph, rank)
        with one_blas_thread():
            return cls(graph.sample.rows(size), spectrum, spectrum.rotated(features))

    def directions(self, alpha: float) -> np.ndarray:
        """Unit vectors whose products are the correlations of rows under α.  (m, q).

        The covariance of rows under label spreading at α is Ψ·(I − α·diag(λ))⁻¹·Ψᵀ. Without unit
        length, rows in sparse places have by far the longest vectors.
        """
        return unit_vectors(self.rotated / np.sqrt(1.0 - alpha * self.spectrum.values))


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Rows of a matrix made 1 long; those of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


def leading_eigenpairs(features: Any, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of the Gram matrix of features and their vectors.  (q,), (p, q)."""
    n_rows, width = features.shape
    if min(n_rows, width) <= DENSE_RANK and width <= n_rows:
        gram = features.T @ features
        values, vectors = np.linalg.eigh(gram.toarray() if sparse.issparse(gram) else gram)
        values, vectors = values[-rank:], vectors[:, -rank:]
    else:
        # A number of steps that is fixed: a graph of many parts has the eigenvalue 1 many times,
        # and methods that go on until they converge may not end on it.
        directions, sizes = leading_directions(features, 0, rank, OVERSAMPLES, POWER_STEPS)
        values, vectors = sizes[::-1] ** 2, directions[:, ::-1]
    useful = values > 1e-9 * max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny)
    return values[useful], vectors[:, useful]


# --------------------------------------------------------------------------------------------------
# Clusters of such vectors.


ITERATIONS, RESTARTS, RESTARTED = 30, 5, 200
"""Iterations of k-means, and starts: so many, or fewer where these would be more centres in all."""


def clustered(
    vectors: np.ndarray, n: int, seed: int, starts: int = RESTARTS
) -> tuple[np.ndarray, np.ndarray]:
    """k-means of a few thousand vectors: the best of several starts.

    ``vectors``: (m, q); ``n``: clusters; fewer are found where there are fewer distinct vectors;
    ``starts``: starts, at most; ``clusters``: (m,); ``squared``: (m,): squared distance of each
    vector to its centre.
    """
    norms, trials = np.einsum("ij,ij->i", vectors, vectors), []
    for start in range(max(1, min(starts, RESTARTED // n))):
        # k-means++, each centre the best of a few draws; ``kmeans_start`` of the landmarks
        # draws for thousands of landmarks, where one group more or less does not count; here a
        # group that gets no centre is a class without a label.
        rng, chosen = np.random.default_rng((seed, start)), list[int]()
        squared = np.ones(len(vectors))
        while len(chosen) < n and squared.sum() > 0:
            drawn = rng.choice(len(vectors), 2 + int(np.log(n)), p=squared / squared.sum())
            distances = norms[drawn][:, None] + norms - 2.0 * (vectors[drawn] @ vectors.T)
            distances[distances < 1e-9] = 0.0  # rounding: a copy of a centre is no new one
            nearer = np.minimum(squared, distances) if chosen else distances
            best = int(nearer.sum(axis=1).argmin())
            chosen.append(int(drawn[best]))
            squared = nearer[best]
            squared[chosen] = 0.0
        # Lloyd's iteration until no vector changes its cluster; an empty cluster stays so.
        centres, clusters = vectors[chosen], np.full(len(vectors), -1)
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
        # Vectors of a group without ties to others differ by rounding only, which must not rank
        # them.
        trials.append((clusters, np.maximum(least + norms, 0.0).round(9)))
    return min(trials, key=lambda trial: float(trial[1].sum()))


# --------------------------------------------------------------------------------------------------
# A place on a map for every row: two leading directions of the graph.
#
# A row becomes the unit vector ψ of its coordinates in the leading eigenvectors, each weighted as
# label spreading weights it, so that rows which labels spread between lie close together, and rows
# in sparse places lie no farther out than others. The map shows the two directions in which these
# vectors differ most:
#
#     (x, y) = (ψ − mean ψ) · V,    V the two leading principal directions of the sample's ψ.
#
# The constant eigenvector, which is the same for all rows, falls out with the mean. Places are
# found in the sweep that labels the rows.


MAP_SAMPLE = 4000
"""Rows behind the directions."""
ROWS_AT_ONCE = 4096
"""Rows whose coordinates in all eigenvectors are held at once."""
COPIES = 4
"""Arrays of such coordinates that are held at once."""


def map_bytes(rank: int, n_threads: int, size: int = MAP_SAMPLE) -> int:
    """Memory that a map takes: features of the sample, and coordinates of rows in work."""
    number = np.dtype(np.float64).itemsize
    sample = size * (2 * min(rank, size // ROWS_PER_GROUP) + COPIES * RANK)
    return number * (sample + n_threads * ROWS_AT_ONCE * COPIES * RANK)


@dataclass(frozen=True)
class RowMap:
    """From normalised features to places."""

    basis: np.ndarray  # (p, q): from features to weighted coordinates in the eigenvectors
    centre: np.ndarray  # (q,): mean of the sample's unit vectors
    axes: np.ndarray  # (q, 2): directions of the map

    @classmethod
    def of(cls, graph: Graph, size: int = MAP_SAMPLE) -> RowMap:
        """Find the directions, from a sample of so many rows."""
        sample = SpectralSample.of(graph, size)
        weights = np.sqrt(1.0 - ALPHA * sample.spectrum.values)

        def fit() -> RowMap:
            with one_blas_thread():
                units = sample.directions(ALPHA)
                centre = units.mean(axis=0)
                units = units - centre
                _, vectors = np.linalg.eigh(units.T @ units)
            axes = np.zeros((len(centre), 2))
            axes[:, : min(2, len(centre))] = vectors[:, ::-1][:, :2]
            if len(axes):  # a graph without any tie has no eigenvectors
                # The sign of an eigenvector is anything: the largest entry is positive here.
                axes *= np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
            return cls(sample.spectrum.basis / weights, centre, axes)

        return graph.engine.once(fit)

    def units(self, features: Array) -> np.ndarray:
        """Rows as unit vectors in the directions behind the map.  (b, p) → (b, q)."""
        features = to_numpy(features)
        return unit_vectors(np.asarray(features @ self.basis, dtype=np.float64))

    def places(self, features: Array) -> np.ndarray:
        """Places of rows.  (b, p) → (b, 2)."""
        positions = np.empty((features.shape[0], 2))
        basis = like(features, self.basis)
        for start in range(0, len(positions), ROWS_AT_ONCE):
            part = features[start : start + ROWS_AT_ONCE] @ basis
            vectors = unit_vectors(np.asarray(to_numpy(part), dtype=np.float64))
            positions[start : start + ROWS_AT_ONCE] = (vectors - self.centre) @ self.axes
        return positions


@dataclass(frozen=True)
class MappedPredictor:
    """An answer with the places of the rows in two more columns."""

    inner: Predictor
    row_map: RowMap

    @property
    def needs_rows(self) -> bool:
        """Whether the answer looks at prepared rows beside their features."""
        return self.inner.needs_rows

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """What is said of each row and where it is, and how many rows no label reaches."""
        places = self.row_map.places(features)
        outputs, unreached = self.inner.outputs(features, rows, own)
        outputs = to_numpy(outputs)
        return np.column_stack([outputs, places.astype(outputs.dtype)]), unreached

    def finish(self, outputs: np.ndarray) -> np.ndarray:
        """What is written of these outputs."""
        return np.column_stack([self.inner.finish(outputs[:, :-2]), outputs[:, -2:]])

    def count(self, answers: np.ndarray) -> dict[int, int]:
        """Rows of each class code that occurs."""
        return self.inner.count(answers[:, :-2])
