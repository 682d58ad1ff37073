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

from biglp._learn.committee.answer import scaled_logits
from biglp._learn.committee.member import (
    Member,
    MemberFit,
    TrainingSet,
    usual_size,
)

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

    scales: np.ndarray  # (e,)
    weights: np.ndarray  # (e + 1,)
    n_held_out: int  # labels they were learnt from; 0 when they are w₀
    # For each member: name, what it is, whether it says what the graph says, weight, and accuracy
    # on held-out labels
    report: list[dict[str, Any]]
    accuracy: float | None  # accuracy of all together on held-out labels
    # (l, c): class probabilities of each labelled row without its own label; NaN where they are
    # unknown
    shares: np.ndarray


@dataclass(frozen=True)
class Trained:
    """A member with what it has learnt."""

    member: Member
    fit: MemberFit
    start: float  # its weight w₀ here
    # (c,): what its logits hold of the classes' shares among the labels, which is taken off
    log_shares: np.ndarray | None = None
    kind: str = ""  # its name in model files

    @classmethod
    def of(cls, evidence: TrainingSet, kind: str, member: Member, fit: MemberFit) -> Trained:
        """A member and what it has learnt, as the evidence is seen now."""
        log_shares = evidence.log_counts if member.says_shares else None
        return cls(member, fit, member.start(evidence), log_shares, kind)

    @property
    def scale(self) -> float:
        """Usual size of its logits, divided by log₂ of the number of classes.

        The logit that makes a class likely among c grows with log c, so that a weight means as much
        whatever the number of classes is.
        """
        sample = self.fit.sample
        size = usual_size(sample if self.log_shares is None else sample - self.log_shares)
        return float(size / np.log2(max(sample.shape[1], 2)))

    def bias(self, scale: float) -> np.ndarray | float:
        """What is added to its scaled logits.  (c,)."""
        return 0.0 if self.log_shares is None else -self.log_shares / scale


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
    members = [one.member for one in trained]
    held_out = [one.fit.held_out for one in trained]
    scales = np.array([one.scale for one in trained])
    start = np.array([*(one.start for one in trained), prior_start])
    known = np.isfinite(sum((logits.sum(axis=1) for logits in held_out), np.zeros(len(codes))))
    enough = int(known.sum()) >= MIN_HELD_OUT
    # One array, filled where it is: with many classes it is the largest of a fit.
    stacked = np.empty((len(start), int(known.sum()) if enough else 0, len(log_prior)))
    if enough:
        for place, one, logits, scale in zip(stacked, trained, held_out, scales, strict=False):
            place[:] = scaled_logits(logits[known], scale) + one.bias(scale)
        stacked[-1] = log_prior
    truth = (np.eye(len(log_prior))[codes] if given is None else given)[known]
    floors = np.array([*(member.least for member in members), 0.0])
    least = np.maximum(LEAST_SHARE * start, floors)
    weights = _minimise(stacked, truth, start, least) if enough else start
    report = [
        {
            "member": member.name,
            "what": member.words,
            "graph": member.says_graph,
            "weight": float(weight),
            "accuracy": _accuracy(logits, truth),
        }
        for member, weight, logits in zip(members, weights, stacked, strict=False)
    ]
    together = np.tensordot(weights, stacked, 1)
    n_held_out = len(truth) if enough else 0
    shares = np.full((len(codes), len(log_prior)), np.nan)
    if enough:
        shares[known] = softmax(together, axis=1)
    return Weights(scales, weights, n_held_out, report, _accuracy(together, truth), shares)


def _minimise(
    stacked: np.ndarray, truth: np.ndarray, start: np.ndarray, least: np.ndarray
) -> np.ndarray:
    from scipy.optimize import minimize  # slow to load, and scoring new rows does without

    sizes = truth.sum(axis=1, keepdims=True)
    flat = stacked.reshape(len(stacked), -1)
    members = np.arange(len(start)) < len(start) - 1  # the prior is the last

    def loss(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        weights, log_size = unknown[:-1], unknown[-1]
        usual = np.where(members, np.exp(log_size), 1.0) * start
        pull = PULL * np.exp(-max(log_size, 0.0))
        logits = (weights @ flat).reshape(truth.shape)
        logits -= logits.max(axis=1, keepdims=True)
        shares = np.exp(logits)
        sums = shares.sum(axis=1, keepdims=True)
        shares *= sizes / sums
        shares -= truth  # what is said too much of each class
        away = weights - usual
        slope = flat @ shares.ravel() + 2.0 * pull * away
        slope_of_size = 2.0 * (SIZE_PULL * log_size - pull * (away @ (usual * members)))
        slope_of_size -= pull * (away @ away) * (log_size > 0)
        value = pull * (away @ away) + SIZE_PULL * log_size**2
        value += (sizes * np.log(sums)).sum() - (truth * logits).sum()
        return float(value), np.append(slope, slope_of_size)

    bounds = [*((weight, None) for weight in least), SIZES]
    first = np.append(np.maximum(start, least), 0.0)
    minimum = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds)
    weights: np.ndarray = minimum.x[:-1]
    return weights


def _accuracy(logits: np.ndarray, truth: np.ndarray) -> float | None:
    """Share of held-out labels that logits get right."""
    if not len(logits):
        return None
    hits = np.take_along_axis(truth, logits.argmax(axis=1)[:, None], axis=1)
    return float(hits.sum() / truth.sum())
