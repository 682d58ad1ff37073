"""How many of the unlabelled rows are right, and how sure that is.

Two things are known: what is said of a random sample of the unlabelled rows, p (m × c), and what is
said of labelled rows without their own labels, beside the truth. Neither is enough. The largest
probability of a row is right on average only where the labels are like the other rows; the share of
held-out labels that are found is that of the labelled rows, which ``suggest`` picks because they
are hard, and which a draw class by class picks in other shares. So the probabilities are sharpened
or blurred until they are right on average,

    p′_ij ∝ p_ij^b,        log b = ℓ / (ℓ + SLOW) · log b_h + GAP·g,

and the estimate is the mean of max_j p′_ij.

    b_h  makes the mean of max p′ over the ℓ held-out rows the share of their labels that are found,
         where classes count as they do among all rows, not among the labels;
    g    is the logit of the mean of max p over the sample, less that over the held-out rows: how
         much harder the labels are than the rest. The committee fits its confidence to held-out
         rows, and is too modest where these are the hard ones.

Recall of class j is Σ p′_ij over rows that are called j, divided by Σ p′_ij over all rows.

The interval is that of a count, symmetric in the angle arcsin √accuracy, ±1.645 s with

    s² = FLOOR² + NOISE² / (ℓ + 1) + DISTANCE²·g² + the variance of the sample's mean;

NOISE would be ½ if ℓ random rows had been looked at and nothing else.

The constants were chosen over twelve data sets; docs/accuracy.md says how well they do on each when
it is left out. They make up for what the committee does wrong on average: when it changes they can
be found again (benchmarks/estimate.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logit, softmax

from biglp._core.arrays import Rows
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets
from biglp._learn.base import HeldOut, sample_indices

GAP, SLOW = 0.13, 150.0
FLOOR, NOISE, DISTANCE = 0.02, 0.6, 0.06
LEAST_KNOWN = 6
"""Held-out labels below which there is no estimate."""
SHARPEST, HALVINGS = 1.5, 15
"""Largest size of log b, and how often the range in which it lies is halved."""
TAILS = 1.645
"""Standard deviations that hold 90 % of a normal distribution."""
LIMITS = (0.01, 0.995)
"""Shares whose logits are compared are kept within these: the last percent is a matter of luck."""
MOST_COUNTED = 5.0
"""How much more than the average a held-out label may count, where labels of its class are rare."""
TINY = 1e-12
NEXT = 50
LEARNING = (0.0, 0.2, 0.8)
"""Errors fall like ℓ^−γ as labels are added: γ at the low end, in the middle and at the high end of
what was seen on twelve data sets, in eight cases of ten."""
SHARE_DIGITS = 4
"""Rounded figures are the same on every machine."""


@dataclass(frozen=True)
class HeldOutLabels:
    """What is said of labelled rows without their labels, and the truth."""

    shares: np.ndarray  # (l, c): class probabilities; rows of NaN are left out
    truth: np.ndarray  # (l, c): w·Y


def estimate_accuracy(
    held_out: HeldOutLabels, sample: np.ndarray, n_labelled: int
) -> dict[str, Any] | None:
    """Estimate what share of the unlabelled rows is right.

    ``sample``: (m, c): class probabilities of a random sample of unlabelled rows; ``estimate``:
    ``accuracy``, ``interval``, ``balanced_accuracy``, ``recall`` (of each class code; None where
    no row seems to be of it), ``largest_class`` (its code), ``base_rate``, ``next_labels``; None
    when no row is unlabelled, or hardly a label could be held out.
    """
    finite = np.isfinite(held_out.shares).all(axis=1) & (held_out.truth.sum(axis=1) > 0)
    held_out = HeldOutLabels(held_out.shares[finite], held_out.truth[finite])
    sample, n_known = np.asarray(sample, dtype=np.float64), len(held_out.shares)
    if not len(sample) or n_known < LEAST_KNOWN:
        return None
    gap, log_sharpness = sharpness(held_out, sample)
    # p^b, made to add up to 1.
    shares = softmax(np.exp(log_sharpness) * np.log(np.maximum(sample, TINY)), axis=1)
    stated, totals, rates = shares.max(axis=1), shares.sum(axis=0), shares.mean(axis=0)
    accuracy = float(stated.mean())
    of_sample = stated.var() / len(stated) / (4.0 * max(accuracy * (1.0 - accuracy), TINY))
    off = np.sqrt(FLOOR**2 + NOISE**2 / (n_known + 1.0) + (DISTANCE * gap) ** 2 + of_sample)
    # The interval holds the shares whose angle is at most so far from that of the accuracy.
    middle = np.arcsin(np.sqrt(min(accuracy, 1.0)))
    angles = np.clip([middle - TAILS * off, middle + TAILS * off], 0.0, np.pi / 2)
    # Expected recall of each class; NaN where no row seems to be of it.
    right = np.bincount(shares.argmax(axis=1), stated, minlength=shares.shape[1])
    recall = np.where(totals > TINY, right / np.maximum(totals, TINY), np.nan)
    return {
        "accuracy": _figure(accuracy),
        "interval": [_figure(share) for share in (np.sin(angles) ** 2).tolist()],
        "balanced_accuracy": _figure(float(np.nanmean(recall))),
        "recall": [None if np.isnan(each) else _figure(each) for each in recall],
        "largest_class": int(rates.argmax()),
        "base_rate": _figure(rates.max()),
        "next_labels": next_labels(accuracy, n_labelled),
    }


def next_labels(accuracy: float, n_labelled: int) -> dict[str, Any]:
    """What the next labels are likely to add to the accuracy, and between what limits."""
    ratio = n_labelled / (n_labelled + NEXT)
    low, middle, high = ((1.0 - accuracy) * (1.0 - ratio**power) for power in LEARNING)
    return {"labels": NEXT, "gain": _figure(middle), "range": [_figure(low), _figure(high)]}


def sharpness(held_out: HeldOutLabels, sample: np.ndarray) -> tuple[float, float]:
    """g and log b, from labels of which all something is said."""
    predicted, weights = held_out.shares, held_out.truth.sum(axis=1)
    truth, n_known = held_out.truth / weights[:, None], len(predicted)
    means = np.array([sample.max(axis=1).mean(), predicted.max(axis=1).mean()])
    of_sample, of_held_out = logit(np.clip(means, *LIMITS)).tolist()
    gap = of_sample - of_held_out
    given = weights @ truth / weights.sum()
    ratios = np.minimum(sample.mean(axis=0) / np.maximum(given, TINY), MOST_COUNTED)
    adjusted = weights * (truth @ ratios)
    # Where no row is called what the labels say, the labels count as they are.
    weights = adjusted if adjusted.sum() > 0 else weights
    weights = weights / weights.sum()
    hits = np.take_along_axis(truth, predicted.argmax(axis=1)[:, None], axis=1)[:, 0]
    # Half a label is added to either side: a dozen labels that were all found are no proof.
    right = (n_known * (weights @ hits) + 0.5) / (n_known + 1.0)
    logs = np.log(np.maximum(predicted, TINY))
    logs -= logs.max(axis=1, keepdims=True)
    low, high = -SHARPEST, SHARPEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        # The largest of p^b / Σ p^b is 1 / Σ (p / max p)^b.
        if weights @ (1.0 / np.exp(np.exp(middle) * logs).sum(axis=1)) < right:
            low = middle
        else:
            high = middle
    log_sharpness = n_known / (n_known + SLOW) * low + GAP * gap
    return gap, float(np.clip(log_sharpness, -SHARPEST, SHARPEST))


def _figure(share: float) -> float:
    return round(float(share), SHARE_DIGITS)


# --------------------------------------------------------------------------------------------------
# Whether the labels come from one region of the rows only.
#
# Nothing can be learnt, and nothing held out, about a region without labels: a model that was shown
# the rows of one month or one place is judged there and used everywhere. Labelled rows are compared
# with a random sample of all rows along a few directions: the leading principal ones, and the one
# along which the labelled rows differ most (Fisher's, in ranks, learnt from one half of the labels
# and looked at with the other). Along each,
#
#     share of the rows that lie before all but a twentieth of the labels
#
# is about 0.05 for labels drawn at random. Labels drawn class by class, or rows that ``suggest``
# chose because they are in doubt, are no random sample either, but they come from everywhere: this
# share stays below 0.4 then, once labels count as much as their class does among all rows
# (docs/accuracy.md).


FEWEST = 30
"""Labels below which a region without labels is what one expects."""
MOST_ROWS = 1000
"""Rows of either kind that are looked at."""
DIRECTIONS, LOOKED_ALONG = 10, 5
"""Principal directions in which the labels may differ, and those that are looked along one by one;
along the last of them rows differ little."""
STEPS = 3
"""Of the subspace iteration, which needs to find where the rows spread and not exact vectors."""
OUTSIDE = 0.05
"""Share of the labels that may lie outside the region."""
ALARM = 0.4
"""Share of the rows without labels from which on there is a warning."""
RIDGE = 1e-3


def unseen_share(labelled: Rows, weights: np.ndarray, sample: Rows, seed: int) -> float | None:
    """Largest share of rows that lie on the far side of nearly all labels.

    ``labelled, sample``: (l, m) and (b, m): labelled rows, and a random sample of all rows;
    ``weights``: (l,): how much each label counts: rows of its class for each label of it;
    ``share``: none where labels are too few to tell.
    """
    if labelled.shape[0] < FEWEST:
        return None
    part = sample_indices(labelled.shape[0], MOST_ROWS, seed)
    labelled, weights = labelled[part], weights[part]
    sample = sample[sample_indices(sample.shape[0], MOST_ROWS, seed)]
    if not sparse.issparse(sample):  # once, and not in every product
        sample = sample.astype(np.float64)
    centre = np.asarray(sample.mean(axis=0), dtype=np.float64).ravel()
    # Principal directions, the widest first.  (m, q).
    width = min(DIRECTIONS, *sample.shape)
    start = np.random.default_rng(seed).normal(size=(sample.shape[1], width))
    vectors = np.linalg.qr(start)[0]
    for _ in range(STEPS):
        seen = sample @ vectors - centre @ vectors
        vectors = np.linalg.qr(sample.T @ seen - np.outer(centre, seen.sum(axis=0)))[0]
    seen = sample @ vectors - centre @ vectors
    _, rotation = np.linalg.eigh(seen.T @ seen)
    vectors = np.asarray(vectors @ rotation[:, ::-1])
    usual = sample @ vectors - centre @ vectors
    ordered = np.sort(usual, axis=0)
    chosen = _ranks(ordered, labelled @ vectors - centre @ vectors)
    usual = _ranks(ordered, usual)

    # Ranks of the labels along Fisher's direction from the rows to the other half of them.
    half = np.random.default_rng(seed).permutation(len(chosen)) % 2
    spread = usual.T @ usual / len(usual) - np.outer(usual.mean(axis=0), usual.mean(axis=0))
    spread += RIDGE * np.eye(len(spread))
    along = np.empty(len(chosen))
    for side in (0, 1):
        difference = chosen[half != side].mean(axis=0) - usual.mean(axis=0)
        direction = np.linalg.solve(spread, difference)[:, None]
        ordered = np.sort(usual @ direction, axis=0)
        along[half == side] = _ranks(ordered, chosen[half == side] @ direction)[:, 0]

    # Share of the rows before, or behind, all but OUTSIDE of the labels, in each direction.
    shares = []
    for ranks in (*chosen.T[:LOOKED_ALONG], along):
        order = np.argsort(ranks, kind="stable")
        passed = np.cumsum(weights[order])
        places = np.searchsorted(passed, np.array([OUTSIDE, 1.0 - OUTSIDE]) * passed[-1])
        low, high = ranks[order[np.minimum(places, len(order) - 1)]]
        shares.append(float(max(low, 1.0 - high)))
    return max(shares)


def _ranks(usual: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Share of the usual values, in order, that are smaller; equal ones count half.  (l, q)."""
    ranks = np.empty(values.shape)
    columns = zip(np.ascontiguousarray(usual.T), values.T, ranks.T, strict=True)
    for ordered, column, places in columns:
        order = np.argsort(column)  # a search for values in order goes on where the last one ended
        column = column[order]
        places[order] = ordered.searchsorted(column) + ordered.searchsorted(column, "right")
    return ranks / (2.0 * len(usual))


# --------------------------------------------------------------------------------------------------
# Whether confidence is what it says: labels that were held out, by how sure the model was of them.
#
# Held-out rows are put in order of their confidence and cut into groups of equal size. In each
# group the mean confidence is compared with the share of the labels that was found.


LEAST_IN_GROUP, MOST_GROUPS = 10, 10
"""Labels of a group, at least, and groups, at most."""


def reliability(labels: Labels | Targets, held_out: HeldOut | None) -> dict[str, Any]:
    """Compare confidence with what was right.

    ``held_out``: what is said of labelled rows without their own labels; ``facts``: for the
    report: ``reliability``, a list of groups, the least sure first, each with its number of
    ``labels``, their mean ``confidence`` and the share that was found (``right``); None where too
    few labels were held out. Empty where the method holds none out.
    """
    if held_out is None or not isinstance(labels, Labels):
        return {}
    known = np.isfinite(held_out.shares).all(axis=1)
    if known.sum() < LEAST_IN_GROUP:
        return {"reliability": None}
    shares = held_out.shares[known]
    codes = labels.codes[np.searchsorted(labels.rows, held_out.rows[known])]
    confidence = shares.max(axis=1)
    right = shares.argmax(axis=1) == codes
    order = np.lexsort((held_out.rows[known], confidence.round(SHARE_DIGITS)))
    groups = np.array_split(order, min(len(order) // LEAST_IN_GROUP, MOST_GROUPS))
    lines = [
        {
            "labels": len(group),
            "confidence": _figure(confidence[group].mean()),
            "right": _figure(right[group].mean()),
        }
        for group in groups
    ]
    return {"reliability": lines}
