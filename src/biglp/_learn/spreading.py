"""Label spreading: α and the class prior chosen by exact leave-one-out on the labelled rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biglp._algebra.balance import class_mass, given_prior, power_prior, share_offsets
from biglp._algebra.spreading import LabelledRows, centred, leave_one_out, mean_label, without_noise
from biglp._compiled import gpu as fused
from biglp._core.arrays import Array, Rows, like, namespace
from biglp._core.settings import AnswerSettings
from biglp._labels.labels import Labels, OwnLabels
from biglp._learn.base import LearnResult, Method, Predictor, Problem, part_of_labels

ALPHAS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
DEFAULT_ALPHA = 0.99
PRIOR_POWERS = (0.0, 0.5, 1.0)
DEFAULT_PRIOR_POWER = 0.0
LABELS_TO_CHOOSE = 3
"""Labels that every class needs before leave-one-out can choose."""
NO_WEIGHTS = ("none", "centre", "share")
"""Class balances that put no factor on the columns of F."""


@dataclass(frozen=True)
class SpreadingPredictor(Predictor):
    """Class probabilities from scores of any sign."""

    # (p, c): c · diag(weights): features times this are the balanced scores of unlabelled rows
    coefficients: np.ndarray
    # (c,): what a labelled row's own label adds to its class: (1−α) · weights
    own_label: np.ndarray
    prior: np.ndarray  # (c,): class probabilities of a row that nothing reaches
    # (c,) or (1,): what a labelled row's own label adds to all classes, where labels are centred
    own_shift: np.ndarray = field(default_factory=lambda: np.zeros(1))

    kind = "spreading"

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """Class probabilities of a block of rows; those that no label reaches have the prior."""
        labelled = None if own is None or not len(own.rows) else own
        fast = fused.shares(features, self.coefficients, self.prior)
        if fast is None:
            scores = features @ like(features, self.coefficients)
            if labelled is not None:
                scores[labelled.rows] += like(scores, self._added(labelled))
            return as_probabilities(scores, self.prior)
        answers, n_unreached = fast
        if labelled is not None:  # a few rows, once more
            scores = features[labelled.rows] @ like(features, self.coefficients)
            n_unreached -= as_probabilities(scores, self.prior)[1]
            scores += like(scores, self._added(labelled))
            answers[labelled.rows], n_left = as_probabilities(scores, self.prior)
            n_unreached += n_left
        return answers, n_unreached

    def _added(self, own: OwnLabels) -> np.ndarray:
        """What labelled rows' own labels add to their scores.  (l, c)."""
        added = (own.shares * self.own_label + self.own_shift) * own.weights[:, None]
        return np.asarray(added)


def as_probabilities(scores: Array, prior: np.ndarray) -> tuple[Array, int]:
    """Turn scores of any sign into rows that add up to 1; also count rows that have no score.

    A score below zero says "unlike every label of this class" and counts as zero, unless a row has
    no other. ``prior`` is what rows without any score get.
    """
    xp = namespace(scores)
    signed, scores = scores, scores.clip(min=0)
    totals = scores @ xp.ones_like(scores[0])
    # A total so small that its reciprocal overflows tells as little as none at all.
    smallest = xp.finfo(scores.dtype).tiny
    doubtful = ~(totals > smallest)
    n_unreached = 0
    if bool(doubtful.any()):
        # Unlike all of them, and then to be compared; or no score at all.
        part = signed[doubtful]
        part = part - xp.amin(part, 1)[:, None]
        sums = part @ xp.ones_like(part[0])
        unreached = ~(sums > smallest)
        n_unreached = int(unreached.sum())
        part[unreached] = like(scores, prior)
        sums[unreached] = 1.0
        scores[doubtful], totals[doubtful] = part, sums
    scores *= (1.0 / totals)[:, None]
    return scores, n_unreached


class SpreadingMethod(Method):
    """Label spreading at one α."""

    @classmethod
    def learn(cls, problem: Problem[Labels]) -> LearnResult:
        """Choose α and the class prior where the user has not, propagate, balance the classes."""
        settings, labels, sums = problem.settings, problem.labels, problem.sums
        alphas = ALPHAS if settings.alpha is None else (settings.alpha,)
        powers: tuple[float, ...] = (DEFAULT_PRIOR_POWER,)
        trial = settings
        if settings.balance == "auto":
            powers = PRIOR_POWERS
        elif settings.balance == "share":
            # Thresholds come from all rows; for choosing α, class mass with the same prior will do.
            powers, trial = (1.0,), replace(settings, class_balance="mass")
        labelled = rows_to_choose_by(problem, settings.alpha is None)
        candidates: list[dict[str, Any]] = []
        best = {"alpha": settings.alpha or DEFAULT_ALPHA, "prior_power": DEFAULT_PRIOR_POWER}
        if labelled is not None and len(alphas) * len(powers) > 1:
            targets = labelled.targets(labels.n_classes)
            for alpha in alphas:
                scores, masses = leave_one_out(problem.system, labelled, alpha)
                if settings.balance == "centre":
                    scores = centred(scores, labels.counts - targets)
                for power in powers:
                    found = scores * balance_weights(trial, labels, masses, power)
                    right = share_found(found, targets)
                    candidates.append({"alpha": alpha, "prior_power": power, "accuracy": right})
            # Among equals the one nearest the defaults.
            best = max(
                candidates,
                key=lambda candidate: (
                    round(candidate["accuracy"], 6),
                    -abs(candidate["prior_power"] - DEFAULT_PRIOR_POWER),
                    -abs(np.log((1 - candidate["alpha"]) / (1 - DEFAULT_ALPHA))),
                ),
            )

        alpha = best["alpha"]
        coefficients, n_iter = problem.spread(alpha)
        mass = class_mass(labels.counts, sums.totals @ coefficients, alpha)
        weights = balance_weights(settings, labels, mass, best["prior_power"])
        prior = power_prior(labels.counts, 1.0)
        if settings.balance == "given":
            prior = given_prior(settings.class_balance, labels.n_classes)
        shift = np.zeros(1)
        if settings.balance == "centre":
            coefficients = centred(coefficients, labels.counts)
            shift = (alpha - 1.0) * mean_label(labels.counts)
        unmixed = without_noise(sums.unmix(coefficients * weights), sums, alpha)
        answer = SpreadingPredictor(unmixed, (1.0 - alpha) * weights, prior, shift)
        if settings.balance == "share":
            answer = with_class_shares(answer, problem)
        report = {
            "alpha": alpha,
            "prior_power": best["prior_power"],
            "leave_one_out_accuracy": best.get("accuracy"),
            "candidates": candidates,
            "spectral_radius": problem.system.radius,
        }
        return LearnResult(answer, report, n_iter)


def share_found(scores: np.ndarray, targets: np.ndarray) -> float:
    """Share of the labels that are the largest score of their row; targets are w·Y.  (l, c)."""
    best = scores.argmax(axis=1)[:, None]
    return float(np.take_along_axis(targets, best, axis=1).sum() / targets.sum())


def rows_to_choose_by(problem: Problem[Labels], open_alpha: bool) -> LabelledRows | None:
    """Labelled rows for leave-one-out; None where nothing is to be chosen, or labels are few."""
    if not open_alpha and problem.settings.balance != "auto":
        return None
    if int(problem.labels.rows_each.min()) < LABELS_TO_CHOOSE:
        return None
    most = problem.system.most_labelled
    if not most:  # nothing can be told from the few labels that there is time for in a large graph
        return None
    return problem.labelled(part_of_labels(problem.labels, most, problem.settings.seed))


def balance_weights(
    settings: AnswerSettings, labels: Labels, mass: np.ndarray, power: float
) -> np.ndarray:
    """Factor of each class's column; the largest is 1.  (..., c) → (..., c)."""
    if settings.balance in NO_WEIGHTS:
        return np.ones_like(mass)
    if settings.balance != "given":
        prior = power_prior(labels.counts, power)
    else:
        prior = given_prior(settings.class_balance, labels.n_classes)
    weights = prior / np.maximum(mass, np.finfo(np.float64).tiny)
    return weights / weights.max(axis=-1, keepdims=True)


# --------------------------------------------------------------------------------------------------
# ``class_balance="share"``: an answer whose classes have the shares of the labels.


SHARES_SAMPLE = 10_000
"""Rows that tell where the thresholds of the classes are."""


def with_class_shares(answer: SpreadingPredictor, problem: Problem[Labels]) -> SpreadingPredictor:
    """Move an answer's scores so that a sample of rows gets the class shares of the labels.

    √d is the constant mode of the graph, √d = F̄·s (:mod:`biglp._algebra.balance`).
    """
    column_sums = problem.graph.features.normalisation.column_sums
    mode = problem.sums.constant if column_sums is None else column_sums
    constant = problem.sums.unmix(mode[:, None])[:, 0]
    matrix = np.column_stack([answer.coefficients, constant])
    products = problem.graph.sample_products(SHARES_SAMPLE, matrix)
    scores, roots = products[:, :-1], products[:, -1]
    known = roots > 0  # a row without features, or with a repaired degree, tells nothing
    if not known.any():
        return answer
    shares = mean_label(problem.labels.counts)
    offsets = share_offsets(scores[known] / roots[known, None], shares)
    return replace(answer, coefficients=answer.coefficients - np.outer(constant, offsets))
