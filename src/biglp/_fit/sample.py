"""The graph as a random sample of its rows shows it: leading eigenvectors, and rows among them.

With the sample's own features Φ̄ (m × p) and their mixing T, H = TᵀΦ̄ᵀΦ̄T has the graph's leading
eigenvalues λ. In the basis V of its eigenvectors a row is ψ = VᵀTᵀφ̄, and Ψ = Φ̄TV has
ΨᵀΨ = diag(λ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.sums import apply_mixing
from biglp._compiled import column_sums
from biglp._core.arrays import to_dense, to_numpy
from biglp._core.threads import one_blas_thread
from biglp._graph.features import FeatureMap
from biglp._graph.graph import Graph
from biglp._graph.kernels import nearest_landmarks, searchable
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
        with one_blas_thread():  # so that the bits do not depend on the number of threads
            groups = _groups(graph.factor, max(features.shape[0] // ROWS_PER_GROUP, 1))
            mixed, mixing = _mixed(features if groups is None else features @ groups, graph)
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
    features: Any  # (m, p): their features as they come

    @classmethod
    def of(cls, graph: Graph, size: int) -> SpectralSample:
        """Look at the first rows of a graph's sample."""
        return cls.among(graph, graph.sample.rows(size), graph.sample_features(size))

    @classmethod
    def among(
        cls, graph: Graph, rows: np.ndarray, features: Any, rank: int = RANK
    ) -> SpectralSample:
        """Look at some rows whose features are known."""
        spectrum = SampleSpectrum.of(features, graph, rank)
        with one_blas_thread():
            return cls(rows, spectrum, spectrum.rotated(features), features)

    def directions(self, alpha: float) -> np.ndarray:
        """Unit vectors whose products are the correlations of rows under α.  (m, q).

        The covariance of rows under label spreading at α is Ψ·(I − α·diag(λ))⁻¹·Ψᵀ. Without unit
        length, rows in sparse places have by far the longest vectors.
        """
        vectors = self.rotated / np.sqrt(1.0 - alpha * self.spectrum.values)
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


def _groups(factor: FeatureMap, most: int) -> sparse.csr_matrix | None:
    """Which group each landmark is in, as columns of 0 and 1; None where all may stay apart.

    A graph that is fine for all rows falls to pieces on a sample of them: its landmarks have a row
    or two each. Landmarks that are close to each other count as one then.
    """
    landmarks = getattr(factor, "landmarks", None)
    if landmarks is None or not factor.unit_degrees or factor.rank <= most:
        return None
    step = np.linspace(0, len(landmarks) - 1, most).astype(int)
    centres = landmarks[np.unique(step)]
    rows = searchable(landmarks)
    for _ in range(2):  # once to move the centres, once to be in the nearest one's group
        nearest = to_numpy(nearest_landmarks(rows, centres, 1)[0])[:, 0]
        places = (np.ones(len(nearest), dtype=np.float64), (np.arange(len(nearest)), nearest))
        groups = sparse.csr_matrix(places, shape=(len(nearest), len(centres)))
        sizes = np.maximum(column_sums(groups), 1.0)
        centres = (to_dense(groups.T @ rows) / sizes[:, None]).astype(landmarks.dtype)
    return groups


def _mixed(features: Any, graph: Graph) -> tuple[Any, np.ndarray]:
    """Features of the sample as a graph of its own, and the mixing that makes them so."""
    if graph.factor.unit_degrees:
        totals = column_sums(features)
        mixing = np.where(totals > 0, 1.0, 0.0) / np.sqrt(np.where(totals > 0, totals, 1.0))
    else:
        # Degrees are those of all rows: the sample's share of the sums is made whole.
        width = features.shape[1]
        mixing = np.ones(width) if graph.factor.mixing is None else graph.factor.mixing
        mixing = mixing * np.sqrt(graph.features.normalisation.n_rows / features.shape[0])
    if sparse.issparse(features):
        mixed = features @ (sparse.diags(mixing) if mixing.ndim == 1 else mixing)
        return (mixed.tocsr() if sparse.issparse(mixed) else mixed), mixing
    return apply_mixing(features, mixing), mixing
