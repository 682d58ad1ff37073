"""Growing the trees of a forest from many labels, by scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

MANY_CLASSES = "The number of unique classes is greater than"
"""How scikit-learn begins to wonder whether labels are numbers; here they are classes."""

_threads: ContextVar[int] = ContextVar("threads that grow trees", default=1)


@contextmanager
def growing_threads(count: int) -> Iterator[None]:
    """Let so many threads grow trees."""
    before = _threads.set(count)
    try:
        yield
    finally:
        _threads.reset(before)


def grow_many(
    rows: np.ndarray, codes: np.ndarray, seed: int, weights: np.ndarray | None, trees: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Grow trees on labelled rows.

    Returns
    -------
    arrays : dict of str to ndarray
        Those of :class:`biglp._answers.committee.forest.Forest`; values have a column for each
        class that has a label.
    counts : ndarray of shape (trees, l)
        How often each tree has drawn each row.
    """
    # Powers of two bring all features to the size of 1 without touching a digit: scikit-learn
    # takes values that differ by less than 1e-7 for equal.
    powers = _powers_of_two(rows)
    scaled = np.ascontiguousarray(np.ldexp(rows, -powers), dtype=np.float32)
    one = partial(_grown, scaled, codes, weights, powers)
    # Seeds and draws are those of scikit-learn's forests, which look again at all parameters for
    # each tree. The trees are the same with any number of threads.
    seeds = np.random.RandomState(seed % 2**32).randint(np.iinfo(np.int32).max, size=trees)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        with ThreadPoolExecutor(_threads.get()) as pool:
            grown = list(pool.map(one, seeds.tolist()))
    packed = [tree for tree, _ in grown]
    depths = np.array([tree.pop("depth")[()] for tree in packed])
    sizes = [len(tree["features"]) for tree in packed]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    for tree, root in zip(packed, roots, strict=True):
        tree["lefts"] += root
    arrays = {"roots": roots, "depths": depths}
    for name in tuple(packed[0]):
        arrays[name] = np.concatenate([tree.pop(name) for tree in packed])
    return arrays, np.array([drawn for _, drawn in grown])


def _grown(
    rows: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, powers: np.ndarray, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A tree, and how often it has drawn each row."""
    from sklearn import config_context  # slow to load, and seldom needed
    from sklearn.tree import DecisionTreeClassifier

    rng, count = np.random.RandomState(seed), len(rows)
    if weights is None:
        drawn = rng.randint(0, count, count)
    else:
        drawn = rng.choice(count, count, p=weights / weights.sum())
    counts = np.bincount(drawn, minlength=count)
    tree = DecisionTreeClassifier(max_features="sqrt", random_state=seed)
    with config_context(skip_parameter_validation=True):
        tree.fit(rows, codes, counts.astype(np.float64), check_input=False)
    return _packed(tree.tree_, powers), counts


def _powers_of_two(rows: np.ndarray) -> np.ndarray:
    """Power of two next to the range of each feature; 0 for a constant one.  (m,)."""
    ranges = np.ptp(rows.astype(np.float64), axis=0)
    return np.where(ranges > 0, np.frexp(ranges)[1], 0).astype(np.int32)


def _packed(tree: Any, powers: np.ndarray) -> dict[str, np.ndarray]:
    """One of scikit-learn's trees, renumbered so that siblings are neighbours."""
    left, right = tree.children_left, tree.children_right
    levels = [np.zeros(1, dtype=np.intp)]
    while len(inner := levels[-1][left[levels[-1]] >= 0]):
        levels.append(np.stack([left[inner], right[inner]], axis=1).ravel())
    old = np.concatenate(levels)  # parents before children
    new = np.empty(len(old), dtype=np.int64)
    new[old] = np.arange(len(old))
    leaf = left[old] < 0
    # Rounded down, so that float32 numbers fall on the same side as with the float64 threshold.
    exact = np.ldexp(tree.threshold[old], powers[np.where(leaf, 0, tree.feature[old])])
    limits = exact.astype(np.float32)
    limits = np.where(limits > exact, np.nextafter(limits, np.float32(-np.inf)), limits)
    return {
        "features": np.where(leaf, 0, tree.feature[old]).astype(np.int64),
        "thresholds": np.where(leaf, np.float32(np.inf), limits).astype(np.float32),
        "lefts": np.where(leaf, np.arange(len(old)), new[left[old]]),
        "depth": np.array(tree.max_depth),
        "values": tree.value[old, 0, :].astype(np.float32),
    }
