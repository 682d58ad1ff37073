"""The user's own graph: an n × n matrix of similarities, sparse or dense, in place of rows.

Notation: A is the matrix as it is given. Only undirected graphs have the spectrum that label
spreading needs, and a tie of a row to itself says nothing about its neighbours, so that

    W = (A + Aᵀ)/2 without its diagonal,   D = diag(W·1),   S = D^(−1/2)·W·D^(−1/2).

Half a tie is left where only one of two rows names the other, as in a k-NN graph.

S is no product of n × r features: the features of a row are its row of S, and what stands for H, B
and t is S, Y and S·1 (:mod:`biglp._algebra.own_graph`), without a sweep. The graph stays in
memory as a whole, on every process.

A new row i has ties a_ij to the training rows, the degree d_i = Σ_j a_ij, and the features
a_ij / √(d_i·d_j): it is scored by its neighbours, and changes nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from biglp._algebra.own_graph import OwnGraphSystem, columns_at_once
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import System
from biglp._core.arrays import Array, Rows, check_finite
from biglp._core.blocks import Block
from biglp._core.errors import BadRowsError, ParameterError
from biglp._core.settings import GraphSettings
from biglp._core.size import TORCH, Cost, Size
from biglp._files.runfolder import Checkpoint
from biglp._graph.features import FeatureMap, Features, Normalisation
from biglp._graph.graph import Graph, TrainingRows
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets
from biglp._rows.source import Source

ENTRY_BYTES = 12
"""A number and its column, in CSR."""
COPIES = 5
"""What reading and making it symmetric takes, counted in entries of the symmetric graph."""
ITERATES = 9
"""Arrays of n × c numbers that conjugate gradients and their layers hold."""


class Ties(FeatureMap):
    """Normalised ties of any rows to the training rows."""

    kind = "precomputed"
    overwritable = False
    rank = n_ties = 0

    def __init__(self, degrees: np.ndarray) -> None:
        self.degrees = degrees  # of the training rows, (n,)
        # A row without any tie has nothing to divide by.
        self.roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))

    def features(self, rows: Rows) -> Array:
        """Those of new rows, in float64.  (b, n) → (b, n)."""
        ties = _similarities(rows)
        degrees = np.asarray(ties.sum(axis=1)).ravel()
        check_finite(degrees)
        self.normalise(ties, np.sqrt(np.where(degrees > 0, degrees, 1.0)))
        return ties

    def normalise(self, ties: Any, roots: np.ndarray) -> None:
        """Divide entries by the root of both degrees, in place.  (b, n), (b,)."""
        ties.data /= np.repeat(roots, np.diff(ties.indptr))
        ties.data /= self.roots[ties.indices]

    @classmethod
    def sweep_cost(cls, size: Size, device: str) -> Cost:
        # A row of the graph, symmetric, and its answers.
        return Cost(row=int(8 * (3 * size.values + 2 * size.n_classes)) + 64)

    def state(self) -> dict[str, np.ndarray]:
        return {"degrees": self.degrees}

    def describe(self) -> dict[str, Any]:
        isolated = int((self.degrees == 0).sum())
        return {"factor": self.kind, "ties": self.n_ties, "isolated_rows": isolated}


@dataclass(frozen=True)
class OwnFeatures(Features):
    """Rows of S for the blocks of the training rows, ties for new rows."""

    factor: Ties
    similarities: Any  # S, CSR array of shape (n, n)

    def of_block(self, block: Block, features: Array | None = None) -> tuple[Array, int]:
        return self.similarities[block.start : block.stop], 0

    def for_new_rows(self) -> Features:
        # Without S: new rows need the degrees alone.
        return Features(Ties(self.factor.degrees), self.normalisation)


@dataclass(frozen=True)
class OwnGraph(Graph):
    """The graph S that the user gives."""

    features: OwnFeatures
    params: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}
    scales_features: ClassVar[bool] = False
    takes_views: ClassVar[bool] = False
    n_landmarks_counts: ClassVar[bool] = False
    learnt: ClassVar[bool] = False
    unit_degrees: ClassVar[bool] = False
    pairwise: ClassVar[bool] = True

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> OwnGraph:
        """Check the settings, read the rows as a whole, and make the graph symmetric."""
        source = rows.source.inner
        if source.n_rows != source.n_features:
            raise BadRowsError(
                f"factor='precomputed' takes a square matrix of similarities between all pairs of "
                f"rows; {source.name} has {source.n_rows:,} rows and {source.n_features:,} columns."
                " Give one row and one column for each row of your data, or leave factor out where "
                "these are features."
            )
        scaling, projection = rows.source.chain.scaling, settings.embedder or settings.directions
        for name, value, refused in (
            ("scaling", scaling, scaling != "none"),
            ("projection", projection, bool(projection)),
        ):
            if refused:
                raise ParameterError(
                    f"{name}={value!r} cannot be used with factor='precomputed', whose entries are "
                    f"similarities and no features; leave {name} out."
                )
        if settings.device != "cpu":
            raise ParameterError(
                f"device={settings.device!r} cannot be used with factor='precomputed', which is "
                "solved on the processor; leave device out."
            )
        parts = rows.engine.map_blocks(_read, rows.blocks, label="graph")
        given = sparse.vstack(parts, format="csr")
        del parts
        _refuse_distances(given, source)
        width = given.shape[1]
        given.resize((width, width))  # a trial has read the first rows only
        graph = sparse.csr_array(given + given.T)
        del given
        graph.data *= 0.5
        graph.setdiag(0.0)
        graph.eliminate_zeros()
        degrees = np.asarray(graph.sum(axis=1)).ravel()
        check_finite(degrees)
        ties = Ties(degrees)
        ties.normalise(graph, ties.roots)
        ties.n_ties, ties.kept_with_blocks = graph.nnz // 2, True  # in memory, as S
        features = OwnFeatures(ties, Normalisation(None, rows.source.n_rows), graph)
        return cls(rows.engine, rows.source, rows.blocks, features, rows.sample, rows.view)

    @staticmethod
    def from_state(state: dict[str, np.ndarray]) -> Ties:
        # What new rows need.
        return Ties(state["degrees"])

    @classmethod
    def rank_for(cls, settings: GraphSettings, n_rows: int, n_features: int) -> int:
        return 0  # nobody asks for the eigenvectors

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        # The graph is held as a whole.
        n = size.n_rows
        # Of a sparse row three numbers stand for an entry, and the symmetric graph has two for it.
        entries = int(size.values * n)
        graph = ENTRY_BYTES * entries
        solving = 8 * n * (ITERATES * (size.n_classes + 1) + 5 * columns_at_once(n))
        return Ties.sweep_cost(size, settings.device)._replace(
            libraries=TORCH if settings.device != "cpu" else {},
            fitting=COPIES * graph,
            fixed=2 * graph + solving,  # as it is, and in the order in which it is solved
            seconds={"graph": n * 1e-5, "learning": n * 5e-5, "labels": n * 5e-6},
        )

    def features_of(self, rows: np.ndarray) -> Any:
        return self.features.similarities[rows]

    def targets_of(self, labels: Labels | Targets, mix: Callable[[Any], Any]) -> np.ndarray:
        rows, given = labels.targets_within(0, labels.n_rows)
        targets = np.zeros((labels.n_rows, given.shape[1]))
        targets[rows] = given
        return targets

    def sums(self, labels: Labels | Targets, checkpoint: Checkpoint | None = None) -> GramSums:
        """S, Y and S·1, which stand for H, B and t."""
        n, graph = labels.n_rows, self.features.similarities
        return GramSums(
            gram=graph,
            targets=self.targets_of(labels, np.asarray),
            totals=np.asarray(graph.sum(axis=1)).ravel(),
            counts=labels.counts,
            n_rows=n,
            mixing=np.ones(n),
            mode=np.sqrt(self.features.factor.degrees),
        )

    def system(self, sums: GramSums, n_labelled: int, *, few_alphas: bool) -> System:
        return OwnGraphSystem(1.0, sums)


def _read(block: Block) -> Any:
    return _similarities(block.rows(), block.start)


def _similarities(rows: Rows, start: int = 0) -> Any:
    """Rows as a CSR array of float64 numbers of 0 or more, which are finite."""
    ties = sparse.csr_array(rows, dtype=np.float64, copy=True)
    check_finite(ties.data)
    if ties.nnz and ties.data.min() < 0:
        entry = int(ties.data.argmin())
        row = int(np.searchsorted(ties.indptr, entry, side="right")) - 1
        raise BadRowsError(
            "Negative values in data: factor='precomputed' takes similarities of 0 or more; the "
            f"entry in row {start + row:,}, column {ties.indices[entry]:,} is "
            f"{ties.data[entry]:g}. Turn distances or correlations into similarities first, for "
            "example with np.exp(-distances**2 / (2 * width**2)) or np.maximum(correlations, 0)."
        )
    return ties


def _refuse_distances(given: Any, source: Source) -> None:
    """Refuse a graph whose rows are stored from the smallest value to the largest.

    So scikit-learn's ``kneighbors_graph`` stores distances, the nearest neighbour first; its
    similarities fall, or are all 1, and other graphs are stored by column.
    """
    if not source.is_sparse or given.has_sorted_indices or given.nnz == 0:
        return
    steps = np.diff(given.data)
    steps[given.indptr[1:-1][given.indptr[1:-1] < given.nnz] - 1] = 0.0  # from row to row
    if steps.min(initial=0.0) == 0.0 < steps.max(initial=0.0):
        raise BadRowsError(
            f"factor='precomputed' takes similarities, but {source.name} looks like distances: in "
            "every row the stored values rise, as those of kneighbors_graph(mode='distance') do. "
            "Turn them into similarities first, for example with graph.data = "
            "np.exp(-graph.data**2 / (2 * np.median(graph.data)**2)), or use mode='connectivity'; "
            "if these are similarities, call graph.sort_indices() before."
        )
