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
from biglp._core.size import Cost, Size
from biglp._labels.labels import Labels
from biglp._learn.base import EIGENVECTORS, LearnResult, Method, Problem
from biglp._learn.spreading import (
    DEFAULT_PRIOR_POWER,
    PRIOR_POWERS,
    SpreadingPredictor,
    balance_weights,
    rows_to_choose_by,
    share_found,
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
    def cost(cls, size: Size) -> Cost:
        return super().cost(size)._replace(fixed=EIGENVECTORS * 8 * size.rank**2)

    @classmethod
    def learn(cls, problem: Problem[Labels]) -> LearnResult:
        """Choose the prior, and solve."""
        settings, labels, sums = problem.settings, problem.labels, problem.sums
        share, power = mean_label(labels.counts), DEFAULT_PRIOR_POWER
        candidates: list[dict[str, Any]] = []
        radius = {}
        if isinstance(problem.system, OwnGraphSystem):
            # On a graph that was given, leaving labels out would take a solve for each of them.
            weights = balance_weights(settings, labels, share, power)
            coefficients = problem.system.poisson() * weights
        else:
            # All eigenvectors, in place of what label spreading would do with.
            spectrum = Spectrum.from_sums(sums)
            problem = replace(problem)
            problem.__dict__["system"] = spectrum
            mode = constant_mode(spectrum, problem.graph.features.normalisation.column_sums)
            labelled = rows_to_choose_by(problem, open_alpha=False)
            if labelled is not None:
                scores = leave_one_out_poisson(spectrum, labelled, mode)
                targets = labelled.targets(labels.n_classes)
                automatic = replace(settings, class_balance="auto")
                for trial in PRIOR_POWERS:
                    weights = balance_weights(automatic, labels, share, trial)
                    right = share_found(scores * weights, targets)
                    candidates.append({"prior_power": trial, "accuracy": right})
                chosen = max(candidates, key=lambda c: (round(c["accuracy"], 6), -c["prior_power"]))
                power = chosen["prior_power"]
            weights = balance_weights(settings, labels, share, power)
            coefficients = poisson_coefficients(spectrum, mode) * weights
            # Eigenvectors leave rounding errors where no label reaches; the solve has exact zeros.
            reached = np.asarray(spectrum.solved(0.5) != 0)
            coefficients = np.where(reached.any(axis=1, keepdims=True), coefficients, 0.0)
            coefficients = without_noise(sums.unmix(coefficients), sums, 1.0 - SMALLEST_GAP)
            radius = {"spectral_radius": spectrum.radius}
        prior = share
        if settings.balance == "given":
            prior = given_prior(settings.class_balance, labels.n_classes)
        answer = SpreadingPredictor(coefficients, weights, prior, own_shift=-share * weights)
        if settings.balance == "share":
            answer = with_class_shares(answer, problem)
        report = {
            "filter": "poisson",
            "alpha": None,
            "prior_power": power,
            "leave_one_out_accuracy": max((c["accuracy"] for c in candidates), default=None),
            "candidates": candidates,
            **radius,
        }
        return LearnResult(answer, report)
