"""``class_balance="share"``: an answer whose classes have the shares of the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from biglp._answers.base import Problem
from biglp._labels.labels import Labels
from biglp._lowrank.features import float64_features
from biglp._lowrank.sampling import sample_indices, sample_rows
from biglp._propagate.class_shares import share_offsets
from biglp._propagate.poisson import mean_label

if TYPE_CHECKING:
    from biglp._answers.spreading import SpreadingAnswer

SHARES_SAMPLE, AT_ONCE = 10_000, 2000
"""Rows that tell where the thresholds of the classes are, and those whose features are held."""


def with_class_shares(answer: SpreadingAnswer, problem: Problem[Labels]) -> SpreadingAnswer:
    """Move an answer's scores so that a sample of rows gets the class shares of the labels.

    √d is the constant mode of the graph, √d = F̄·s (:mod:`biglp._propagate.class_shares`).
    """
    column_sums = problem.graph.features.normalisation.column_sums
    mode = problem.sums.constant if column_sums is None else column_sums
    constant = problem.sums.unmix(mode[:, None])[:, 0]
    found = _of_sample(problem, np.column_stack([answer.coefficients, constant]))
    scores, roots = found[:, :-1], found[:, -1]
    known = roots > 0  # a row without features, or with a repaired degree, tells nothing
    if not known.any():
        return answer
    shares = mean_label(problem.labels.counts)
    offsets = share_offsets(scores[known] / roots[known, None], shares)
    return replace(answer, coefficients=answer.coefficients - np.outer(constant, offsets))


def _of_sample(problem: Problem[Labels], matrix: np.ndarray) -> np.ndarray:
    """Normalised features of a random sample of rows, times a matrix.  (p, q) → (b, q)."""
    graph, seed = problem.graph, problem.settings.seed
    if graph.factor.kept_with_blocks:
        chosen = sample_indices(graph.source.n_rows, SHARES_SAMPLE, seed)
        return np.asarray(graph.features_of(chosen) @ matrix)
    sample = sample_rows(graph.source, SHARES_SAMPLE, seed)
    parts = []
    for start in range(0, sample.shape[0], AT_ONCE):
        features = graph.features.of_rows(sample[start : start + AT_ONCE])
        parts.append(float64_features(features) @ matrix)
    return np.concatenate(parts)
