"""Which given labels are probably wrong, of all labels that can be looked at.

A fit leaves behind what is said of labelled rows without their own labels, of at most a few
thousand (:class:`biglp._learn.base.HeldOut`). The other labels, and all of them where the method
holds none out, are withheld in folds: the method learns from labels outside the fold, on the graph
of the fit, and the fold's rows are asked. No sweep over the rows.
"""

from __future__ import annotations

import numpy as np

from biglp._core.arrays import to_numpy
from biglp._fit.pipeline import Pipeline, learn
from biglp._fit.prepare import Prepared
from biglp._fit.update import ROWS_AT_ONCE, with_only
from biglp._labels.doubts import LabelDoubts, find_doubts
from biglp._labels.labels import Labels
from biglp._learn.base import HeldOut, Problem
from biglp._rows.source import explained

MOST_LEARNT = 20_000
"""Labels that are learnt from while others are withheld."""
WITHHELD = 0.2
"""Share of the labels that is withheld at once, where they are no more than those learnt from."""


def fit_and_check(pipeline: Pipeline, prepared: Prepared, labels: Labels) -> LabelDoubts:
    """Go the way of a fit up to the answer, and judge its labels instead of labelling all rows."""
    with explained(prepared.source):
        problem = pipeline.problem(pipeline.graphs(prepared), labels)
        return check_labels(problem, pipeline.learn(problem).held_out)


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
