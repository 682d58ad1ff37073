"""What a report shows of the rows: a random sample of them with answers and places on the map.

Only the sample is read, piece by piece, so that it costs a small part of a fit. From it come how
sure the model is, the map, and some rows of each class to look at. The choice
depends on the seed alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from scipy import sparse

from biglp._core.arrays import to_device, to_numpy
from biglp._core.threads import one_blas_thread
from biglp._fit.sample import DENSE_RANK, MAP_SAMPLE, ROWS_PER_GROUP, RowMap, clustered, map_bytes
from biglp._graph.graph import Graph
from biglp._labels.doubts import LabelDoubts
from biglp._labels.labels import Labels
from biglp._learn.base import Predictor, among, part_of_labels
from biglp._rows import Source

# --------------------------------------------------------------------------------------------------
# Rows of each class to look at: typical ones, doubtful ones, and labels that may be wrong.
#
# typical     k-means of the class's rows in the leading directions of the graph; of each cluster
#             the row nearest to its centre, that of the largest cluster first
# doubtful    rows whose class is the least sure
# suspicious  labelled rows that the other labels contradict


PARTS = ("typical", "doubtful", "suspicious")
"""What a row is an example of."""
MOST_CLASSES, EACH = 20, 6
"""Classes that are shown, the largest, and rows of each part of each."""
CLASS_ROWS = 200
"""Rows of a class that typical ones are chosen from."""
ENTRIES = 16
"""Largest entries that are kept of a sparse row."""
VALUES_BYTES = 16 << 20
"""What the rows that are shown may take; of wider ones the first features are kept."""


@dataclass(frozen=True)
class Sampled:
    """Rows, and what is said of them."""

    rows: np.ndarray  # (m,): row numbers, increasing
    # (m,): the likeliest class and the next
    codes: np.ndarray
    others: np.ndarray
    confidence: np.ndarray  # (m,): probability of the likeliest class
    # (m, q): unit vectors in leading directions of the graph; (m, 0) where they are not known
    units: np.ndarray


@dataclass(frozen=True)
class Examples:
    """Rows to look at."""

    rows: np.ndarray  # (s,): row numbers
    parts: np.ndarray  # (s,): places in ``PARTS``
    # (s,): class under which the row is shown: the likeliest, or the label that was given
    codes: np.ndarray
    others: np.ndarray  # (s,): the next likely class, or the one that the other labels suggest
    shares: np.ndarray  # (s,): confidence, or the probability that the label is wrong
    values: np.ndarray  # (s, w): the rows as they were given; of sparse ones the largest entries
    columns: np.ndarray  # (s, w) or (0, 0): which features these entries are, where rows are sparse


def choose_examples(
    sampled: Sampled, n_classes: int, doubts: LabelDoubts | None, seed: int, source: Source
) -> Examples:
    """Choose rows of the largest classes, and read what they hold.

    ``doubts``: what is thought of the given labels.
    """
    sizes = np.bincount(sampled.codes, minlength=n_classes)
    shown = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CLASSES])
    lines: list[tuple[int, int, int, int, float]] = []
    for code in shown.tolist():
        own = np.flatnonzero(sampled.codes == code)
        doubtful = own[np.argsort(sampled.confidence[own], kind="stable")[:EACH]]
        if not sampled.units.shape[1] or len(own) <= EACH:
            typical = own[np.argsort(-sampled.confidence[own], kind="stable")[:EACH]]
        else:
            if len(own) > CLASS_ROWS:
                own = np.sort(np.random.default_rng(seed).choice(own, CLASS_ROWS, replace=False))
            vectors = sampled.units[own].astype(np.float64)
            clusters, squared = clustered(vectors, EACH, seed, starts=1)
            members = [np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters)]
            members.sort(key=len, reverse=True)
            typical = own[[each[squared[each].argmin()] for each in members]]
        for part, places in enumerate((typical, doubtful)):
            lines += [
                (sampled.rows[at], part, code, sampled.others[at], sampled.confidence[at])
                for at in places
            ]
        if doubts is not None:  # labels of the class that the others contradict
            contradicted = doubts.suggested_probability > doubts.probability
            own = np.flatnonzero(contradicted & (doubts.codes == code))
            part = PARTS.index("suspicious")
            lines += [
                (doubts.rows[at], part, code, doubts.suggested[at], doubts.wrong[at])
                for at in own[np.lexsort((doubts.rows[own], -doubts.wrong[own]))][:EACH]
            ]
    of_lines = zip(*lines, strict=True) if lines else ((),) * 5
    rows, parts, codes, others, shares = (np.array(list(column)) for column in of_lines)
    rows, values = rows.astype(np.int64), np.empty((0, 0), dtype=np.float32)
    columns = np.empty((0, 0), dtype=np.int64)
    if len(rows):
        distinct, places = np.unique(rows, return_inverse=True)
        taken = to_numpy(source.take(distinct))
        if sparse.issparse(taken):
            values, columns = largest_entries(sparse.csr_array(taken))
            values, columns = values[places], columns[places]
        else:
            width = max(VALUES_BYTES // (len(rows) * 4), 1)
            most = np.finfo(np.float32).max  # what is larger is shown as that
            values = np.clip(taken[places, :width], -most, most).astype(np.float32)
    return Examples(
        rows=rows,
        parts=parts.astype(np.int64),
        codes=codes.astype(np.int64),
        others=others.astype(np.int64),
        shares=shares.astype(np.float32),
        values=values,
        columns=columns,
    )


def largest_entries(rows: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Values and columns of the largest entries of each row; 0 and −1 where there are fewer."""
    values = np.zeros((rows.shape[0], ENTRIES), dtype=np.float32)
    columns = np.full(values.shape, -1, dtype=np.int64)
    most = np.finfo(np.float32).max  # what is larger is shown as that
    for place in range(rows.shape[0]):
        part = slice(rows.indptr[place], rows.indptr[place + 1])
        best = np.argsort(-np.abs(rows.data[part]), kind="stable")[:ENTRIES]
        values[place, : len(best)] = np.clip(rows.data[part][best], -most, most)
        columns[place, : len(best)] = rows.indices[part][best]
    return values, columns


# --------------------------------------------------------------------------------------------------


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
class ReportSample:
    """A sample of the unlabelled rows, and what is said of them."""

    # (m,): the likeliest class of each row, and its probability
    codes: np.ndarray
    confidence: np.ndarray
    places: np.ndarray  # (m, 2): where the rows are on the map; (0, 2) where there is none
    # (l,) and (l, 2): some labelled rows
    labelled_codes: np.ndarray
    labelled_places: np.ndarray
    examples: Examples  # rows of each class to look at

    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`from_state` rebuilds it."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = own.pop("examples")
        return own | {f"example_{f.name}": getattr(shown, f.name) for f in fields(Examples)}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> ReportSample:
        """Rebuild from :meth:`state`."""
        shown = Examples(**{f.name: state[f"example_{f.name}"] for f in fields(Examples)})
        own = {f.name: state[f.name] for f in fields(cls) if f.name != "examples"}
        return cls(**own, examples=shown)


@dataclass(frozen=True)
class EvidenceMaker:
    """Looks at a sample of the rows."""

    graph: Graph
    answer: Predictor  # what was learnt
    labels: Labels
    doubts: LabelDoubts | None = None  # what is thought of the labels
    seed: int = 0
    memory: int = MEMORY  # bytes that may be taken: fewer rows are looked at where that is little

    def evidence(self) -> ReportSample:
        """Find out what a report shows."""
        # Several threads wait for each other, on a busy machine ten times as long as they work.
        with one_blas_thread():
            graph, answer, labels = self.graph, self.answer, self.labels
            source, sample = graph.source, graph.sample
            # The map, from as many rows as memory allows; none where that is too few.
            rank, size, row_map = graph.factor.rank, MAP_SAMPLE, None
            if answer.kind != COMMITTEE:  # the large decomposition would load it
                size = ROWS_PER_GROUP * DENSE_RANK
            while map_bytes(rank, 1, size) > self.memory and size > LEAST_SAMPLE:
                size //= 2
            large = answer.kind != COMMITTEE and rank > DENSE_RANK and not graph.factor.unit_degrees
            if not large and map_bytes(rank, 1, size) <= self.memory:
                row_map = RowMap.of(graph, size)
            width = 0 if row_map is None else row_map.basis.shape[1]

            # Unlabelled rows of the sample, and what they hold where that is in memory.
            a_row = max(source.n_features, source.n_input_features) * source.dtype.itemsize
            size = min(SAMPLE, self.memory // (2 * 4 * (width + 4)))
            if not source.inner.is_sparse:
                size = min(size, READ_BYTES // a_row)
            size = max(size, LEAST_SAMPLE)
            rows = sample.rows(size)
            unlabelled = ~among(rows, labels.rows)
            rows = rows[unlabelled]
            stored = sample.prepared(size)[unlabelled] if sample.keeps(size) else None

            a_row += 4 * 8 * labels.n_classes
            if not graph.factor.unit_degrees:  # dense features
                a_row += 2 * 8 * graph.factor.rank
            at_once = int(np.clip(min(PIECE_BYTES, self.memory // 4) // a_row, 16, PIECE_ROWS))
            codes, others = np.empty((2, len(rows)), dtype=np.int32)
            confidence = np.empty(len(rows), dtype=np.float32)
            units = np.empty((len(rows), width), dtype=np.float32)
            for start in range(0, len(rows), at_once):
                piece = slice(start, start + at_once)
                if stored is None:
                    prepared = source.take(rows[piece])
                else:
                    prepared = to_device(stored[piece], source.device)
                features = graph.features_to_answer(rows[piece], prepared)
                outputs, _ = answer.outputs(features, prepared if answer.needs_rows else None)
                probabilities = np.asarray(answer.finish(to_numpy(outputs)), dtype=np.float64)
                best = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
                codes[piece], others[piece] = best[:, 0], best[:, -1]
                confidence[piece] = np.take_along_axis(probabilities, best[:, :1], axis=1)[:, 0]
                if row_map is not None:
                    units[piece] = row_map.units(features)

            places = labelled_places = np.empty((0, 2), dtype=np.float32)
            labelled_codes = np.empty(0, dtype=np.int64)
            if row_map is not None:
                marked = part_of_labels(labels, MOST_LABELLED, self.seed)
                known = row_map.units(graph.features_of(marked.rows))
                places, labelled_places = (
                    ((vectors - row_map.centre) @ row_map.axes).astype(np.float32)
                    for vectors in (units, known)
                )
                labelled_codes = marked.codes
            sampled = Sampled(rows, codes, others, confidence, units)
            shown = choose_examples(sampled, labels.n_classes, self.doubts, self.seed, source.inner)
            return ReportSample(
                codes=codes,
                confidence=confidence,
                places=places,
                labelled_codes=labelled_codes,
                labelled_places=labelled_places,
                examples=shown,
            )
