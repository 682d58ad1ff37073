"""How much each member counts.

The weights w of the members minimise, together with a size t, the log-loss on held-out labels plus
a pull towards weights that are good on average, of whatever size:

    Σ_i −log p(y_i | row i, w) + PULL · ‖w − t·w₀‖² / max(t, 1) + SIZE_PULL · (log t)²,

where w ≥ LEAST_SHARE · w₀, and no weight is below the member's own least. The weight of the class
prior is pulled alike, but towards its own start and not t times that: the confidence of the members
says nothing of how many rows a class has.

Weights that are good on average (w₀) are not the same for all kinds of rows, nor for all numbers of
labels: :mod:`.starting_weights` has them for each kind of rows, for one label a class and for
twenty; between these they follow the logarithm of the number.

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
from scipy.special import softmax

from biglp._graph.views import OneView
from biglp._learn.committee.answer import scaled_logits
from biglp._learn.committee.member import Member, MemberFit, usual_size

PULL = 8.0
SIZE_PULL = 1.0
SIZES = (-5.0, 3.0)
"""Range of log t."""
LEAST_SHARE = 0.05
MIN_HELD_OUT = 6
"""Held-out labels below which the weights are not touched."""


@dataclass(frozen=True)
class Weights:
    """Scales and weights of the members; the prior's weight is the last."""

    scales: list[float]  # (e,)
    # (e) of (c,): what is added to the scaled logits of each, or 0
    biases: list[np.ndarray | float]
    weights: np.ndarray  # (e + 1,)
    n_held_out: int  # labels they were learnt from; 0 when they are w₀
    # For each member: name, what it is, whether it says what the graph says, weight, and accuracy
    # on held-out labels
    report: list[dict[str, Any]]
    accuracy: float | None  # accuracy of all together on held-out labels
    # (l, c): class probabilities of each labelled row without its own label; NaN where they are
    # unknown
    shares: np.ndarray


@dataclass(frozen=True, eq=False)
class Trained:
    """A member with what it has learnt."""

    member: Member
    fit: MemberFit
    start: float  # its weight w₀ here
    # (c,): what its logits hold of the classes' shares among the labels, which is taken off
    log_shares: np.ndarray | None = None
    kind: str = ""  # its name in model files
    view: OneView | None = None  # what it learnt from

    @property
    def name(self) -> str:
        """Its name in the report."""
        if self.view is None or self.view.places is None:
            return self.member.name
        return f"{self.member.name} ({self.view.name})"


def find_weights(
    trained: list[Trained],
    log_prior: np.ndarray,
    codes: np.ndarray,
    given: np.ndarray | None = None,
    prior_start: float = 1.0,
) -> Weights:
    """Find the weights of the members and of the class prior.

    ``given`` (l, c) is w·Y, where labels have weights or are distributions.
    """
    from scipy.optimize import minimize  # slow to load, and scoring new rows does without

    n_classes, scales, biases = len(log_prior), [], []
    for one in trained:
        # Usual size of a member's logits, divided by log₂ of the number of classes: the logit that
        # makes a class likely among c grows with log c, so that a weight means as much whatever the
        # number of classes is.
        shares, sample = one.log_shares, one.fit.sample
        size = usual_size(sample if shares is None else sample - shares)
        scales.append(size / np.log2(max(n_classes, 2)))
        biases.append(0.0 if shares is None else -shares / scales[-1])
    start = np.array([*(one.start for one in trained), prior_start])
    sums = (one.fit.held_out.sum(axis=1) for one in trained)
    known = np.isfinite(sum(sums, np.zeros(len(codes))))
    enough = int(known.sum()) >= MIN_HELD_OUT
    # One array, filled where it is: with many classes it is the largest of a fit.
    stacked = np.empty((len(start), int(known.sum()) if enough else 0, n_classes))
    truth = (np.eye(n_classes)[codes] if given is None else given)[known]
    sizes, flat = truth.sum(axis=1, keepdims=True), stacked.reshape(len(start), -1)
    is_member = np.arange(len(start)) < len(trained)  # the prior is the last

    def loss(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        weights, log_size = unknown[:-1], unknown[-1]
        usual = np.where(is_member, np.exp(log_size), 1.0) * start
        pull = PULL * np.exp(-max(log_size, 0.0))
        logits = (weights @ flat).reshape(truth.shape)
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(axis=1, keepdims=True)
        shares *= sizes / sums
        shares -= truth  # what is said too much of each class
        away = weights - usual
        slope = flat @ shares.ravel() + 2.0 * pull * away
        slope_of_size = 2.0 * (SIZE_PULL * log_size - pull * (away @ (usual * is_member)))
        slope_of_size -= pull * (away @ away) * (log_size > 0)
        value = pull * (away @ away) + SIZE_PULL * log_size**2
        value += (sizes * np.log(sums)).sum() - (truth * logits).sum()
        return float(value), np.append(slope, slope_of_size)

    weights, shares = start, np.full((len(codes), n_classes), np.nan)
    accuracies: list[float | None] = [None] * len(start)
    if enough:
        for place, one, scale, bias in zip(stacked, trained, scales, biases, strict=False):
            place[:] = scaled_logits(one.fit.held_out[known], scale) + bias
        stacked[-1] = log_prior
        floors = np.array([*(one.member.least for one in trained), 0.0])
        least = np.maximum(LEAST_SHARE * start, floors)
        bounds = [*((weight, None) for weight in least), SIZES]
        first = np.append(np.maximum(start, least), 0.0)
        weights = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds).x[:-1]
        together = np.tensordot(weights, stacked, 1)
        shares[known] = softmax(together, axis=1)
        # Shares of the held-out labels that each of them gets right, and all together.
        for number, logits in enumerate([*stacked[:-1], together]):
            hits = np.take_along_axis(truth, logits.argmax(axis=1)[:, None], axis=1)
            accuracies[number] = float(hits.sum() / truth.sum())
    report = [
        {
            "member": one.name,
            "what": one.member.words,
            "graph": one.member.says_graph,
            "weight": float(weight),
            "accuracy": accuracy,
        }
        for one, weight, accuracy in zip(trained, weights, accuracies, strict=False)
    ]
    n_held_out = len(truth) if enough else 0
    return Weights(scales, biases, weights, n_held_out, report, accuracies[-1], shares)
