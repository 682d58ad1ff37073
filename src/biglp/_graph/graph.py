"""The graph W ≈ ΦΦᵀ over the rows of a source, and the sweeps that touch them all.

=========  ====  ==========================================  ======================
sweep      verb  a block gives                               together they give
=========  ====  ==========================================  ======================
degrees    sum   column sums of F                            s = Fᵀ1, so d_i = f_i·s
Gram       sum   F̄ᵀF̄, F̄ᵀY, F̄ᵀ1, rows repaired               H, B, t
answers    map   answers of its rows, to a sink              (:mod:`.answering`)
=========  ====  ==========================================  ======================

An anchor graph has degrees of 1, so its first sweep is left out and the columns are scaled
afterwards. A graph that the user gives needs neither (:mod:`.precomputed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from biglp._algebra.sums import GramSums
from biglp._algebra.systems import System, is_sparse_rank, take_apart
from biglp._compiled import column_sums, gram_matrix, native
from biglp._core.arrays import Array, RowEntries, Rows, like, to_csr, to_numpy
from biglp._core.blocks import Block
from biglp._engines import Engine
from biglp._files.runfolder import Checkpoint, Journal, Tally
from biglp._graph.factor import DENSE_COLUMNS, FeatureMap, TrainingRows
from biglp._graph.normalise import Normalisation
from biglp._labels.labels import Labels, OwnLabels
from biglp._labels.targets import Targets
from biglp._output import Sink
from biglp._rows import PreparedRows
from biglp._rows.source import sample_indices, sample_rows

# --------------------------------------------------------------------------------------------------
# Rows to normalised features φ̄ = φ/√d: the part of a graph that travels to other processes.


@dataclass(frozen=True)
class Features:
    """A feature map and the degrees of its graph.

    Attributes
    ----------
    factor : FeatureMap
    normalisation : Normalisation
    """

    factor: FeatureMap
    normalisation: Normalisation

    def for_new_rows(self) -> Features:
        """The same without what belongs to the training rows."""
        return replace(self, factor=self.factor.for_new_rows())

    def of_rows(self, rows: Rows) -> Array:
        """Normalised features of any rows, before mixing.  (b, m) → (b, p)."""
        return self.normalisation.apply(self.factor.features(rows))[0]

    def of_block(self, block: Block) -> tuple[Array, int]:
        """Normalised features of a training block, and its rows whose degree was repaired.

        Stored features are overwritten.
        """
        return self._normalised(self.factor.block_features(block), block)

    def to_answer(self, block: Block) -> Array:
        """As :meth:`of_block`, in the type whose products the factor's way of sweeping makes."""
        return quick_to_multiply(self.of_block(block)[0], self.factor.compiled)

    def _normalised(self, features: Array, block: Block) -> tuple[Array, int]:
        repaired = block.memory.get("repaired")
        if repaired is not None:
            return features, repaired  # an earlier sweep has left them normalised
        overwritable = self.factor.overwritable
        features, repaired = self.normalisation.apply(features, in_place=overwritable)
        if self._stays(block):
            block.memory["repaired"] = repaired
        return features, repaired

    def _stays(self, block: Block) -> bool:
        """Whether a block's features stay as a sweep leaves them."""
        return self.factor.overwritable and self.factor.store.stays(block.memory.get("features"))

    def summed(self, block: Block, rows: np.ndarray) -> tuple[Array, Array, Array, int]:
        """What a training block adds to the sums over all rows.

        Returns
        -------
        features : array of shape (l, p)
            Normalised features of ``rows``, counted from the block's first.
        gram, totals : arrays of shape (p, p) and (p,)
            Of all of its rows.
        n_repaired : int
        """
        factor = self.factor
        features = factor.block_features(block)
        ready = "repaired" in block.memory or self.normalisation.weights is None
        stays = self._stays(block)
        if factor.compiled and not ready and isinstance(features, np.ndarray):
            native.check_can_run()
            matrix, totals, repaired = native.gram(features, self.normalisation)
            if stays:
                block.memory["repaired"] = repaired
            return features[rows], matrix, totals, repaired
        fast = self.normalisation.summed(features, in_place=stays, ready=ready)
        if fast is None:
            features, repaired = self._normalised(features, block)
            if sparse.issparse(features) and features.shape[1] <= DENSE_COLUMNS:
                features = features.toarray()
            return features[rows], gram_matrix(features), column_sums(features), repaired
        matrix, totals, repaired = fast
        if stays and not ready:
            block.memory["repaired"] = repaired
        chosen = features[rows]
        if not (ready or stays):
            chosen = self.normalisation.apply(chosen)[0]
        return chosen, matrix, totals, block.memory.get("repaired", repaired)

    def of_chosen(self, block: Block, rows: np.ndarray) -> Any:
        """Normalised features of those of some rows, by number, that a training block holds."""
        first, last = np.searchsorted(rows, [block.start, block.stop])
        features, _ = self.of_block(block)
        return float64_features(features[rows[first:last] - block.start])


def float64_features(features: Array) -> Any:
    """Features of a few rows, from any device, for the small algebra; CSR remains CSR."""
    features = to_numpy(features)
    if sparse.issparse(features):
        return sparse.csr_array(features, dtype=np.float64)
    return np.asarray(features, dtype=np.float64)


def quick_to_multiply(features: Array, compiled: bool) -> Array:
    """Features whose products with a few columns go the way of the fit."""
    if compiled and isinstance(features, np.ndarray):
        native.check_can_run()
        return features.view(native.Multiplied)
    return features


# --------------------------------------------------------------------------------------------------
# The last sweep: an answer for every row, written to a sink where it is made.


class Answerer(Protocol):
    """What the sweep asks of an answer; :class:`biglp._learn.base.Predictor` is the base of all."""

    @property
    def needs_rows(self) -> bool:
        """Whether it looks at prepared rows beside their features."""

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """What is said of each row, and how many rows no label reaches."""

    def finish(self, outputs: Array) -> Array:
        """What is written of these outputs."""

    def count(self, answers: Array) -> dict[int, int]:
        """Rows of each class code that occurs."""


@dataclass(frozen=True)
class Answered:
    """What the sweep found, besides the answers in the sink.

    Attributes
    ----------
    n_unreached : int
        Rows that no label reaches.
    counts : dict of int to int
        Rows of each class code that occurs.
    """

    n_unreached: int
    counts: dict[int, int]


@dataclass(frozen=True)
class AnswerSweep:
    """Answers block by block.

    Attributes
    ----------
    features : Features
    answer : Answerer
    labels : Labels or None
        Labels of training rows, which add to their own answers; None where rows are new.
    clamp : bool
        Whether labelled rows keep exactly the labels they were given.
    """

    features: Features
    answer: Answerer
    labels: Labels | Targets | None = None
    clamp: bool = False

    def run(
        self, engine: Engine, blocks: Sequence[Block], sink: Sink, checkpoint: Checkpoint
    ) -> Answered:
        """Write the answers of all blocks but those that the checkpoint knows to be written."""
        finished = checkpoint.finished_blocks()
        todo = [block for block in blocks if block.start not in finished]
        tallies = list(finished.values())
        if sink.in_memory and not engine.shares_memory:
            # The answers are made elsewhere: they are sent here, and put into the sink.
            found = engine.map_blocks(self.answers_of, todo, label="labels")
            for block, (tally, answers) in zip(todo, found, strict=True):
                sink.write(block.start, answers)
                tallies.append(tally)
        else:
            journal = checkpoint.journal(sink.sync)
            try:
                written = partial(self.write_block, sink=sink, journal=journal)
                tallies += engine.map_blocks(written, todo, label="labels")
            finally:
                if journal is not None:
                    journal.close()
        counts: dict[int, int] = {}
        for _, part in tallies:
            for code, count in part.items():
                counts[code] = counts.get(code, 0) + count
        return Answered(sum(unreached for unreached, _ in tallies), dict(sorted(counts.items())))

    def write_block(self, block: Block, sink: Sink, journal: Journal | None) -> Tally:
        """Write the answers of a block; return what is to be known about it."""
        tally, answers = self.answers_of(block, as_they_are=sink.takes_tensors)
        sink.write(block.start, answers)
        if journal is not None:
            journal.note(block.start, tally)
        return tally

    def answers_of(self, block: Block, as_they_are: bool = False) -> tuple[Tally, Array]:
        """Answers of a block, and what is to be known about it.

        ``as_they_are`` leaves them on the device where they were made.
        """
        rows = block.rows() if self.answer.needs_rows else None
        features = self.features.to_answer(block)
        own = None if self.labels is None else self.labels.own(block.start, block.stop)
        outputs, unreached = self.answer.outputs(features, rows, own)
        answers = self.answer.finish(outputs if as_they_are else to_numpy(outputs))
        if self.clamp and own is not None:
            answers[own.rows, : own.shares.shape[1]] = like(answers, own.shares)
        return (unreached, self.answer.count(answers)), answers


# --------------------------------------------------------------------------------------------------


SAMPLED_AT_ONCE = 2000
"""Rows of a sample whose features are held."""


@dataclass(frozen=True)
class Graph:
    """Rows, the features that tie them together, and an engine to visit them.

    Attributes
    ----------
    engine : Engine
    source : PreparedRows
        The rows.
    blocks : sequence of Block
        Their cut.
    features : Features
        Factor and degrees.
    view : str
        Name of this view of the rows.
    pairwise : bool
        Whether its rows are similarities between pairs of rows, of which none can be shown.
    """

    engine: Engine
    source: PreparedRows
    blocks: Sequence[Block]
    features: Features
    view: str = "rows"
    pairwise: ClassVar[bool] = False

    @classmethod
    def of(
        cls, rows: TrainingRows, factor: FeatureMap, checkpoint: Checkpoint | None = None
    ) -> Graph:
        """Find the degrees of the training rows."""
        n_rows = rows.source.n_rows
        normalisation = Normalisation(None, n_rows)
        if not factor.unit_degrees:
            column_sums = (checkpoint or Checkpoint()).step(
                f"{rows.view}-degrees", lambda: {"column_sums": sweep_degrees(rows, factor)}
            )["column_sums"]
            normalisation = Normalisation(column_sums, n_rows, factor.mixing)
        features = Features(factor, normalisation)
        return cls(rows.engine, rows.source, rows.blocks, features, rows.view)

    @property
    def factor(self) -> FeatureMap:
        """The low-rank factor."""
        return self.features.factor

    @property
    def keeps_features(self) -> bool:
        """Whether the features of its rows are kept, and not those that such rows have as new."""
        return self.factor.kept_with_blocks

    def features_of(self, rows: np.ndarray) -> Any:
        """Normalised features of chosen rows, before mixing, in float64.  (l,) → (l, p).

        ``rows`` are row numbers, increasing.
        """
        if not self.keeps_features:  # a few rows, wherever they are: not worth a sweep
            return float64_features(self.features.of_rows(self.source.take(rows)))
        places = np.searchsorted(rows, [block.start for block in self.blocks] + [rows.max() + 1])
        holding = [block for block, n in zip(self.blocks, np.diff(places), strict=True) if n > 0]
        function = partial(self.features.of_chosen, rows=rows)
        parts = self.engine.map_blocks(function, holding, label="labelled rows")
        return sparse.vstack(parts) if sparse.issparse(parts[0]) else np.concatenate(parts)

    def features_to_answer(self, rows: np.ndarray, taken: Rows) -> Array:
        """Normalised features of chosen rows as the last sweep has them.  (l,), (l, m) → (l, p).

        ``taken`` are the same rows, prepared.
        """
        if self.keeps_features:
            return self.features_of(rows).astype(self.source.dtype)
        return self.features.of_rows(taken)

    def sample_products(self, size: int, seed: int, matrix: np.ndarray) -> np.ndarray:
        """Normalised features of a random sample of rows, times a matrix.  (p, q) → (b, q)."""
        if self.keeps_features:
            chosen = sample_indices(self.source.n_rows, size, seed)
            return np.asarray(self.features_of(chosen) @ matrix)
        sample = sample_rows(self.source, size, seed)
        parts = []
        for start in range(0, sample.shape[0], SAMPLED_AT_ONCE):
            features = self.features.of_rows(sample[start : start + SAMPLED_AT_ONCE])
            parts.append(float64_features(features) @ matrix)
        return np.concatenate(parts)

    def targets_of(self, labels: Labels | Targets, mix: Callable[[Any], Any]) -> np.ndarray:
        """B of some labelled rows; ``mix`` is that of the sums.  (r, c)."""
        rows, given = labels.targets_within(0, labels.n_rows)
        return np.asarray(mix(self.features_of(rows)).T @ given)

    def sums(self, labels: Labels | Targets, checkpoint: Checkpoint | None = None) -> GramSums:
        """H, B and t over all rows, mixed; one sweep."""
        found = (checkpoint or Checkpoint()).step(
            f"{self.view}-gram", lambda: sweep_gram(self, labels).arrays()
        )
        return GramSums.from_arrays(found, labels.counts, labels.n_rows)

    def system(self, sums: GramSums, n_labelled: int, *, few_alphas: bool) -> System:
        """What solves with some sums of this graph for any α."""
        device, n_threads = self.source.device, self.engine.n_threads
        return take_apart(sums, n_labelled, device, n_threads, few_alphas=few_alphas)

    def describe(self) -> dict[str, Any]:
        """Facts worth reporting."""
        return self.factor.describe()

    def answer(
        self,
        answer: Answerer,
        sink: Sink,
        labels: Labels | Targets | None = None,
        checkpoint: Checkpoint | None = None,
        *,
        clamp: bool = False,
    ) -> Answered:
        """Write an answer for every row to a sink.

        Parameters
        ----------
        answer : Answerer
        sink : Sink
        labels : Labels or Targets, optional
            What is known of training rows; without it rows are new.
        checkpoint : Checkpoint, optional
            Knows the blocks that need not be written again.
        clamp : bool
            Whether labelled rows keep exactly the labels they were given.
        """
        sweep = AnswerSweep(self.features, answer, labels, clamp)
        return sweep.run(self.engine, self.blocks, sink, checkpoint or Checkpoint())


def sweep_degrees(rows: TrainingRows, factor: FeatureMap) -> np.ndarray:
    """Column sums s of the features, from which every row's degree follows.  (r,)."""
    function = partial(_column_sums, factor=factor)
    (sums,) = rows.engine.sum_blocks(function, rows.blocks, label="degrees")
    return sums if factor.mixing is None else sums @ factor.mixing


def sweep_gram(graph: Graph, labels: Labels | Targets) -> GramSums:
    """H, B and t over all rows, with the mixing T that turns a row's features into theirs."""
    factor = graph.factor
    function = partial(_gram, features=graph.features, labels=labels)
    gram, targets, totals, repaired = graph.engine.sum_blocks(function, graph.blocks, label="Gram")
    remains_sparse = factor.unit_degrees and is_sparse_rank(factor.rank, len(labels.rows))
    if remains_sparse or sparse.issparse(gram):
        gram = sparse.csr_array(gram)
    if factor.unit_degrees:
        # Λ^(−1/2); a landmark that no row is tied to has no mass and says nothing.
        mixing = np.where(totals > 0, 1.0, 0.0) / np.sqrt(np.where(totals > 0, totals, 1.0))
    else:
        mixing = np.ones(len(totals)) if factor.mixing is None else factor.mixing
    counts, n_rows = labels.counts, labels.n_rows
    sums = GramSums(gram, targets, totals, counts, n_rows, int(repaired)).mixed(mixing)
    if sparse.issparse(sums.gram) and not remains_sparse:
        sums = replace(sums, gram=sums.gram.toarray())  # the last step: r × r numbers only once
    return sums


def _column_sums(block: Block, factor: FeatureMap) -> tuple[Array]:
    return (factor.block_sums(block),)


def _gram(block: Block, features: Features, labels: Labels | Targets) -> tuple[Any, ...]:
    rows, given = labels.targets_within(block.start, block.stop)
    found, gram, totals, repaired = features.summed(block, rows)
    if isinstance(found, RowEntries):
        targets = found.csr().T @ given
        if is_sparse_rank(features.factor.rank, len(labels.rows)):
            gram = to_csr(gram)  # where r × r numbers would be too many
    else:
        targets = found.T @ like(found, given)
    return gram, targets, totals, np.array(repaired)
