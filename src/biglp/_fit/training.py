"""What ``fit`` leaves behind for later labels: the sums over all rows, and how rows are found.

H depends on the rows alone, B = F̄ᵀY on the labelled rows alone, and labelled rows are few. A new
label therefore costs the features of its own row and no sweep:

    B ← B + φ̄_i·y_iᵀ.

A corrected label is not subtracted from B, because the difference of rounded numbers is not zero
and a trace of a withdrawn label would spread; B is added up anew from all labelled rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biglp._answers.deciding import make_decision
from biglp._answers.spreading import check_prior
from biglp._engines import Engine
from biglp._engines.local import blas_threads_for
from biglp._fit.prepare import PreparedRows
from biglp._fit.settings import Settings
from biglp._labels.labels import Labels
from biglp._labels.merge import merged_labels
from biglp._lowrank.base import Factor
from biglp._lowrank.graph import float64_features, labelled_rows
from biglp._propagate.normalise import Normalisation
from biglp._propagate.sums import GramSums, apply_mixing

ROWS_AT_ONCE = 1000
"""Chosen rows that are fetched together; their dense features are r float64 numbers each."""
REMEMBERED_BYTES = 32
"""Remembered features of a row that are kept after ``fit``; larger ones are made again."""


@dataclass(frozen=True)
class Training:
    """The state of a fit between its sweeps.

    Attributes
    ----------
    rows : PreparedRows
        The training rows and their cut into blocks.
    factor, normalisation
        Rows to normalised features.
    labels : Labels
        All labels so far.
    settings : Settings
        The parameters that ``fit`` had.
    sums : GramSums
        H, B and t, mixed.
    mixing : ndarray
        T, from normalised features to those of the sums.
    """

    rows: PreparedRows
    factor: Factor
    normalisation: Normalisation
    labels: Labels
    settings: Settings
    sums: GramSums
    mixing: np.ndarray

    def relabelled(self, engine: Engine, rows: Any, values: Any) -> Training:
        """Return the training with the labels of some rows added, corrected or withdrawn."""
        labels, added = merged_labels(self.labels, rows, values)
        check_prior(labels, self.settings)
        targets = np.zeros((len(self.sums.totals), labels.n_classes))
        if added is None:
            added = labels
        else:
            targets[:, _new_codes(self.labels, labels)] = self.sums.targets
        for part, features in self.features_of(engine, added):
            targets += features.T @ _targets(part)
        return replace(self, labels=labels, sums=self.sums.with_labels(targets, labels.counts))

    def features_of(self, engine: Engine, labels: Labels) -> Iterator[tuple[Labels, Any]]:
        """Yield labelled rows, some at a time, with their mixed, normalised features."""
        for start in range(0, len(labels.rows), ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, len(labels.rows))
            part = labels.take(np.arange(start, stop))
            if self.factor.fresh_features:
                rows = self.rows.source.take(part.rows)
                features, _ = self.normalisation.apply(self.factor.features(rows))
                yield part, apply_mixing(float64_features(features), self.mixing)
            else:  # the features of a training row are with its block and nowhere else
                found = labelled_rows(
                    engine, self.rows.blocks, self.factor, self.normalisation, part, self.mixing
                )
                yield part, found.features

    def decide(self, engine: Engine) -> tuple[Any, dict[str, Any], int]:
        """Make the decision anew; no sweep."""
        with blas_threads_for(self.factor.rank):
            return make_decision(
                engine,
                self.rows,
                self.factor,
                self.normalisation,
                self.labels,
                self.settings,
                self.sums,
                self.mixing,
            )

    def tidied(self) -> Training:
        """Forget remembered features that would take much memory after the fit."""
        a_row = self.factor.stored_bytes_per_row(self.rows.source.dtype.itemsize)
        if self.factor.fresh_features and a_row > REMEMBERED_BYTES:
            for block in self.rows.blocks:
                block.memory.clear()
        return self


def _new_codes(before: Labels, after: Labels) -> np.ndarray:
    """Code that each class of ``before`` has in ``after``, which labels the same rows alike."""
    codes = np.empty(before.n_classes, dtype=np.int64)
    codes[before.codes] = after.codes[np.searchsorted(after.rows, before.rows)]
    return codes


def _targets(labels: Labels) -> np.ndarray:
    """Labelled rows of w·Y.  (l, c)."""
    given = labels.given
    return labels.one_hot(labels.codes) if given is None else given
