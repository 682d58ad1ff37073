"""Poisson learning: choosing the class prior by exact leave-one-out, and the decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._answers.spreading import DEFAULT_PRIOR_POWER, NO_WEIGHTS, PRIOR_POWERS
from biglp._answers.spreading_answer import Decision
from biglp._fit.settings import Settings
from biglp._labels.labels import Labels
from biglp._propagate.class_balance import given_prior, power_prior
from biglp._propagate.closed_form import solve, without_noise
from biglp._propagate.filters import SMALLEST_GAP
from biglp._propagate.leave_one_out import LabelledRows
from biglp._propagate.poisson import leave_one_out_poisson, mean_label, poisson_coefficients
from biglp._propagate.sums import apply_mixing
from biglp._propagate.systems import Spectrum


def decide_by_poisson(
    spectrum: Spectrum,
    mode: np.ndarray,
    labels: Labels,
    labelled: LabelledRows | None,
    settings: Settings,
    mixing: np.ndarray,
) -> tuple[Decision, dict[str, Any]]:
    """Return the decision and what was chosen.

    Parameters
    ----------
    spectrum : Spectrum
    mode : ndarray of shape (r,)
        The constant mode.
    labels : Labels
    labelled : LabelledRows or None
        What leave-one-out looks at, where the prior is to be chosen.
    settings : Settings
    mixing : ndarray
        From a row's features to those of the spectrum.
    """
    candidates: list[dict[str, Any]] = []
    power = DEFAULT_PRIOR_POWER
    if labelled is not None:
        candidates = _candidates(spectrum, mode, labels, labelled)
        best = max(candidates, key=lambda c: (round(c["accuracy"], 6), -c["prior_power"]))
        power = best["prior_power"]
    weights = class_weights(settings, labels, power)
    coefficients = poisson_coefficients(spectrum, mode) * weights
    # Eigenvectors leave rounding errors where no label reaches; the solve leaves exact zeros.
    reached = np.asarray(solve(spectrum.sums, 0.5, spectrum.radius) != 0)
    coefficients = np.where(reached.any(axis=1, keepdims=True), coefficients, 0.0)
    unmixed = without_noise(
        apply_mixing(coefficients.T, mixing.T).T, spectrum.sums, 1.0 - SMALLEST_GAP
    )
    share = mean_label(labels.counts)
    prior = share
    if not isinstance(settings.class_balance, str):
        prior = given_prior(settings.class_balance, labels.n_classes)
    report = {
        "filter": "poisson",
        "alpha": None,
        "prior_power": power,
        "leave_one_out_accuracy": max((c["accuracy"] for c in candidates), default=None),
        "candidates": candidates,
    }
    return Decision(unmixed, weights, prior, own_shift=-share * weights), report


def class_weights(settings: Settings, labels: Labels, power: float) -> np.ndarray:
    """Factor of each class's column, q_j / ȳ_j; the largest is 1.  (c,)."""
    if isinstance(settings.class_balance, str) and settings.class_balance in NO_WEIGHTS:
        return np.ones(labels.n_classes)
    if isinstance(settings.class_balance, str):
        prior = power_prior(labels.counts, power)
    else:
        prior = given_prior(settings.class_balance, labels.n_classes)
    weights = prior / mean_label(labels.counts)
    return np.asarray(weights / weights.max())


def _candidates(
    spectrum: Spectrum, mode: np.ndarray, labels: Labels, labelled: LabelledRows
) -> list[dict[str, Any]]:
    scores = leave_one_out_poisson(spectrum, labelled, mode)
    targets = labelled.targets(labels.n_classes)
    found = []
    for power in PRIOR_POWERS:
        weights = power_prior(labels.counts, power) / mean_label(labels.counts)
        best = (scores * weights).argmax(axis=1)[:, None]
        accuracy = np.take_along_axis(targets, best, axis=1).sum() / targets.sum()
        found.append({"prior_power": power, "accuracy": float(accuracy)})
    return found
