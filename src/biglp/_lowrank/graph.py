"""The three sweeps over the rows. Nothing else in biglp touches them all.

=========  ====  ==========================================  ======================
sweep      verb  a block gives                               together they give
=========  ====  ==========================================  ======================
degrees    sum   column sums of F                            s = Fᵀ1, so d_i = f_i·s
Gram       sum   F̄ᵀF̄, F̄ᵀY, F̄ᵀ1, rows repaired               H, B, t
labels     map   probabilities of its rows, to a sink        labels
=========  ====  ==========================================  ======================

An anchor graph has degrees of 1, so its first sweep is left out and the columns are scaled
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from biglp._answers.committee.decision import CommitteeDecision
from biglp._answers.spreading_answer import Decision
from biglp._core.arrays import (
    Array,
    column_sums,
    is_torch,
    largest_column,
    like,
    to_csr,
    to_numpy,
)
from biglp._core.blocks import Block
from biglp._core.checkpoint import Checkpoint, Journal, Tally
from biglp._engines import Engine
from biglp._labels.labels import Labels
from biglp._labels.targets import Measurements
from biglp._lowrank.base import Factor
from biglp._propagate.leave_one_out import LabelledRows
from biglp._propagate.normalise import Normalisation
from biglp._propagate.regression import RegressionDecision
from biglp._propagate.sums import GramSums, apply_mixing
from biglp._propagate.systems import is_sparse_rank

AnyLabels = TypeVar("AnyLabels", Labels, Measurements)
AnyDecision = Decision | CommitteeDecision | RegressionDecision
DENSE_GRAM = 128
"""Columns up to which a dense product is faster than a sparse one with its few entries a row."""


class Sink(Protocol):
    """Where the answers for each row go.

    Attributes
    ----------
    in_memory : bool
        Whether the answers stay in the memory of this process, which other processes cannot write.
    """

    in_memory: bool

    def write(self, start: int, probabilities: np.ndarray) -> None:
        """Take the class probabilities of the rows from ``start`` on."""

    def sync(self) -> None:
        """Make sure that what was taken survives a crash."""


@dataclass(frozen=True)
class Answered:
    """What the label sweep found, besides the answers in the sink.

    Attributes
    ----------
    n_unreached : int
        Rows that no label reaches.
    counts : dict of int to int
        Rows of each class code that occurs.
    """

    n_unreached: int
    counts: dict[int, int]


def sweep_degrees(engine: Engine, blocks: Sequence[Block], factor: Factor) -> np.ndarray:
    """Column sums s of the features, from which every row's degree follows.  (r,)."""
    (sums,) = engine.sum_blocks(partial(_column_sums, factor=factor), blocks, label="degrees")
    return sums if factor.mixing is None else apply_mixing(sums, factor.mixing)


def sweep_gram(
    engine: Engine,
    blocks: Sequence[Block],
    factor: Factor,
    normalisation: Normalisation,
    labels: Labels | Measurements,
) -> tuple[GramSums, np.ndarray]:
    """H, B and t over all rows, and the mixing T that turns a row's features into theirs."""
    function = partial(_gram, factor=factor, normalisation=normalisation, labels=labels)
    gram, targets, totals, repaired = engine.sum_blocks(function, blocks, label="Gram")
    remains_sparse = factor.unit_degrees and is_sparse_rank(factor.rank, len(labels.rows))
    if remains_sparse or sparse.issparse(gram):
        gram = sparse.csr_array(gram)
    sums = GramSums(gram, targets, totals, labels.counts, labels.n_rows, int(repaired))
    if factor.unit_degrees:
        # Λ^(−1/2); a landmark that no row is tied to has no mass and says nothing.
        mixing = np.where(totals > 0, 1.0, 0.0) / np.sqrt(np.where(totals > 0, totals, 1.0))
    else:
        mixing = np.ones(len(totals)) if factor.mixing is None else factor.mixing
    sums = sums.mixed(mixing)
    if sparse.issparse(sums.gram) and not remains_sparse:
        sums = replace(sums, gram=sums.gram.toarray())  # the last step: r × r numbers only once
    return sums, mixing


def labelled_rows(
    engine: Engine,
    blocks: Sequence[Block],
    factor: Factor,
    normalisation: Normalisation,
    labels: Labels,
    mixing: np.ndarray,
) -> LabelledRows:
    """Normalised features of all labelled rows in ``labels``."""
    features = labelled_features(engine, blocks, factor, normalisation, labels.rows, mixing)
    return LabelledRows(features, labels.codes, labels.given)


def labelled_features(
    engine: Engine,
    blocks: Sequence[Block],
    factor: Factor,
    normalisation: Normalisation,
    rows: np.ndarray,
    mixing: np.ndarray,
) -> Any:
    """Normalised features of some rows, whose numbers increase.  (l, r)."""
    holding = [block for block in blocks if len(_inside(rows, block))]
    function = partial(_labelled, factor=factor, normalisation=normalisation, rows=rows)
    parts = engine.map_blocks(function, holding, label="labelled rows")
    features = sparse.vstack(parts) if sparse.issparse(parts[0]) else np.concatenate(parts)
    return apply_mixing(features, mixing)


def float64_features(features: Array) -> Any:
    """Features of a few rows, from any device, for the small algebra; CSR remains CSR."""
    features = to_numpy(features)
    if sparse.issparse(features):
        return sparse.csr_array(features, dtype=np.float64)
    return np.asarray(features, dtype=np.float64)


def part_of_labels(labels: AnyLabels, max_rows: int, seed: int) -> AnyLabels:
    """Return the labels, or a random part of them."""
    if len(labels.rows) <= max_rows:
        return labels
    chosen = np.random.default_rng(seed).choice(len(labels.rows), max_rows, replace=False)
    chosen.sort()
    return labels.take(chosen)


def sweep_labels(
    engine: Engine,
    blocks: Sequence[Block],
    factor: Factor,
    normalisation: Normalisation,
    decision: AnyDecision,
    sink: Sink,
    labels: Labels | None = None,
    checkpoint: Checkpoint | None = None,
    *,
    clamp: bool = False,
) -> Answered:
    """Write every row's class probabilities, or values, to the sink.

    ``labels`` adds the labelled rows' own labels (training rows); without it the rows are new.
    With ``clamp`` labelled rows keep exactly the labels they were given.
    Blocks that the checkpoint knows to be written are not done again.
    """
    checkpoint = checkpoint or Checkpoint()
    finished = checkpoint.finished_blocks()
    journal = checkpoint.journal(sink.sync)
    collect = sink.in_memory and not engine.shares_memory
    function = partial(
        _label,
        factor=factor,
        normalisation=normalisation,
        decision=decision,
        labels=labels,
        sink=_Catch() if collect else sink,
        journal=journal,
        clamp=clamp,
    )
    todo = [block for block in blocks if block.start not in finished]
    if collect:
        return _total(_collected(engine, function, todo, sink))
    try:
        tallies = engine.map_blocks(function, todo, label="labels")
    finally:
        if journal is not None:
            journal.close()
    return _total([*tallies, *finished.values()])


def _collected(
    engine: Engine, function: Callable[..., Tally], blocks: Sequence[Block], sink: Sink
) -> list[Tally]:
    """Have the answers sent here from where they are made, and put them into the sink."""
    tallies = []
    found = engine.map_blocks(partial(_with_answers, function=function), blocks, label="labels")
    for block, (tally, answers) in zip(blocks, found, strict=True):
        sink.write(block.start, answers)
        tallies.append(tally)
    return tallies


class _Catch:
    """A sink for one block, on the worker."""

    in_memory = True

    def write(self, start: int, probabilities: np.ndarray) -> None:
        """Keep the answers."""
        self.answers = probabilities

    def sync(self) -> None:
        """Nothing to do."""


def _with_answers(block: Block, function: Callable[..., Tally]) -> tuple[Tally, np.ndarray]:
    catch = _Catch()
    return function(block, sink=catch), catch.answers


def _total(tallies: Sequence[Tally]) -> Answered:
    counts: dict[int, int] = {}
    for _, part in tallies:
        for code, count in part.items():
            counts[code] = counts.get(code, 0) + count
    return Answered(sum(unreached for unreached, _ in tallies), dict(sorted(counts.items())))


def _column_sums(block: Block, factor: Factor) -> tuple[Array]:
    return (column_sums(factor.block_features(block)),)


def normalised_features(
    block: Block, factor: Factor, normalisation: Normalisation
) -> tuple[Array, int]:
    """Normalised features of a block and its repaired rows; kept features are overwritten."""
    features = factor.block_features(block)
    repaired = block.memory.get("repaired")
    if repaired is not None:
        return features, repaired  # an earlier sweep has left them normalised
    features, repaired = normalisation.apply(features, in_place=factor.fresh_features)
    if factor.fresh_features and factor.store.in_place:
        block.memory["repaired"] = repaired
    return features, repaired


def _gram(
    block: Block, factor: Factor, normalisation: Normalisation, labels: Labels | Measurements
) -> tuple[Any, ...]:
    features, repaired = normalised_features(block, factor, normalisation)
    n_labelled = len(labels.rows)
    if sparse.issparse(features) and features.shape[1] <= DENSE_GRAM:
        features = features.toarray()
    elif is_torch(features) and factor.unit_degrees and is_sparse_rank(factor.rank, n_labelled):
        features = to_csr(features)  # a few entries a row, where r × r numbers would be too many
    rows, given = labels.targets_within(block.start, block.stop)
    targets = features[rows].T @ like(features, given)
    gram = features.T @ features  # the same array twice: BLAS does half the work
    return gram, targets, column_sums(features), np.array(repaired)


def _labelled(block: Block, factor: Factor, normalisation: Normalisation, rows: np.ndarray) -> Any:
    features, _ = normalised_features(block, factor, normalisation)
    return float64_features(features[_inside(rows, block)])


def _inside(rows: np.ndarray, block: Block) -> np.ndarray:
    """Those of increasing row numbers that are in a block, counted from its first row."""
    first, last = np.searchsorted(rows, [block.start, block.stop])
    return rows[first:last] - block.start


def _label(
    block: Block,
    factor: Factor,
    normalisation: Normalisation,
    decision: AnyDecision,
    labels: Labels | None,
    sink: Sink,
    journal: Journal | None,
    clamp: bool = False,
) -> Tally:
    rows = block.rows() if decision.needs_rows else None
    features, _ = normalised_features(block, factor, normalisation)
    if isinstance(decision, RegressionDecision):
        values, unreached = decision.values(features, rows)
        sink.write(block.start, decision.finish(to_numpy(values)))
        return unreached, {}
    own = labels.own(block.start, block.stop) if labels is not None else None
    probabilities, unreached = decision.probabilities(features, own, rows)
    probabilities = to_numpy(probabilities)
    if clamp and own is not None:
        probabilities[own.rows] = own.shares
    sink.write(block.start, probabilities)
    rows = np.bincount(largest_column(probabilities))
    codes = np.flatnonzero(rows)
    tally = unreached, dict(zip(codes.tolist(), rows[codes].tolist(), strict=True))
    if journal is not None:
        journal.note(block.start, tally)
    return tally
