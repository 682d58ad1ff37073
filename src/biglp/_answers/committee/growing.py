"""Growing the trees of a forest from few labels, all of them side by side, level by level.

A node tries √m features that are not constant among its rows, drawn at random, and takes the
threshold that leaves the least Gini impurity, as scikit-learn's RandomForestClassifier does: rows
are drawn with replacement, and trees grow until their leaves are of one class. With weight L_k of
class k on the left of a threshold and T_k in the node, the impurity is least where

    Σ L_k² / Σ L_k + Σ (T_k − L_k)² / Σ (T_k − L_k)

is largest. A row of class k and weight w that moves to the left adds 2·w·L_k + w² to Σ L_k² and
w·T_k to Σ T_k·L_k: sums along sorted rows, however many classes there are. Weights are whole
numbers, so that all sums are exact.

Trees of a few dozen rows cost more in calls than in arithmetic, and loading scikit-learn takes
longer than a fit of a thousand rows. Here the rows of all trees are one array, and a level of all
trees is two sorts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from biglp._answers.committee.walks import rounded_up

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Table:
    """Labelled rows as ranks within each feature, which is all that thresholds look at.

    Attributes
    ----------
    ranks : ndarray of shape (l, m)
        Equal values share a rank.
    values : ndarray of shape (l, m)
        The value of each rank.
    codes : ndarray of shape (l,)
    n_classes : int
    """

    ranks: np.ndarray
    values: np.ndarray
    codes: np.ndarray
    n_classes: int

    @classmethod
    def of(cls, rows: np.ndarray, codes: np.ndarray, n_classes: int) -> Table:
        """Rank the rows, in float32."""
        rows = rounded_up(rows)
        order = np.argsort(rows, axis=0, kind="stable")
        ordered = np.take_along_axis(rows, order, axis=0)
        steps = np.zeros(rows.shape, dtype=np.int32)
        steps[1:] = ordered[1:] != ordered[:-1]
        ranked = np.cumsum(steps, axis=0, dtype=np.int32)
        ranks, values = np.empty_like(ranked), np.zeros_like(rows)
        np.put_along_axis(ranks, order, ranked, axis=0)
        np.put_along_axis(values, ranked, ordered, axis=0)
        return cls(ranks, values, codes.astype(np.int64), n_classes)


@dataclass(frozen=True)
class Level:
    """Rows of the nodes of one level of all trees, sorted by node.

    Attributes
    ----------
    rows, weights : ndarrays of shape (e,)
        Which labelled row each is, and how often its tree has drawn it.
    sizes : ndarray of shape (a,)
        Rows of each node.
    trees : ndarray of shape (a,)
        The tree of each node.
    """

    rows: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray
    trees: np.ndarray
    nodes: np.ndarray = field(init=False)
    starts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Say of which node each row is, and where each node begins."""
        object.__setattr__(self, "nodes", np.repeat(np.arange(len(self.sizes)), self.sizes))
        object.__setattr__(self, "starts", np.cumsum(self.sizes) - self.sizes)

    def only(self, wanted: np.ndarray) -> Level:
        """The same with some of the nodes."""
        kept = wanted[self.nodes]
        return Level(self.rows[kept], self.weights[kept], self.sizes[wanted], self.trees[wanted])

    def counts(self, table: Table) -> np.ndarray:
        """Weight of each class in each node.  (a, c)."""
        places = self.nodes * table.n_classes + table.codes[self.rows]
        counted = np.bincount(places, self.weights, len(self.sizes) * table.n_classes)
        return counted.astype(np.int64).reshape(-1, table.n_classes)


@dataclass(frozen=True)
class Splits:
    """The best threshold of each node: feature, and ranks on both sides of it.

    Where all rows of a node are equal, ``found`` is False.
    """

    features: np.ndarray
    below: np.ndarray
    above: np.ndarray
    found: np.ndarray


def drawn_counts(
    trees: int, n_rows: int, weights: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """How often each tree draws each labelled row, by weight.  (trees, l)."""
    if weights is None:
        drawn = rng.integers(0, n_rows, (trees, n_rows))
    else:
        drawn = rng.choice(n_rows, (trees, n_rows), p=weights / weights.sum())
    drawn += np.arange(trees)[:, None] * n_rows
    return np.bincount(drawn.ravel(), minlength=trees * n_rows).reshape(trees, n_rows)


def grow(table: Table, counts: np.ndarray, tried: int, rng: np.random.Generator) -> Arrays:
    """Grow a tree on each line of counts.

    Parameters
    ----------
    table : Table
    counts : ndarray of shape (trees, l)
    tried : int
        Features that a node looks at.
    rng : Generator

    Returns
    -------
    arrays : dict of str to ndarray
        Those of :class:`biglp._answers.committee.forest.Forest`.
    """
    trees, rows = np.nonzero(counts)
    sizes = np.bincount(trees, minlength=len(counts))
    level = Level(rows, counts[trees, rows], sizes, np.arange(len(counts)))
    grown: list[Arrays] = []
    depths, n_nodes = np.zeros(len(counts), dtype=np.int64), 0
    while len(level.sizes):
        classes = level.counts(table)
        n_nodes += len(classes)
        nodes, level = _split(table, level, classes, (tried, n_nodes), rng)
        grown.append(nodes)
        depths[level.trees] = len(grown)
    found = {name: np.concatenate([nodes[name] for nodes in grown]) for name in grown[0]}
    trees = found.pop("trees")
    order = np.argsort(trees, kind="stable")  # the nodes of a tree together, siblings still so
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    found = {name: array[order] for name, array in found.items()}
    found["lefts"] = number[found["lefts"]]
    roots = np.searchsorted(trees[order], np.arange(len(counts)))
    return {**found, "roots": roots, "depths": depths}


def _split(
    table: Table,
    level: Level,
    classes: np.ndarray,
    place: tuple[int, int],
    rng: np.random.Generator,
) -> tuple[Arrays, Level]:
    """The nodes of a level, and the level below; nodes of one class are leaves."""
    tried, n_nodes = place
    n_here = len(classes)
    nodes = {
        "features": np.zeros(n_here, dtype=np.int64),
        "thresholds": np.full(n_here, np.inf, dtype=np.float32),
        "lefts": np.arange(n_nodes - n_here, n_nodes),  # a leaf is its own left child
        "values": (classes / classes.sum(axis=1, keepdims=True)).astype(np.float32),
        "trees": level.trees,
    }
    mixed = (classes > 0).sum(axis=1) > 1
    if not mixed.any():
        return nodes, level.only(mixed)
    level = level.only(mixed)
    splits = _best(table, level, classes[mixed], _features(table, level, tried, rng))
    at = np.flatnonzero(mixed)[splits.found]
    feature, found = splits.features[splits.found], splits.found
    nodes["features"][at] = feature
    nodes["thresholds"][at] = _between(
        table.values[splits.below[found], feature], table.values[splits.above[found], feature]
    )
    nodes["lefts"][at] = n_nodes + 2 * np.arange(len(at))
    right = table.ranks[level.rows, splits.features[level.nodes]] > splits.below[level.nodes]
    child = 2 * (np.cumsum(found) - 1)[level.nodes] + right
    kept = np.flatnonzero(found[level.nodes])
    kept = kept[np.argsort(child[kept], kind="stable")]
    sizes = np.bincount(child[kept], minlength=2 * len(at))
    trees = np.repeat(level.trees[found], 2)
    return nodes, Level(level.rows[kept], level.weights[kept], sizes, trees)


def _between(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Middle of two float32 numbers, rounded down so that it stays below the larger."""
    middle = below.astype(np.float64) / 2 + above.astype(np.float64) / 2
    found = middle.astype(np.float32)
    return np.where(found > middle, np.nextafter(found, np.float32(-np.inf)), found)


def _features(table: Table, level: Level, tried: int, rng: np.random.Generator) -> np.ndarray:
    """Features that each node tries, those that are constant among its rows last.  (a, f)."""
    here = table.ranks[level.rows]
    least = np.minimum.reduceat(here, level.starts, axis=0)
    constant = least == np.maximum.reduceat(here, level.starts, axis=0)
    keys = rng.random(constant.shape)
    keys[constant] += 1.0
    return np.argsort(keys, axis=1)[:, :tried]


def _best(table: Table, level: Level, classes: np.ndarray, features: np.ndarray) -> Splits:
    """The threshold of least impurity of each node, over all features that it tries."""
    n_rows, (n_nodes, tried) = len(level.rows), features.shape
    ranks = table.ranks[level.rows[:, None], features[level.nodes]]
    # One line for each pair of a feature's place and a node; rows of a line sorted by value.
    lines = np.arange(tried)[:, None] * n_nodes + level.nodes
    key = lines * len(table.codes) + ranks.T
    order = np.argsort(key.ravel(), kind="stable")
    key, rows = key.ravel()[order], order % n_rows
    starts = (np.arange(tried)[:, None] * n_rows + level.starts).ravel()
    sizes = np.tile(level.sizes, tried)

    codes, weights = table.codes[level.rows][rows], level.weights[rows]
    nodes = level.nodes[rows]
    own = _own_class_before(np.repeat(np.arange(len(sizes)), sizes), codes, weights)
    squares = _along(weights * (2 * own + weights), starts, sizes)
    shared = _along(weights * classes[nodes, codes], starts, sizes)
    left = _along(weights, starts, sizes)
    right = classes.sum(axis=1)[nodes] - left
    rest = (classes**2).sum(axis=1)[nodes] - 2 * shared + squares
    last = np.zeros(len(key), dtype=bool)  # of its value, and not of its line
    last[:-1] = key[1:] != key[:-1]
    last[starts + sizes - 1] = False
    score = np.where(last, squares / left + rest / np.maximum(right, 1), -1.0)

    best = np.maximum.reduceat(score, starts)
    places = np.where(score == np.repeat(best, sizes), np.arange(len(score)), len(score))
    first = np.minimum.reduceat(places, starts).reshape(tried, n_nodes)
    slot = best.reshape(tried, n_nodes).argmax(axis=0)
    here = np.arange(n_nodes)
    at = first[slot, here]
    found = score[at] >= 0
    above = key[np.where(found, at + 1, at)]
    n_ranks = len(table.codes)
    return Splits(features[here, slot], key[at] % n_ranks, above % n_ranks, found)


def _along(numbers: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sums from the beginning of each line to each number of it."""
    sums = np.cumsum(numbers)
    return np.asarray(sums - np.repeat(sums[starts] - numbers[starts], sizes))


def _own_class_before(lines: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weight of the rows of the same class before each row of its line."""
    groups = lines * (codes.max() + 1) + codes
    order = np.argsort(groups, kind="stable")
    ordered, groups = weights[order], groups[order]
    firsts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    sums = _along(ordered, firsts, np.diff(np.append(firsts, len(groups))))
    before = np.empty_like(sums)
    before[order] = sums - ordered
    return before
