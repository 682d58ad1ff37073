"""Later labels and withheld ones, learnt without another sweep over the features.

H depends on the rows alone, B = F̄ᵀY on the labelled rows alone, and labelled rows are few. A new
label therefore costs the features of its own row and no sweep:

    B ← B + φ̄_i·y_iᵀ.

A corrected label is not subtracted from B, because the difference of rounded numbers is not zero
and a trace of a withdrawn label would spread; B is added up anew from all labelled rows.

A fit leaves behind what is said of labelled rows without their own labels, of at most a few
thousand (:class:`biglp._learn.base.HeldOut`). To say which labels are probably wrong, the others,
and all of them where the method holds none out, are withheld in folds: the method learns from
labels outside the fold, on the graph of the fit, and the fold's rows are asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import to_numpy
from biglp._core.memory import give_back
from biglp._core.threads import blas_threads_for
from biglp._labels.doubts import LabelDoubts, find_doubts
from biglp._labels.labels import Labels, merged_labels
from biglp._learn import METHODS
from biglp._learn.base import HeldOut, LearnResult, Problem, View

ROWS_AT_ONCE = 1000
"""Chosen rows that are fetched together; their dense features are r float64 numbers each."""
MOST_LEARNT = 20_000
"""Labels that are learnt from while others are withheld."""
WITHHELD = 0.2
"""Share of the labels that is withheld at once, where they are no more than those learnt from."""


def learn(problem: Problem[Any]) -> LearnResult:
    """Learn the answer to a problem: from sums, without a sweep over the rows."""
    factor, is_sparse = problem.graph.factor, sparse.issparse(problem.sums.gram)
    if is_sparse:
        give_back()  # what summing took is wanted for factors now
    # Factors are made side by side: with one thread each, for the same bits in any number of them.
    factorised = factor.unit_degrees and problem.settings.few_alphas
    with blas_threads_for(0 if is_sparse or factorised else factor.rank):
        return METHODS[problem.settings.method].learn(problem)


def relabelled(problem: Problem[Labels], rows: Any, values: Any) -> Problem[Labels]:
    """Return the problem with the labels of some rows added, corrected or withdrawn."""
    before = problem.labels
    labels, added = merged_labels(before, rows, values)
    METHODS[problem.settings.method].check(labels, problem.settings, problem.graph.factor.rank)
    if added is None:
        return with_only(problem, labels)
    # The code that each class of ``before`` has in ``labels``, which label the same rows alike.
    codes = np.empty(before.n_classes, dtype=np.int64)
    codes[before.codes] = labels.codes[np.searchsorted(labels.rows, before.rows)]
    targets = [targets_of(view, added) for view in problem.views]
    for view, of_view in zip(problem.views, targets, strict=True):
        of_view[:, codes] += view.sums.targets
    return problem.with_labels(labels, targets)


def with_only(problem: Problem[Labels], labels: Labels) -> Problem[Labels]:
    """The same graph with other labels of its rows, added up anew."""
    return problem.with_labels(labels, [targets_of(view, labels) for view in problem.views])


def targets_of(view: View, labels: Labels) -> np.ndarray:
    """B of some labels; their rows are fetched, a few at a time.  (r, c)."""
    targets = np.zeros((len(view.sums.totals), labels.n_classes))
    for start in range(0, len(labels.rows), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, len(labels.rows))
        part = labels.take(np.arange(start, stop))
        targets += view.graph.targets_of(part, view.sums.mix)
    return targets


def known_doubts(labels: Labels, held_out: HeldOut | None) -> LabelDoubts | None:
    """Judge the labels that a fit has held out; None where it has held none out."""
    if held_out is None:
        return None
    indices = np.searchsorted(labels.rows, held_out.rows)
    return find_doubts(labels.take(indices), held_out.shares)


def check_labels(problem: Problem[Labels], held_out: HeldOut | None) -> LabelDoubts:
    """Judge every label that another label of its classes is left without."""
    labels, graph, seed = problem.labels, problem.graph, problem.settings.seed
    # Class probabilities of all labelled rows without their own labels; NaN where unknown.
    probabilities = np.full((len(labels.rows), labels.n_classes), np.nan)
    done = np.zeros(len(labels.rows), dtype=bool)
    if held_out is not None:
        indices = np.searchsorted(labels.rows, held_out.rows)
        probabilities[indices], done[indices] = held_out.shares, True
    for fold in folds(labels, np.flatnonzero(~done), seed):
        learnt_from, judged = split(labels, fold, seed)
        if not len(judged):
            continue
        answer = learn(with_only(problem, labels.take(learnt_from))).answer
        for start in range(0, len(judged), ROWS_AT_ONCE):
            piece = judged[start : start + ROWS_AT_ONCE]
            rows = labels.rows[piece]
            features = graph.features_of(rows).astype(graph.source.dtype)
            prepared = to_numpy(graph.take(rows)) if answer.needs_rows else None
            probabilities[piece] = to_numpy(answer.outputs(features, prepared)[0])
    return find_doubts(labels, probabilities)


def folds(labels: Labels, places: np.ndarray, seed: int) -> list[np.ndarray]:
    """Cut labels to be withheld into folds that have a part of every class each.

    At least two, so that labels of a class with several of them are never withheld together.
    """
    n_labels = len(labels.rows)
    most = max(WITHHELD * n_labels, n_labels - MOST_LEARNT)
    n_folds = max(2, int(np.ceil(len(places) / most)))
    rng = np.random.default_rng(seed)
    mixed = places[rng.permutation(len(places))]
    # Dealt out like cards, class after class: no fold gets two of a class before all have one.
    mixed = mixed[np.argsort(labels.codes[mixed], kind="stable")]
    dealt = (np.sort(mixed[start::n_folds]) for start in range(n_folds))
    return [fold for fold in dealt if len(fold)]


def split(labels: Labels, fold: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels to learn from while a fold is withheld, and those of the fold that can be judged.

    Every class keeps a label: the only ones of a class are learnt from and not judged.
    """
    stays = np.setdiff1d(np.arange(len(labels.rows)), fold, assume_unique=True)
    if len(stays) > MOST_LEARNT:
        rng = np.random.default_rng(seed)
        mixed = stays[rng.permutation(len(stays))]
        _, first = np.unique(labels.codes[mixed], return_index=True)
        stays = np.unique(np.concatenate([mixed[first], mixed[:MOST_LEARNT]]))
    missing = labels.take(stays).counts <= 0
    if missing.any():
        shares = labels.own(0, labels.n_rows).shares
        needed = np.flatnonzero((shares[:, missing] > 0).any(axis=1))
        stays, fold = np.union1d(stays, needed), np.setdiff1d(fold, needed)
    return stays, fold
