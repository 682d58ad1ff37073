"""A place on a map for every row: two leading directions of the graph.

A random sample shows the graph's leading eigenvectors. A row becomes the unit vector ψ of its
coordinates in them, each weighted as label spreading weights it (:class:`.sample.SpectralSample`),
so that rows which labels spread between lie close together, and rows in sparse places lie no
farther out than others. The map shows the two directions in which these vectors differ most:

    (x, y) = (ψ − mean ψ) · V,    V the two leading principal directions of the sample's ψ.

The constant eigenvector, which is the same for all rows, falls out with the mean. Places are found
in the sweep that labels the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biglp._algebra.posterior import ALPHA
from biglp._core.arrays import Array, Rows, like, to_numpy
from biglp._core.threads import one_blas_thread
from biglp._fit.sample import RANK, ROWS_PER_GROUP, SpectralSample
from biglp._graph.graph import Graph
from biglp._labels.labels import OwnLabels
from biglp._learn.base import Predictor

SAMPLE = 4000
"""Rows behind the directions."""
ROWS_AT_ONCE = 4096
"""Rows whose coordinates in all eigenvectors are held at once."""
COPIES = 4
"""Arrays of such coordinates that are held at once."""


def map_bytes(rank: int, n_threads: int, size: int = SAMPLE) -> int:
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
    def of(cls, graph: Graph, size: int = SAMPLE) -> RowMap:
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


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Rows of a matrix made 1 long; those of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


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
