"""What the report says of the committee: how many rows are right, and whether labels tell."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from biglp._answers.base import SAMPLE
from biglp._answers.committee.answer import CommitteeAnswer, scaled_logits
from biglp._answers.committee.member import Evidence
from biglp._answers.committee.weights import Trained
from biglp._answers.coverage import ALARM, unseen_share
from biglp._answers.estimate import TINY, HeldOutLabels, estimate_accuracy
from biglp._rows.source import among, sample_indices

WIDEST = 0.2
"""Width of the 90 % interval up to which the estimate is something to go by."""


def appraise(
    evidence: Evidence, trained: list[Trained], answer: CommitteeAnswer, held_out: np.ndarray
) -> dict[str, Any]:
    """Facts for the report.

    Parameters
    ----------
    evidence : Evidence
    trained : list of Trained
        The members behind the answer's models, in their order.
    answer : CommitteeAnswer
    held_out : ndarray of shape (l, c)
        Class probabilities of the labelled rows without their own labels; NaN where unknown.
    """
    problem = evidence.problem
    labels, seed = problem.labels, problem.settings.seed
    n_rows = problem.graph.source.n_rows
    drawn = sample_indices(n_rows, SAMPLE, seed)
    sample, targets = sample_shares(answer, trained), evidence.targets
    unlabelled = sample[~among(drawn, labels.rows)]
    known = HeldOutLabels(held_out, targets)
    estimate = estimate_accuracy(known, unlabelled, len(labels.rows))
    names = [str(name) for name in labels.classes.tolist()]
    if estimate is not None:
        estimate["recall"] = dict(zip(names, estimate["recall"], strict=True))
        estimate["largest_class"] = names[estimate["largest_class"]]
    weights = targets @ (sample.mean(axis=0) / np.maximum(targets.sum(axis=0), TINY))
    unseen = unseen_share(evidence.rows, weights, evidence.sample_rows, seed)
    covered = None if unseen is None else unseen < ALARM
    return {
        "estimated_accuracy": estimate,
        "unseen_share": None if unseen is None else round(unseen, 3),
        "labels_cover_rows": covered,
        "trustworthy": covered is not False and (_narrow(estimate) or len(labels.rows) == n_rows),
    }


def sample_shares(answer: CommitteeAnswer, trained: list[Trained]) -> np.ndarray:
    """Class probabilities of the sample, from what the members have said of it.  (b, c)."""
    total = np.zeros_like(trained[0].fit.sample, dtype=np.float64) + answer.bias
    for model, one in zip(answer.models, trained, strict=True):
        total += model.weight * scaled_logits(one.fit.sample, model.scale)
    return np.asarray(softmax(total, axis=1))


def graph_helped(found: np.ndarray, without: np.ndarray, truth: np.ndarray) -> bool | None:
    """Whether more held-out labels are found with the graph than without.

    Labels that only one of the two finds are like tosses of a coin where neither is better: a
    difference within the spread of so many tosses is none.

    Parameters
    ----------
    found, without : ndarrays of shape (l, c)
        Class probabilities with the graph and without; NaN where unknown.
    truth : ndarray of shape (l, c)
        w·Y.

    Returns
    -------
    helped : bool or None
        None: no difference.
    """
    known = np.isfinite(found).all(axis=1) & np.isfinite(without).all(axis=1)
    likeliest = truth[known].argmax(axis=1)
    change = (found[known].argmax(axis=1) == likeliest).astype(int)
    change -= without[known].argmax(axis=1) == likeliest
    won, differ = int(change.sum()), int(np.abs(change).sum())
    return None if won**2 <= differ else won > 0


def _narrow(estimate: dict[str, Any] | None) -> bool:
    if estimate is None:
        return False
    low, high = estimate["interval"]
    return bool(high - low <= WIDEST)
