"""Poisson learning: the class prior chosen by exact leave-one-out, and the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from biglp._algebra.balance import given_prior
from biglp._algebra.own_graph import OwnGraphSystem
from biglp._algebra.spreading import (
    SMALLEST_GAP,
    constant_mode,
    leave_one_out_poisson,
    mean_label,
    poisson_coefficients,
    without_noise,
)
from biglp._algebra.systems import DENSE_RANK, Spectrum, is_sparse_rank
from biglp._core.errors import ParameterError
from biglp._core.settings import AnswerSettings
from biglp._labels.labels import Labels
from biglp._learn.base import LearnResult, Method, Problem
from biglp._learn.spreading import (
    DEFAULT_PRIOR_POWER,
    PRIOR_POWERS,
    SpreadingPredictor,
    balance_weights,
    rows_to_choose_by,
    with_class_shares,
)


class PoissonMethod(Method):
    """Poisson learning, which asks for all eigenvectors of the graph."""

    @classmethod
    def check(cls, labels: Labels, settings: AnswerSettings, rank: int) -> None:
        """Refuse a graph whose eigenvectors are too many."""
        super().check(labels, settings, rank)
        if is_sparse_rank(rank, len(labels.rows)):
            raise ParameterError(
                f"filter='poisson' needs all eigenvectors of the graph, too many of them at a rank "
                f"of {rank:,}; use at most {DENSE_RANK:,} landmarks (n_landmarks), or "
                "filter='spreading'."
            )

    @classmethod
    def learn(cls, problem: Problem[Labels]) -> LearnResult:
        """Choose the prior, and solve."""
        if isinstance(problem.system, OwnGraphSystem):
            return _learn_on_graph(problem, problem.system)
        spectrum, labels, settings = (
            Spectrum.from_sums(problem.sums),
            problem.labels,
            problem.settings,
        )
        problem = _with_system(problem, spectrum)
        mode = constant_mode(spectrum, problem.graph.features.normalisation.column_sums)
        share = mean_label(labels.counts)
        candidates: list[dict[str, Any]] = []
        power = DEFAULT_PRIOR_POWER
        labelled = rows_to_choose_by(problem, open_alpha=False)
        if labelled is not None:
            scores = leave_one_out_poisson(spectrum, labelled, mode)
            targets = labelled.targets(labels.n_classes)
            automatic = replace(settings, class_balance="auto")
            for trial in PRIOR_POWERS:
                weights = balance_weights(automatic, labels, share, trial)
                best = (scores * weights).argmax(axis=1)[:, None]
                accuracy = np.take_along_axis(targets, best, axis=1).sum() / targets.sum()
                candidates.append({"prior_power": trial, "accuracy": float(accuracy)})
            chosen = max(candidates, key=lambda c: (round(c["accuracy"], 6), -c["prior_power"]))
            power = chosen["prior_power"]
        weights = balance_weights(settings, labels, share, power)
        coefficients = poisson_coefficients(spectrum, mode) * weights
        # Eigenvectors leave rounding errors where no label reaches; the solve leaves exact zeros.
        reached = np.asarray(spectrum.solved(0.5) != 0)
        coefficients = np.where(reached.any(axis=1, keepdims=True), coefficients, 0.0)
        unmixed = problem.sums.unmix(coefficients)
        unmixed = without_noise(unmixed, spectrum.sums, 1.0 - SMALLEST_GAP)
        report = {
            "filter": "poisson",
            "alpha": None,
            "prior_power": power,
            "leave_one_out_accuracy": max((c["accuracy"] for c in candidates), default=None),
            "candidates": candidates,
            "spectral_radius": spectrum.radius,
        }
        return LearnResult(_answer(problem, unmixed, weights), report)


def _learn_on_graph(problem: Problem[Labels], system: OwnGraphSystem) -> LearnResult:
    """Solve on a graph that was given. Leaving labels out would take a solve for each of them."""
    share = mean_label(problem.labels.counts)
    weights = balance_weights(problem.settings, problem.labels, share, DEFAULT_PRIOR_POWER)
    answer = _answer(problem, system.poisson() * weights, weights)
    report = {"filter": "poisson", "alpha": None, "prior_power": DEFAULT_PRIOR_POWER}
    return LearnResult(answer, {**report, "leave_one_out_accuracy": None, "candidates": []})


def _answer(
    problem: Problem[Labels], coefficients: np.ndarray, weights: np.ndarray
) -> SpreadingPredictor:
    """The answer of unmixed coefficients, already weighted."""
    settings, labels = problem.settings, problem.labels
    share = prior = mean_label(labels.counts)
    if not isinstance(settings.class_balance, str):
        prior = given_prior(settings.class_balance, labels.n_classes)
    answer = SpreadingPredictor(coefficients, weights, prior, own_shift=-share * weights)
    return with_class_shares(answer, problem) if settings.balances("share") else answer


def _with_system(problem: Problem[Labels], spectrum: Spectrum) -> Problem[Labels]:
    """The problem with all eigenvectors in place of what label spreading would do with."""
    problem = replace(problem)
    problem.__dict__["system"] = spectrum
    return problem
