"""The graph W ≈ ΦΦᵀ over the rows of a source, and the sweeps that touch them all.

=========  ====  ==========================================  ======================
sweep      verb  a block gives                               together they give
=========  ====  ==========================================  ======================
degrees    sum   column sums of F                            s = Fᵀ1, so d_i = f_i·s
Gram       sum   F̄ᵀF̄, F̄ᵀY, F̄ᵀ1, rows repaired               H, B, t
answers    map   answers of its rows, to a sink              what is written
=========  ====  ==========================================  ======================

An anchor graph has degrees of 1, so its first sweep is left out and the columns are scaled
afterwards. A graph that the user gives needs neither (:mod:`.own`).
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
from biglp._compiled import native
from biglp._core.arrays import Array, Rows, like, to_device, to_numpy
from biglp._core.blocks import Block
from biglp._engines import Engine
from biglp._files.runfolder import Checkpoint, Journal, Tally
from biglp._graph.features import FeatureMap, Features, Normalisation, float64_features
from biglp._labels.labels import Labels, OwnLabels
from biglp._labels.targets import Targets
from biglp._output.sink import Sink
from biglp._rows.prepared import PreparedRows, Sample
from biglp._rows.source import take_rows

SAMPLED_AT_ONCE = 2000
"""Rows of a sample whose features are held."""


@dataclass(frozen=True)
class TrainingRows:
    """The training rows, ready for the sweeps: prepared, cut, with an engine to visit them."""

    engine: Engine
    source: PreparedRows  # scaled rows in the type of the arithmetic
    blocks: Sequence[Block]
    sample: Sample
    view: str = "rows"  # name of this view of the rows in checkpoints and model files


@dataclass(frozen=True)
class Graph:
    """Rows, the features that tie them together, and an engine to visit them."""

    engine: Engine
    source: PreparedRows
    blocks: Sequence[Block]
    features: Features
    sample: Sample
    view: str = "rows"  # name of this view of the rows
    # Whether its rows are similarities between pairs of rows, of which none can be shown.
    pairwise: ClassVar[bool] = False

    @classmethod
    def from_factor(
        cls, rows: TrainingRows, factor: FeatureMap, checkpoint: Checkpoint | None = None
    ) -> Graph:
        """Find the degrees of the training rows."""

        def sweep() -> dict[str, np.ndarray]:
            (sums,) = rows.engine.sum_blocks(factor.block_sums, rows.blocks, label="degrees")
            return {"column_sums": sums if factor.mixing is None else sums @ factor.mixing}

        n_rows = rows.source.n_rows
        normalisation = Normalisation(None, n_rows)
        if not factor.unit_degrees:
            degrees = (checkpoint or Checkpoint()).step(f"{rows.view}-degrees", sweep)
            normalisation = Normalisation(degrees["column_sums"], n_rows, factor.mixing)
        features = Features(factor, normalisation)
        return cls(rows.engine, rows.source, rows.blocks, features, rows.sample, rows.view)

    @property
    def factor(self) -> FeatureMap:
        return self.features.factor

    def sums(self, labels: Labels | Targets, checkpoint: Checkpoint | None = None) -> GramSums:
        """H, B and t over all rows, mixed; one sweep."""
        arrays = (checkpoint or Checkpoint()).step(
            f"{self.view}-gram", lambda: self._sweep_gram(labels).arrays()
        )
        return GramSums.from_arrays(arrays, labels.counts, labels.n_rows)

    def _sweep_gram(self, labels: Labels | Targets) -> GramSums:
        factor = self.factor
        remains_sparse = factor.unit_degrees and is_sparse_rank(factor.rank, len(labels.rows))
        function = partial(self.features.sums_of_block, labels=labels)
        gram, targets, totals, repaired = self.engine.sum_blocks(
            function, self.blocks, label="Gram"
        )
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
            sums = replace(sums, gram=sums.gram.toarray())  # at last: r × r numbers only once
        return sums

    def system(self, sums: GramSums, n_labelled: int, *, few_alphas: bool) -> System:
        """What solves with some sums of this graph for any α."""
        device, n_threads = self.source.device, self.engine.n_threads
        return take_apart(sums, n_labelled, device, n_threads, few_alphas=few_alphas)

    def targets_of(self, labels: Labels | Targets, mix: Callable[[Any], Any]) -> np.ndarray:
        """B of some labelled rows; ``mix`` is that of the sums.  (r, c)."""
        rows, given = labels.targets_within(0, labels.n_rows)
        return np.asarray(mix(self.features_of(rows)).T @ given)

    def features_of(self, rows: np.ndarray) -> Any:
        """Normalised features of rows by number, increasing, before mixing.  (l,) → (l, p)."""
        if not self.factor.kept_with_blocks:  # a few rows, wherever they are: not worth a sweep
            return float64_features(self.features.of_rows(self.take(rows)))
        bounds = np.searchsorted(rows, [block.start for block in self.blocks] + [rows.max() + 1])
        holding = [block for block, n in zip(self.blocks, np.diff(bounds), strict=True) if n > 0]
        function = partial(self.features.of_chosen, rows=rows)
        parts = self.engine.map_blocks(function, holding, label="labelled rows")
        return sparse.vstack(parts) if sparse.issparse(parts[0]) else np.concatenate(parts)

    def take(self, rows: np.ndarray) -> Rows:
        """Prepared rows by increasing numbers, from memory where they are there.  (l,) → (l, m)."""
        stored = self.sample.take(rows)
        if stored is not None:
            return to_device(stored, self.source.device)
        taken = self.source.take(rows)
        if self.source.device == "cpu":
            self.sample.remember(rows, taken)
        return taken

    def sample_rows(self, n: int) -> Rows:
        """The first n rows of the sample, prepared.  (n, m)."""
        if self.sample.keeps(n):
            return to_device(self.sample.prepared(n), self.source.device)
        return take_rows(self.source, self.sample.rows(n))

    def sample_features(self, n: int) -> Any:
        """Normalised features of the first n rows of the sample, in float64.  (n, p)."""
        if self.factor.kept_with_blocks:
            return self.features_of(self.sample.rows(n))
        return float64_features(self.features.of_rows(self.sample_rows(n)))

    def features_to_answer(self, rows: np.ndarray, taken: Rows) -> Array:
        """Normalised features of rows, by number and prepared, as the last sweep has them."""
        if self.factor.kept_with_blocks:
            return self.features_of(rows).astype(self.source.dtype)
        return self.features.of_rows(taken)

    def sample_products(self, size: int, matrix: np.ndarray) -> np.ndarray:
        """Normalised features of the first rows of the sample, times a matrix.  (p, q) → (b, q)."""
        if self.factor.kept_with_blocks:
            return np.asarray(self.sample_features(size) @ matrix)
        sample = self.sample_rows(size)
        parts = []
        for start in range(0, sample.shape[0], SAMPLED_AT_ONCE):
            features = self.features.of_rows(sample[start : start + SAMPLED_AT_ONCE])
            parts.append(float64_features(features) @ matrix)
        return np.concatenate(parts)

    def answer(
        self,
        answer: Answerer,
        sink: Sink,
        labels: Labels | Targets | None = None,
        checkpoint: Checkpoint | None = None,
        *,
        clamp: bool = False,
    ) -> Answered:
        """Write an answer for every row to a sink; without ``labels`` rows are new.

        Blocks that the checkpoint knows to be written are left alone.
        """
        sweep = AnswerSweep(self.features, answer, labels and labels.by_people, clamp)
        checkpoint = checkpoint or Checkpoint()
        finished = checkpoint.finished_blocks()
        todo = [block for block in self.blocks if block.start not in finished]
        tallies = list(finished.values())
        if sink.in_memory and not self.engine.shares_memory:
            # The answers are made elsewhere: they are sent here, and put into the sink.
            results = self.engine.map_blocks(sweep.write_block, todo, label="labels")
            for block, (tally, answers) in zip(todo, results, strict=True):
                sink.write(block.start, answers)
                tallies.append(tally)
        else:
            journal = checkpoint.journal(sink.sync)
            try:
                function = partial(sweep.write_block, sink=sink, journal=journal)
                tallies += self.engine.map_blocks(function, todo, label="labels")
            finally:
                if journal is not None:
                    journal.close()
        counts: dict[int, int] = {}
        for _, in_block in tallies:
            for code, count in in_block.items():
                counts[code] = counts.get(code, 0) + count
        return Answered(sum(unreached for unreached, _ in tallies), dict(sorted(counts.items())))


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
    """What the sweep has to tell, besides the answers in the sink."""

    n_unreached: int  # rows that no label reaches
    counts: dict[int, int]  # rows of each class code that occurs


@dataclass(frozen=True)
class AnswerSweep:
    """Answers block by block."""

    features: Features
    answer: Answerer
    labels: Labels | Targets | None = None  # of training rows, which add to their own answers
    clamp: bool = False  # whether labelled rows keep exactly the labels they were given

    def write_block(
        self, block: Block, sink: Sink | None = None, journal: Journal | None = None
    ) -> Any:
        """Write the answers of a block; return what is to be known about it.

        Without a sink the answers are returned beside it, in the memory of this process.
        """
        rows = block.rows() if self.answer.needs_rows else None
        features = self.features.of_block(block)[0]
        if self.features.factor.compiled and isinstance(features, np.ndarray):
            # Their products with a few columns go the way of the fit.
            native.check_can_run()
            features = features.view(native.Multiplied)
        own = None if self.labels is None else self.labels.own(block.start, block.stop)
        outputs, unreached = self.answer.outputs(features, rows, own)
        if sink is None or not sink.takes_tensors:
            outputs = to_numpy(outputs)
        answers = self.answer.finish(outputs)
        if self.clamp and own is not None:
            answers[own.rows, : own.shares.shape[1]] = like(answers, own.shares)
        tally: Tally = (unreached, self.answer.count(answers))
        if sink is None:
            return tally, answers
        sink.write(block.start, answers)
        if journal is not None:
            journal.note(block.start, tally)
        return tally
