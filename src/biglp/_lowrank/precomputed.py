"""The user's own graph: an n × n matrix of similarities, sparse or dense, in place of rows.

Notation: A is the matrix as it is given. Only undirected graphs have the spectrum that label
spreading needs, and a tie of a row to itself says nothing about its neighbours, so that

    W = (A + Aᵀ)/2 without its diagonal,   D = diag(W·1),   S = D^(−1/2)·W·D^(−1/2).

Half a tie is left where only one of two rows names the other, as in a k-NN graph.

S is no product of n × r features, but the sweeps need not know: the features of a row are its row
of S, and what stands for H and B is S and Y (:mod:`biglp._propagate.own_graph`). The graph stays in
memory as a whole, on every process.

A new row i has ties a_ij to the training rows, the degree d_i = Σ_j a_ij, and the features
a_ij / √(d_i·d_j): it is scored by its neighbours, and changes nothing for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows
from biglp._core.blocks import Block
from biglp._core.errors import BadRowsError, ParameterError
from biglp._core.size import TORCH, Cost, Size
from biglp._labels.labels import Labels
from biglp._lowrank.base import Factor, check_finite
from biglp._lowrank.rows import TrainingRows
from biglp._lowrank.settings import GraphSettings
from biglp._propagate.own_graph import OwnGraphSums, columns_at_once
from biglp._sources import Source

ENTRY_BYTES = 12
"""A number and its column, in CSR."""
COPIES = 5
"""What reading and making it symmetric takes, counted in entries of the symmetric graph."""
ITERATES = 9
"""Arrays of n × c numbers that conjugate gradients and their layers hold."""


class PrecomputedFactor(Factor):
    """Rows of a graph that is given.

    Parameters
    ----------
    degrees : ndarray of shape (n,)
        d, of the training rows.
    graph : CSR array of shape (n, n), optional
        S, for the training rows; without it every row counts as new.
    plan : str
        Token of the cut that the training rows are read in.
    """

    kind = "precomputed"
    scales_features = False
    n_landmarks_counts = False
    kept_with_blocks = True
    overwritable = False
    is_graph = True

    def __init__(self, degrees: np.ndarray, graph: Any = None, plan: str = "") -> None:
        self.degrees, self.graph, self._plan = degrees, graph, plan
        self.rank = len(degrees)
        self.kept_with_blocks = graph is not None
        # A row without any tie has nothing to divide by.
        self._roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))

    @classmethod
    def fit(cls, rows: TrainingRows, settings: GraphSettings) -> PrecomputedFactor:
        """Read the graph as a whole, check it and make it symmetric."""
        source = rows.source.inner
        if source.n_rows != source.n_features:
            raise BadRowsError(
                f"factor='precomputed' takes a square matrix of similarities between all pairs of "
                f"rows; {source.name} has {source.n_rows:,} rows and {source.n_features:,} columns."
                " Give one row and one column for each row of your data, or leave factor out where "
                "these are features."
            )
        if rows.source.scaling.kind != "none":
            raise ParameterError(
                f"scaling={rows.source.scaling.kind!r} cannot be used with factor='precomputed', "
                "whose entries are similarities and no features; leave scaling out."
            )
        if settings.directions:
            raise ParameterError(
                f"projection={settings.directions} cannot be used with factor='precomputed', whose "
                "entries are similarities and no features; leave projection out."
            )
        if settings.device != "cpu":
            raise ParameterError(
                f"device={settings.device!r} cannot be used with factor='precomputed', which is "
                "solved on the processor; leave device out."
            )
        return cls._of(rows, source)

    @classmethod
    def _of(cls, rows: TrainingRows, source: Source) -> PrecomputedFactor:
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
        factor = cls(degrees, graph, _token(rows.blocks[0]))
        factor._normalise(graph, factor._roots)
        return factor

    @classmethod
    def rank_for(cls, settings: GraphSettings, n_rows: int, n_features: int) -> int:
        """Features of a row: one for each row."""
        return n_rows

    @classmethod
    def sweep_cost(cls, size: Size, device: str) -> Cost:
        """A row of the graph, symmetric, and its answers."""
        return Cost(row=int(8 * (3 * size.values + 2 * size.n_classes)) + 64)

    @classmethod
    def cost(cls, settings: GraphSettings, size: Size) -> Cost:
        """The graph, which is held as a whole, and what solving with it takes."""
        n = size.n_rows
        # Of a sparse row three numbers stand for an entry, and the symmetric graph has two for it.
        entries = int(size.values * n)
        graph = ENTRY_BYTES * entries
        solving = 8 * n * (ITERATES * (size.n_classes + 1) + 5 * columns_at_once(n))
        return cls.sweep_cost(size, settings.device)._replace(
            libraries=TORCH if settings.device != "cpu" else {},
            fitting=COPIES * graph,
            fixed=2 * graph + solving,  # as it is, and in the order in which it is solved
            seconds={"graph": n * 1e-5, "learning": n * 5e-5, "labels": n * 5e-6},
        )

    def sums(self, labels: Labels) -> OwnGraphSums:
        """S, Y and S·1, which stand for H, B and t."""
        mode = np.sqrt(self.degrees)
        return OwnGraphSums.of(self.graph, mode, labels)

    def features(self, rows: Rows) -> Array:
        """Normalised ties of new rows to the training rows, in float64.  (b, n) → (b, n)."""
        ties = _similarities(rows)
        degrees = np.asarray(ties.sum(axis=1)).ravel()
        check_finite(degrees)
        self._normalise(ties, np.sqrt(np.where(degrees > 0, degrees, 1.0)))
        return ties

    def block_features(self, block: Block) -> Array:
        """Rows of S for a training block; for new rows as in :meth:`features`."""
        if self.graph is not None and _token(block) == self._plan:
            return self.graph[block.start : block.stop]
        return self.features(block.rows())

    def for_new_rows(self) -> PrecomputedFactor:
        """Return the factor without the graph: new rows need the degrees alone."""
        return PrecomputedFactor(self.degrees)

    def state(self) -> dict[str, np.ndarray]:
        """The degrees."""
        return {"degrees": self.degrees}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> PrecomputedFactor:
        """Rebuild from the degrees."""
        return cls(state["degrees"])

    def describe(self) -> dict[str, Any]:
        """The number of ties, and of rows without any."""
        facts: dict[str, Any] = {"factor": self.kind}
        if self.graph is not None:
            facts |= {"ties": self.graph.nnz // 2, "isolated_rows": int((self.degrees == 0).sum())}
        return facts

    def _normalise(self, ties: Any, roots: np.ndarray) -> None:
        """Divide entries by the root of both degrees, in place.  (b, n), (b,)."""
        ties.data /= np.repeat(roots, np.diff(ties.indptr))
        ties.data /= self._roots[ties.indices]


def _read(block: Block) -> Any:
    """The rows of a block as they are given."""
    return _similarities(block.rows(), block.start)


def _similarities(rows: Rows, start: int = 0) -> Any:
    """Rows as a CSR array of float64 numbers of 0 or more, which are finite."""
    ties = sparse.csr_array(rows, dtype=np.float64, copy=True)
    check_finite(ties.data)
    if ties.nnz and ties.data.min() < 0:
        place = int(ties.data.argmin())
        row = int(np.searchsorted(ties.indptr, place, side="right")) - 1
        raise BadRowsError(
            "Negative values in data: factor='precomputed' takes similarities of 0 or more; the "
            f"entry in row {start + row:,}, column {ties.indices[place]:,} is "
            f"{ties.data[place]:g}. Turn distances or correlations into similarities first, for "
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


def _token(block: Block) -> str:
    return "" if block.plan is None else block.plan.token
