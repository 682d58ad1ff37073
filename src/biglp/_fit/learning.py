"""Learning: from sums to an answer, without a sweep over the rows."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from biglp._core.memory import give_back
from biglp._core.threads import blas_threads_for
from biglp._learn import METHODS
from biglp._learn.base import Learnt, Problem


def learn(problem: Problem[Any]) -> Learnt:
    """Learn the answer to a problem."""
    factor, is_sparse = problem.graph.factor, sparse.issparse(problem.sums.gram)
    if is_sparse:
        give_back()  # what summing took is wanted for factors now
    # Factors are made side by side: with one thread each, for the same bits in any number of them.
    factorised = factor.unit_degrees and problem.settings.few_alphas
    with blas_threads_for(0 if is_sparse or factorised else factor.rank):
        return METHODS[problem.settings.method].learn(problem)
