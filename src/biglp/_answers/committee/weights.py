"""How much each member counts.

The weights w of the members minimise, together with a size t, the log-loss on held-out labels plus
a pull towards weights that are good on average, of whatever size:

    Σ_i −log p(y_i | row i, w) + PULL · ‖w − t·w₀‖² / max(t, 1) + SIZE_PULL · (log t)²,

where w ≥ LEAST_SHARE · w₀, and no weight is below the member's own least. The weight of the class
prior is pulled alike, but towards its own start and not t times that: the confidence of the members
says nothing of how many rows a class has.

How large the weights are together (confidence) is another question than their ratios, and far fewer
labels answer it. If they were one question (t = 1), a dozen labels that all members predict would
raise the weight of the worst as much as that of the best, and a dozen that the graph does not
predict would not be enough to bring its weight down. Large weights are pulled less, so that many
labels still decide on their ratios.

A label with a weight counts as often, and a label distribution counts for each of its classes.
With one label a class there is nothing to hold out and w = w₀; with thousands the data decide.
Because the log-loss is what is minimised, the probabilities come out calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from biglp._answers.committee.answer import scaled_logits, usual_size
from biglp._answers.committee.member import Member, MemberFit

PULL = 2.0
SIZE_PULL = 0.5
SIZES = (-5.0, 3.0)
"""Range of log t."""
LEAST_SHARE = 0.05
PRIOR_START = 0.18
"""Starting weight of the class prior. The members' own (``Member.start``) were chosen on nine data
sets: their ratios by accuracy, their size so that the probabilities stated with one or two labels a
class are as large, on average, as the share of right answers; see docs/accuracy.md. Members that
start at 0 get a weight when held-out labels are in their favour."""
MIN_HELD_OUT = 6
"""Held-out labels below which the weights are not touched."""


@dataclass(frozen=True)
class Weights:
    """Scales and weights of the members; the prior's weight is the last.

    Attributes
    ----------
    scales : ndarray of shape (e,)
    weights : ndarray of shape (e + 1,)
    n_held_out : int
        Labels they were learnt from; 0 when they are w₀.
    report : list of dict
        For each member: name, weight and accuracy on held-out labels.
    accuracy : float or None
        Accuracy of all together on held-out labels.
    shares : ndarray of shape (l, c)
        Class probabilities of each labelled row without its own label; NaN where they are unknown.
    """

    scales: np.ndarray
    weights: np.ndarray
    n_held_out: int
    report: list[dict[str, Any]]
    accuracy: float | None
    shares: np.ndarray


@dataclass(frozen=True)
class Trained:
    """A member with what it has learnt."""

    member: Member
    fit: MemberFit


def find_weights(
    trained: list[Trained],
    log_prior: np.ndarray,
    codes: np.ndarray,
    given: np.ndarray | None = None,
) -> Weights:
    """Find the weights of the members and of the class prior.

    ``given`` (l, c) is w·Y, where labels have weights or are distributions.
    """
    members = [one.member for one in trained]
    held_out = [one.fit.held_out for one in trained]
    scales = np.array([usual_size(one.fit.sample) for one in trained])
    start = np.array([*(member.start for member in members), PRIOR_START])
    known = np.isfinite(sum(logits.sum(axis=1) for logits in held_out))
    enough = int(known.sum()) >= MIN_HELD_OUT
    opinions = [
        scaled_logits(logits[known], scale) for logits, scale in zip(held_out, scales, strict=True)
    ]
    opinions.append(np.broadcast_to(log_prior, (int(known.sum()), len(log_prior))))
    stacked = np.stack(opinions) if enough else np.empty((len(start), 0, len(log_prior)))
    truth = (np.eye(len(log_prior))[codes] if given is None else given)[known]
    floors = np.array([*(member.least for member in members), 0.0])
    least = np.maximum(LEAST_SHARE * start, floors)
    weights = _minimise(stacked, truth, start, least) if enough else start
    report = [
        {"member": member.name, "weight": float(weight), "accuracy": _accuracy(opinion, truth)}
        for member, weight, opinion in zip(members, weights, stacked, strict=False)
    ]
    together = np.einsum("e,elc->lc", weights, stacked)
    n_held_out = len(truth) if enough else 0
    shares = np.full((len(codes), len(log_prior)), np.nan)
    if enough:
        shares[known] = softmax(together, axis=1)
    return Weights(scales, weights, n_held_out, report, _accuracy(together, truth), shares)


def _minimise(
    opinions: np.ndarray, truth: np.ndarray, start: np.ndarray, least: np.ndarray
) -> np.ndarray:
    from scipy.optimize import minimize  # slow to load, and scoring new rows does without

    sizes = truth.sum(axis=1, keepdims=True)

    members = np.arange(len(start)) < len(start) - 1  # the prior is the last

    def loss(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        weights, log_size = unknown[:-1], unknown[-1]
        usual = np.where(members, np.exp(log_size), 1.0) * start
        pull = PULL * np.exp(-max(log_size, 0.0))
        logs = log_softmax(np.einsum("e,elc->lc", weights, opinions), axis=1)
        excess = sizes * np.exp(logs) - truth
        away = weights - usual
        slope = np.einsum("elc,lc->e", opinions, excess) + 2.0 * pull * away
        slope_of_size = 2.0 * (SIZE_PULL * log_size - pull * (away @ (usual * members)))
        slope_of_size -= pull * (away @ away) * (log_size > 0)
        value = pull * (away @ away) + SIZE_PULL * log_size**2 - (truth * logs).sum()
        return float(value), np.append(slope, slope_of_size)

    bounds = [*((weight, None) for weight in least), SIZES]
    first = np.append(np.maximum(start, least), 0.0)
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds)
    weights: np.ndarray = found.x[:-1]
    return weights


def _accuracy(opinion: np.ndarray, truth: np.ndarray) -> float | None:
    """Share of held-out labels that an opinion gets right."""
    if not len(opinion):
        return None
    hits = np.take_along_axis(truth, opinion.argmax(axis=1)[:, None], axis=1)
    return float(hits.sum() / truth.sum())
