"""Choosing α and the class prior by exact leave-one-out on the labelled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biglp._answers.spreading_answer import Decision
from biglp._fit.settings import Settings
from biglp._labels.labels import Labels
from biglp._propagate.class_balance import class_mass, given_prior, power_prior
from biglp._propagate.closed_form import solve, without_noise
from biglp._propagate.iteration import iterate
from biglp._propagate.leave_one_out import LabelledRows, leave_one_out
from biglp._propagate.poisson import centred, mean_label
from biglp._propagate.sums import apply_mixing
from biglp._propagate.systems import DenseSystem, Graph

ALPHAS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
DEFAULT_ALPHA = 0.99
PRIOR_POWERS = (0.0, 0.5, 1.0)
DEFAULT_PRIOR_POWER = 0.0
LABELS_TO_CHOOSE = 3
"""Labels that every class needs before leave-one-out is worth asking."""
NO_WEIGHTS = ("none", "centre", "share")
"""Class balances that put no factor on the columns of F."""
MAX_LABELLED = 5000
"""Labelled rows that leave-one-out looks at; more change nothing and cost time."""


@dataclass(frozen=True)
class Choice:
    """α and the prior power, with the leave-one-out accuracy of every candidate."""

    alpha: float
    prior_power: float | None
    accuracy: float | None = None
    candidates: tuple[dict[str, Any], ...] = ()

    def describe(self) -> dict[str, Any]:
        """Facts for the report."""
        return {
            "alpha": self.alpha,
            "prior_power": self.prior_power,
            "leave_one_out_accuracy": self.accuracy,
            "candidates": list(self.candidates),
        }


def choose(
    spectrum: Graph, labels: Labels, labelled: LabelledRows | None, settings: Settings
) -> Choice:
    """Choose α and the class prior where the user has not."""
    alphas = ALPHAS if settings.alpha is None else (settings.alpha,)
    powers = PRIOR_POWERS if _is(settings.class_balance, "auto") else (DEFAULT_PRIOR_POWER,)
    if _is(settings.class_balance, "share"):
        # Thresholds come from all rows; for choosing α, class mass with the same prior will do.
        settings, powers = replace(settings, class_balance="mass"), (1.0,)
    fixed = Choice(settings.alpha or DEFAULT_ALPHA, DEFAULT_PRIOR_POWER)
    if labelled is None or len(alphas) * len(powers) == 1:
        return fixed
    candidates = []
    targets = labelled.targets(labels.n_classes)
    for alpha in alphas:
        scores, masses = leave_one_out(spectrum, labelled, alpha)
        if _is(settings.class_balance, "centre"):
            scores = centred(scores, labels.counts - targets)
        for power in powers:
            weights = balance_weights(settings, labels, masses, power)
            best = (scores * weights).argmax(axis=1)[:, None]
            accuracy = np.take_along_axis(targets, best, axis=1).sum() / targets.sum()
            candidates.append({"alpha": alpha, "prior_power": power, "accuracy": accuracy})
    return _best(candidates)


def wants_leave_one_out(labels: Labels, settings: Settings) -> bool:
    """Whether there is something to choose and enough labels to choose by."""
    open_alpha = settings.alpha is None and settings.filter != "poisson"
    open_questions = open_alpha or _is(settings.class_balance, "auto")
    return open_questions and int(labels.rows_each.min()) >= LABELS_TO_CHOOSE


def check_prior(labels: Labels, settings: Settings) -> None:
    """Refuse a class prior that does not fit the classes, before any row is read."""
    if not isinstance(settings.class_balance, str):
        given_prior(settings.class_balance, labels.n_classes)


def decide(
    spectrum: Graph,
    labels: Labels,
    choice: Choice,
    settings: Settings,
    mixing: np.ndarray,
) -> tuple[Decision, int]:
    """Propagate with the chosen α and balance the classes; also return the iterations used.

    ``mixing`` goes into the coefficients, so that the label sweep works on features as they come.
    """
    alpha = choice.alpha
    coefficients, n_iter = spread(spectrum, alpha, settings)
    mass = class_mass(spectrum.sums.totals, coefficients, labels.counts, alpha)
    power = DEFAULT_PRIOR_POWER if choice.prior_power is None else choice.prior_power
    weights = balance_weights(settings, labels, mass, power)
    prior = power_prior(labels.counts, 1.0)
    if not isinstance(settings.class_balance, str):
        prior = given_prior(settings.class_balance, labels.n_classes)
    shift = np.zeros(1)
    if _is(settings.class_balance, "centre"):
        coefficients = centred(coefficients, labels.counts)
        shift = (alpha - 1.0) * mean_label(labels.counts)
    unmixed = apply_mixing((coefficients * weights).T, mixing.T).T
    unmixed = without_noise(unmixed, spectrum.sums, alpha)
    return Decision(unmixed, (1.0 - alpha) * weights, prior, shift), n_iter


def spread(spectrum: Graph, alpha: float, settings: Settings) -> tuple[np.ndarray, int]:
    """Label spreading by the chosen solver: coefficients C and the iterations used."""
    if settings.solver == "iterative":
        return iterate(
            spectrum.sums, alpha, spectrum.radius, max_iter=settings.max_iter, tol=settings.tol
        )
    if isinstance(spectrum, DenseSystem):  # leave-one-out wants the same Cholesky factor
        return spectrum.coefficients(alpha), 1
    return solve(spectrum.sums, alpha, spectrum.radius), 1


def balance_weights(
    settings: Settings, labels: Labels, mass: np.ndarray, power: float
) -> np.ndarray:
    """Factor of each class's column; the largest is 1.  (..., c) → (..., c)."""
    if isinstance(settings.class_balance, str) and settings.class_balance in NO_WEIGHTS:
        return np.ones_like(mass)
    if isinstance(settings.class_balance, str):
        prior = power_prior(labels.counts, power)
    else:
        prior = given_prior(settings.class_balance, labels.n_classes)
    weights = prior / np.maximum(mass, np.finfo(np.float64).tiny)
    return weights / weights.max(axis=-1, keepdims=True)


def _best(candidates: list[dict[str, Any]]) -> Choice:
    """Most accurate candidate; among equals the one nearest the defaults."""
    best = max(
        candidates,
        key=lambda candidate: (
            round(candidate["accuracy"], 6),
            -abs(candidate["prior_power"] - DEFAULT_PRIOR_POWER),
            -abs(np.log((1 - candidate["alpha"]) / (1 - DEFAULT_ALPHA))),
        ),
    )
    for candidate in candidates:
        candidate["accuracy"] = float(candidate["accuracy"])
    return Choice(best["alpha"], best["prior_power"], best["accuracy"], tuple(candidates))


def _is(value: Any, name: str) -> bool:
    return isinstance(value, str) and value == name
