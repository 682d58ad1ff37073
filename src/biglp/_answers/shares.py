"""``class_balance="share"``: an answer whose classes have the shares of the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from biglp._algebra.balance import share_offsets
from biglp._algebra.poisson import mean_label
from biglp._answers.base import Problem
from biglp._labels.labels import Labels

if TYPE_CHECKING:
    from biglp._answers.spreading import SpreadingAnswer

SHARES_SAMPLE = 10_000
"""Rows that tell where the thresholds of the classes are."""


def with_class_shares(answer: SpreadingAnswer, problem: Problem[Labels]) -> SpreadingAnswer:
    """Move an answer's scores so that a sample of rows gets the class shares of the labels.

    √d is the constant mode of the graph, √d = F̄·s (:mod:`biglp._algebra.balance`).
    """
    column_sums = problem.graph.features.normalisation.column_sums
    mode = problem.sums.constant if column_sums is None else column_sums
    constant = problem.sums.unmix(mode[:, None])[:, 0]
    matrix = np.column_stack([answer.coefficients, constant])
    found = problem.graph.sample_products(SHARES_SAMPLE, problem.settings.seed, matrix)
    scores, roots = found[:, :-1], found[:, -1]
    known = roots > 0  # a row without features, or with a repaired degree, tells nothing
    if not known.any():
        return answer
    shares = mean_label(problem.labels.counts)
    offsets = share_offsets(scores[known] / roots[known, None], shares)
    return replace(answer, coefficients=answer.coefficients - np.outer(constant, offsets))
