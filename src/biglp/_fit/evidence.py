"""What a report shows of the rows: a random sample of them with answers and places on the map.

Only the sample is read, piece by piece, so that it costs a small part of a fit. From it come how
sure the model is, the map, and some rows of each class to look at (:mod:`.examples`). The choice
depends on the seed alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from biglp._core.arrays import to_numpy
from biglp._core.threads import one_blas_thread
from biglp._fit.examples import Examples, Sampled, choose_examples
from biglp._fit.pipeline import Fitted
from biglp._fit.row_map import SAMPLE as MAP_SAMPLE
from biglp._fit.row_map import RowMap, map_bytes, unit_vectors
from biglp._fit.sample_graph import DENSE_RANK, ROWS_PER_GROUP
from biglp._graph.graph import Graph
from biglp._labels.doubts import LabelDoubts
from biglp._labels.labels import Labels
from biglp._learn.base import Answer
from biglp._rows.source import among, sample_indices

SAMPLE, LEAST_SAMPLE = 10_000, 500
"""Rows that are looked at, and those that are even where memory is short or rows are wide."""
READ_BYTES = 128 << 20
"""What is read in all: of wide rows fewer are looked at."""
PIECE_BYTES, PIECE_ROWS = 8 << 20, 2000
"""What is read at once."""
MOST_LABELLED = 1000
"""Labelled rows that are marked on the map; a random part of more."""
COMMITTEE = "committee"
"""The answer whose members have loaded scikit-learn."""
MEMORY = 256 << 20
"""What may be taken where nobody says so."""


@dataclass(frozen=True)
class Evidence:
    """A sample of the unlabelled rows, and what is said of them.

    Attributes
    ----------
    codes, confidence : ndarrays of shape (m,)
        The likeliest class of each row, and its probability.
    places : ndarray of shape (m, 2)
        Where the rows are on the map; (0, 2) where there is none.
    labelled_codes, labelled_places : ndarrays of shape (l,) and (l, 2)
        Some labelled rows.
    examples : Examples
        Rows of each class to look at.
    """

    codes: np.ndarray
    confidence: np.ndarray
    places: np.ndarray
    labelled_codes: np.ndarray
    labelled_places: np.ndarray
    examples: Examples

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`from_state` rebuilds it."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = own.pop("examples")
        return own | {f"example_{f.name}": getattr(shown, f.name) for f in fields(Examples)}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Evidence:
        """Rebuild from :meth:`state`."""
        shown = Examples(**{f.name: state[f"example_{f.name}"] for f in fields(Examples)})
        own = {f.name: state[f.name] for f in fields(cls) if f.name != "examples"}
        return cls(**own, examples=shown)


@dataclass(frozen=True)
class Look:
    """Looks at a sample of the rows.

    Attributes
    ----------
    graph : Graph
    answer : Answer
        What was learnt.
    labels : Labels
    doubts : LabelDoubts or None
        What is thought of the labels.
    seed : int
    memory : int
        Bytes that may be taken: fewer rows are looked at where that is little.
    """

    graph: Graph
    answer: Answer
    labels: Labels
    doubts: LabelDoubts | None = None
    seed: int = 0
    memory: int = MEMORY

    @classmethod
    def of(cls, fitted: Fitted, doubts: LabelDoubts | None) -> Look:
        """Look at the rows of a fit, within half of what nothing needs after its last sweep.

        The other half the allocator may not have given back.
        """
        problem, plan = fitted.problem, fitted.plan
        memory = (plan.blocks + plan.stored - plan.kept) // 2
        seed = problem.settings.seed
        answer = fitted.model.answer
        return cls(problem.graph, answer, problem.labels, doubts, seed, min(memory, MEMORY))

    def evidence(self) -> Evidence:
        """Find out what a report shows."""
        # Several threads wait for each other, on a busy machine ten times as long as they work.
        with one_blas_thread():
            return self._evidence()

    def _evidence(self) -> Evidence:
        row_map = self._map()
        width = 0 if row_map is None else row_map.basis.shape[1]
        rows = self._sample(width)
        codes, others = np.empty((2, len(rows)), dtype=np.int32)
        confidence = np.empty(len(rows), dtype=np.float32)
        units = np.empty((len(rows), width), dtype=np.float32)
        at_once = self._at_once()
        for start in range(0, len(rows), at_once):
            piece = slice(start, start + at_once)
            taken = self.graph.source.take(rows[piece])
            features = self.graph.features_to_answer(rows[piece], taken)
            shares = self._shares(features, taken)
            best = np.argsort(-shares, axis=1, kind="stable")[:, :2]
            codes[piece], others[piece] = best[:, 0], best[:, -1]
            confidence[piece] = np.take_along_axis(shares, best[:, :1], axis=1)[:, 0]
            if row_map is not None:
                units[piece] = _units(row_map, features)
        sampled = Sampled(rows, codes, others, confidence, units)
        places, labelled_codes, labelled_places = self._places(row_map, units)
        shown = choose_examples(sampled, self.labels.n_classes, self.doubts, self.seed)
        return Evidence(
            codes=codes,
            confidence=confidence,
            places=places,
            labelled_codes=labelled_codes,
            labelled_places=labelled_places,
            examples=shown.with_values(self.graph.source.inner),
        )

    def _sample(self, width: int) -> np.ndarray:
        """Unlabelled rows, drawn at random."""
        source = self.graph.source
        a_row = max(source.n_features, source.n_input_features) * source.dtype.itemsize
        size = min(SAMPLE, self.memory // (2 * 4 * (width + 4)))
        if not source.inner.is_sparse:
            size = min(size, READ_BYTES // a_row)
        drawn = sample_indices(source.n_rows, max(size, LEAST_SAMPLE), self.seed)
        return drawn[~among(drawn, self.labels.rows)]

    def _at_once(self) -> int:
        source = self.graph.source
        a_row = max(source.n_features, source.n_input_features) * source.dtype.itemsize
        a_row += 4 * 8 * self.labels.n_classes
        if not self.graph.factor.unit_degrees:  # dense features
            a_row += 2 * 8 * self.graph.factor.rank
        return int(np.clip(min(PIECE_BYTES, self.memory // 4) // a_row, 16, PIECE_ROWS))

    def _map(self) -> RowMap | None:
        """The map, from as many rows as memory allows; None where that is too few."""
        rank, size = self.graph.factor.rank, MAP_SAMPLE
        if self.answer.kind != COMMITTEE:  # the large decomposition would load it
            size = ROWS_PER_GROUP * DENSE_RANK
            if rank > DENSE_RANK and not self.graph.factor.unit_degrees:
                return None
        while map_bytes(rank, 1, size) > self.memory and size > LEAST_SAMPLE:
            size //= 2
        if map_bytes(rank, 1, size) > self.memory:
            return None
        return RowMap.of(self.graph, self.seed, size)

    def _shares(self, features: Any, taken: Any) -> np.ndarray:
        """Class probabilities of rows, as the last sweep finds them.  (b, c)."""
        outputs, _ = self.answer.outputs(features, taken if self.answer.needs_rows else None)
        return np.asarray(self.answer.finish(to_numpy(outputs)), dtype=np.float64)

    def _places(
        self, row_map: RowMap | None, units: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places of the sample; classes and places of some labelled rows."""
        if row_map is None:
            nowhere = np.empty((0, 2), dtype=np.float32)
            return nowhere, np.empty(0, dtype=np.int64), nowhere
        chosen = sample_indices(len(self.labels.rows), MOST_LABELLED, self.seed)
        marked = self.labels.take(chosen)
        known = _units(row_map, self.graph.features_of(marked.rows))
        found, beside = (
            ((each - row_map.centre) @ row_map.axes).astype(np.float32) for each in (units, known)
        )
        return found, marked.codes, beside


def _units(row_map: RowMap, features: Any) -> np.ndarray:
    """Rows as unit vectors in the directions behind a map.  (b, p) → (b, q)."""
    features = to_numpy(features)
    return unit_vectors(np.asarray(features @ row_map.basis, dtype=np.float64))
