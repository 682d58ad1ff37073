"""Labels that are probably wrong count less: the committee learns twice where it has to.

What the committee says of labelled rows without their own labels tells how many labels are wrong,
and which (:mod:`biglp._labels.doubts`). Where that is a larger share than was expected before any
label was looked at, and it can be told which ones, each label's weight is multiplied by the
probability that it is right, and all members learn again. Else nothing is done: with good labels
there is little to win, and where classes overlap so far that wrong labels look like right ones,
lowering both loses more than it gains.

No label is taken away, so that no class is. Of more labels than are held out, the others keep their
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from biglp._answers.base import Learnt, Problem
from biglp._labels.doubts import LOOKED_AT_BEFORE, PROBABLY, WRONG_BEFORE, LabelDoubts, find_doubts
from biglp._labels.labels import Labels

EXPECTED = WRONG_BEFORE / LOOKED_AT_BEFORE
"""Share of wrong labels above which labels are lowered."""
LEAST_TOLD = 0.15
"""Share of the wrong labels that must be among those called so. Of 10 % wrong labels among 500 it
is about .1 on SUSY, .2 to .4 on tables, .6 on text and .9 on images."""
LEAST_LABELS = 100
"""Labels below which nothing is lowered: one that is unlike the others says little there."""
LEAST_TRUST = 0.01
"""Probability of being right that every label is left."""


def learn_robustly(problem: Problem[Labels], learn: Callable[[Problem[Labels]], Learnt]) -> Learnt:
    """Learn, and where too many labels seem to be wrong learn again with less trust in those."""
    learnt = learn(problem)
    doubts = _doubts(problem.labels, learnt)
    lowered = 0
    if doubts is not None and _worth_it(doubts):
        learnt = learn(with_less_trust(problem, doubts))
        lowered = doubts.n_probably_wrong
        doubts = _doubts(problem.labels, learnt)
    found = {
        "probably_wrong_labels": None if doubts is None else doubts.n_probably_wrong,
        "label_error_rate": None if doubts is None else doubts.error_rate,
        "labels_lowered": lowered,
    }
    return replace(learnt, report={**learnt.report, **found})


def with_less_trust(problem: Problem[Labels], doubts: LabelDoubts) -> Problem[Labels]:
    """The same problem, each label weighted by the probability that it is right."""
    labels = problem.labels
    weights = np.ones(len(labels.rows)) if labels.weights is None else labels.weights.copy()
    places = np.searchsorted(labels.rows, doubts.rows)
    weights[places] *= np.maximum(1.0 - doubts.wrong, LEAST_TRUST)
    lowered = replace(labels, weights=weights)
    before, after = labels.take(places), lowered.take(places)
    # B is linear in the weights. Nothing is withdrawn, so that no trace of it can be left behind.
    given = before.one_hot(before.codes) if before.given is None else before.given
    change = after.targets_within(0, after.n_rows)[1] - given
    targets = [
        view.sums.targets + np.asarray(view.mixed_features(after.rows).T @ change)
        for view in problem.views
    ]
    return problem.with_labels(lowered, targets)


def _worth_it(doubts: LabelDoubts) -> bool:
    """Whether labels seem to be wrong, and some of them can be named."""
    told = doubts.wrong[doubts.wrong > PROBABLY].sum() >= LEAST_TOLD * doubts.wrong.sum()
    enough = len(doubts.rows) >= LEAST_LABELS
    return bool(enough and told and doubts.error_rate > EXPECTED)


def _doubts(labels: Labels, learnt: Learnt) -> LabelDoubts | None:
    """What is thought of the labels that were held out; None where none could be."""
    held_out = learnt.held_out
    if held_out is None or not np.isfinite(held_out.shares).any():
        return None
    part = labels.take(np.searchsorted(labels.rows, held_out.rows))
    return find_doubts(part, held_out.shares)
