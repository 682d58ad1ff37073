"""Later labels, without another sweep over the features.

H depends on the rows alone, B = F̄ᵀY on the labelled rows alone, and labelled rows are few. A new
label therefore costs the features of its own row and no sweep:

    B ← B + φ̄_i·y_iᵀ.

A corrected label is not subtracted from B, because the difference of rounded numbers is not zero
and a trace of a withdrawn label would spread; B is added up anew from all labelled rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._labels.labels import Labels, merged_labels
from biglp._learn import METHODS
from biglp._learn.base import Problem, View

ROWS_AT_ONCE = 1000
"""Chosen rows that are fetched together; their dense features are r float64 numbers each."""
KEPT_BYTES = 32
"""Stored features of a row that are kept after ``fit``; larger ones are made again."""


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


def forget_features(problem: Problem[Labels]) -> None:
    """Forget copies of rows on a device, and stored features that would take much memory."""
    for graph in (view.graph for view in problem.views):
        graph.sample.let_go(after_fit=True)
        for block in graph.blocks:
            block.memory.pop("rows", None)
            stored = block.memory.get("features", ())
            if not stored or not graph.factor.store.stays(stored):
                continue
            if sum(array.nbytes for array in stored) > KEPT_BYTES * block.n_rows:
                block.memory.clear()
