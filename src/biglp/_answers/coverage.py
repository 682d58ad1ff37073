"""Whether the labels come from one region of the rows only.

Nothing can be learnt, and nothing held out, about a region without labels: a model that was shown
the rows of one month or one place is judged there and used everywhere. Labelled rows are compared
with a random sample of all rows along a few directions: the leading principal ones, and the one
along which the labelled rows differ most (Fisher's, in ranks, learnt from one half of the labels
and looked at with the other). Along each,

    share of the rows that lie before all but a twentieth of the labels

is about 0.05 for labels drawn at random. Labels drawn class by class, or rows that ``suggest``
chose because they are in doubt, are no random sample either, but they come from everywhere: this
share stays below 0.4 then, once labels count as much as their class does among all rows
(docs/accuracy.md).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._rows.source import sample_indices

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

    Parameters
    ----------
    labelled, sample : arrays or CSR matrices of shape (l, m) and (b, m)
        Labelled rows, and a random sample of all rows.
    weights : ndarray of shape (l,)
        How much each label counts: rows of its class for each label of it.
    seed : int

    Returns
    -------
    share : float or None
        None where labels are too few to tell.
    """
    if labelled.shape[0] < FEWEST:
        return None
    part = sample_indices(labelled.shape[0], MOST_ROWS, seed)
    labelled, weights = labelled[part], weights[part]
    sample = sample[sample_indices(sample.shape[0], MOST_ROWS, seed)]
    if not sparse.issparse(sample):  # once, and not in every product
        sample = sample.astype(np.float64)
    centre = np.asarray(sample.mean(axis=0), dtype=np.float64).ravel()
    vectors = _leading_directions(sample, centre, seed)
    usual = sample @ vectors - centre @ vectors
    ordered = np.sort(usual, axis=0)
    chosen = _ranks(ordered, labelled @ vectors - centre @ vectors)
    usual = _ranks(ordered, usual)
    shares = [_beyond(chosen[:, j], weights) for j in range(min(LOOKED_ALONG, chosen.shape[1]))]
    return max(*shares, _beyond(_along_difference(usual, chosen, seed), weights))


def _leading_directions(sample: Rows, centre: np.ndarray, seed: int) -> np.ndarray:
    """Principal directions, the widest first.  (m, q)."""
    width = min(DIRECTIONS, *sample.shape)
    start = np.random.default_rng(seed).normal(size=(sample.shape[1], width))
    vectors = np.linalg.qr(start)[0]
    for _ in range(STEPS):
        seen = sample @ vectors - centre @ vectors
        vectors = np.linalg.qr(sample.T @ seen - np.outer(centre, seen.sum(axis=0)))[0]
    seen = sample @ vectors - centre @ vectors
    _, rotation = np.linalg.eigh(seen.T @ seen)
    return np.asarray(vectors @ rotation[:, ::-1])


def _ranks(usual: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Share of the usual values, in order, that are smaller; equal ones count half.  (l, q)."""
    found = np.empty(values.shape)
    for ordered, column, places in zip(
        np.ascontiguousarray(usual.T), values.T, found.T, strict=True
    ):
        order = np.argsort(column)  # a search for values in order goes on where the last one ended
        column = column[order]
        places[order] = ordered.searchsorted(column) + ordered.searchsorted(column, "right")
    return found / (2.0 * len(usual))


def _along_difference(usual: np.ndarray, chosen: np.ndarray, seed: int) -> np.ndarray:
    """Ranks of the labels along Fisher's direction from the rows to the other half of them."""
    half = np.random.default_rng(seed).permutation(len(chosen)) % 2
    spread = usual.T @ usual / len(usual) - np.outer(usual.mean(axis=0), usual.mean(axis=0))
    spread += RIDGE * np.eye(len(spread))
    found = np.empty(len(chosen))
    for side in (0, 1):
        difference = chosen[half != side].mean(axis=0) - usual.mean(axis=0)
        direction = np.linalg.solve(spread, difference)[:, None]
        ordered = np.sort(usual @ direction, axis=0)
        found[half == side] = _ranks(ordered, chosen[half == side] @ direction)[:, 0]
    return found


def _beyond(ranks: np.ndarray, weights: np.ndarray) -> float:
    """Share of the rows before, or behind, all but OUTSIDE of the labels."""
    order = np.argsort(ranks, kind="stable")
    passed = np.cumsum(weights[order])
    places = np.searchsorted(passed, np.array([OUTSIDE, 1.0 - OUTSIDE]) * passed[-1])
    low, high = ranks[order[np.minimum(places, len(order) - 1)]]
    return float(max(low, 1.0 - high))
