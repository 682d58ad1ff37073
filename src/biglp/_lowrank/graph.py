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
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, Ties, like, to_csr
from biglp._core.blocks import Block
from biglp._engines import Engine
from biglp._files.runfolder import Checkpoint
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets
from biglp._lowrank.answering import Answered, Answerer, AnswerSweep
from biglp._lowrank.base import FeatureMap
from biglp._lowrank.features import Features, float64_features
from biglp._lowrank.rows import TrainingRows
from biglp._output import Sink
from biglp._propagate.normalise import Normalisation
from biglp._propagate.sums import GramSums
from biglp._propagate.systems import System, is_sparse_rank, take_apart
from biglp._rows import PreparedRows
from biglp._rows.source import sample_indices, sample_rows

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
    if isinstance(found, Ties):
        targets = found.csr().T @ given
        if is_sparse_rank(features.factor.rank, len(labels.rows)):
            gram = to_csr(gram)  # where r × r numbers would be too many
    else:
        targets = found.T @ like(found, given)
    return gram, targets, totals, np.array(repaired)
