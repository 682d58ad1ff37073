"""A random forest in plain arrays, kept without pickles and asked in blocks.

Where thresholds on single features decide (network records, instrument readings), neither distances
nor straight lines see it, and trees do. Nodes are numbered so that a node's right child follows its
left one, and a leaf is its own left child with a threshold of infinity. One step down a tree is
then the same arithmetic for every row, leaf or not:

    node ← left[node] + (x[feature[node]] > threshold[node]).
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy import sparse

from biglp._algebra.systems import MOST_LABELLED
from biglp._core.arrays import Array, Rows, is_torch, namespace
from biglp._core.size import DEFAULT_EFFORT, EFFORTS, TREE_STEP, Cost, Size, left_out
from biglp._learn.committee.member import (
    Asked,
    Member,
    MemberFit,
    MemberModel,
    TrainingSet,
)
from biglp._learn.committee.trees import Walk, means_on_device, rounded_up
from biglp._transforms.project import PROJECT_ABOVE

# --------------------------------------------------------------------------------------------------
# Growing the trees of a forest from few labels, all of them side by side, level by level.
#
# A node tries √m features that are not constant among its rows, drawn at random, and takes the
# threshold that leaves the least Gini impurity, as scikit-learn's RandomForestClassifier does: rows
# are drawn with replacement, and trees grow until their leaves are of one class. With weight L_k of
# class k on the left of a threshold and T_k in the node, the impurity is least where
#
#     Σ L_k² / Σ L_k + Σ (T_k − L_k)² / Σ (T_k − L_k)
#
# is largest. A row of class k and weight w that moves to the left adds 2·w·L_k + w² to Σ L_k² and
# w·T_k to Σ T_k·L_k: sums along sorted rows, however many classes there are. Weights are whole
# numbers, so that all sums are exact.
#
# Trees of a few dozen rows cost more in calls than in arithmetic, and loading scikit-learn takes
# longer than a fit of a thousand rows. Here the rows of all trees are one array, and a level of all
# trees is two sorts.


Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Table:
    """Labelled rows as ranks within each feature, which is all that thresholds look at."""

    ranks: np.ndarray  # (l, m): equal values share a rank
    values: np.ndarray  # (l, m): the value of each rank
    codes: np.ndarray  # (l,)
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
    """Rows of the nodes of one level of all trees, sorted by node."""

    # (e,): which labelled row each is, and how often its tree has drawn it
    rows: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray  # (a,): rows of each node
    trees: np.ndarray  # (a,): the tree of each node
    nodes: np.ndarray = field(init=False)
    starts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Say of which node each row is, and where each node begins."""
        object.__setattr__(self, "nodes", np.repeat(np.arange(len(self.sizes)), self.sizes))
        object.__setattr__(self, "starts", np.cumsum(self.sizes) - self.sizes)

    def only(self, wanted: np.ndarray) -> Level:
        """The same with some of the nodes."""
        stays = wanted[self.nodes]
        return Level(self.rows[stays], self.weights[stays], self.sizes[wanted], self.trees[wanted])

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

    ``counts``: (trees, l); ``tried``: features that a node looks at; ``arrays``: those of
    :class:`biglp._learn.committee.forest.Forest`.
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
    arrays = {name: np.concatenate([nodes[name] for nodes in grown]) for name in grown[0]}
    trees = arrays.pop("trees")
    order = np.argsort(trees, kind="stable")  # the nodes of a tree together, siblings still so
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    arrays = {name: array[order] for name, array in arrays.items()}
    arrays["lefts"] = number[arrays["lefts"]]
    roots = np.searchsorted(trees[order], np.arange(len(counts)))
    return {**arrays, "roots": roots, "depths": depths}


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
    feature, splits_found = splits.features[splits.found], splits.found
    nodes["features"][at] = feature
    nodes["thresholds"][at] = _between(
        table.values[splits.below[splits_found], feature],
        table.values[splits.above[splits_found], feature],
    )
    nodes["lefts"][at] = n_nodes + 2 * np.arange(len(at))
    right = table.ranks[level.rows, splits.features[level.nodes]] > splits.below[level.nodes]
    child = 2 * (np.cumsum(splits_found) - 1)[level.nodes] + right
    order = np.flatnonzero(splits_found[level.nodes])
    order = order[np.argsort(child[order], kind="stable")]
    sizes = np.bincount(child[order], minlength=2 * len(at))
    trees = np.repeat(level.trees[splits_found], 2)
    return nodes, Level(level.rows[order], level.weights[order], sizes, trees)


def _between(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Middle of two float32 numbers, rounded down so that it stays below the larger."""
    middle = below.astype(np.float64) / 2 + above.astype(np.float64) / 2
    limits = middle.astype(np.float32)
    return np.where(limits > middle, np.nextafter(limits, np.float32(-np.inf)), limits)


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
    divides = score[at] >= 0
    above = key[np.where(divides, at + 1, at)]
    n_ranks = len(table.codes)
    return Splits(features[here, slot], key[at] % n_ranks, above % n_ranks, divides)


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


# --------------------------------------------------------------------------------------------------
# Growing the trees of a forest from many labels, by scikit-learn.


MANY_CLASSES = "The number of unique classes is greater than"
"""How scikit-learn begins to wonder whether labels are numbers; here they are classes."""


def grow_many(
    rows: np.ndarray,
    codes: np.ndarray,
    seed: int,
    weights: np.ndarray | None,
    trees: int,
    n_threads: int,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Grow trees on labelled rows.

    ``arrays``: those of :class:`biglp._learn.committee.forest.Forest`; values have a column for
    each class that has a label; ``counts``: (trees, l): how often each tree has drawn each row.
    """
    # Powers of two bring all features to the size of 1 without touching a digit: scikit-learn
    # takes values that differ by less than 1e-7 for equal.
    ranges = np.ptp(rows.astype(np.float64), axis=0)
    powers = np.where(ranges > 0, np.frexp(ranges)[1], 0).astype(np.int32)
    scaled = np.ascontiguousarray(np.ldexp(rows, -powers), dtype=np.float32)
    one = partial(_grown, scaled, codes, weights, powers)
    # Seeds and draws are those of scikit-learn's forests, which look again at all parameters for
    # each tree. The trees are the same with any number of threads.
    seeds = np.random.RandomState(seed % 2**32).randint(np.iinfo(np.int32).max, size=trees)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        with ThreadPoolExecutor(n_threads) as pool:
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


# --------------------------------------------------------------------------------------------------


BLUR = 0.02
"""Share of every answer that is spread evenly: a few trees that agree are not certain."""
CHUNK = 4096
"""Rows that go down the trees together, so that their nodes stay in the processor's cache."""
MOST_TREES = EFFORTS["best"].trees
SIDE_BY_SIDE = 2500
"""Labels times features that a node tries, up to which all trees grow together; above that
scikit-learn's code for single trees is faster."""
USUAL_DEPTH = 15
"""Steps down a tree."""
MIN_LABELS = 6
"""Labels below which trees have nothing to add."""
MAX_FEATURES = 1000
"""Features above which rows, which trees want dense, would take much memory."""
NODES_PER_LABEL = 0.7
"""Nodes that a tree grows for each label, on data that is not easy."""
FEW_CLASSES, MOST_NODES_PER_LABEL = 20, 1.3
"""With more classes than that, leaves hold one label each: 63 % of the labels are in a tree's
sample, and as many nodes again lie above the leaves."""
MOST_BYTES = 1 << 30
"""Above that, trees are not grown: a node has a number for each class, twice while they grow."""


@dataclass(frozen=True)
class Forest(MemberModel):
    """Trees one after the other in flat arrays."""

    # (nodes,): test of each node, and its left child
    features: np.ndarray
    thresholds: np.ndarray
    lefts: np.ndarray
    values: np.ndarray  # (nodes, c): class distribution of each node
    # (trees,)
    roots: np.ndarray
    depths: np.ndarray

    def __post_init__(self) -> None:
        """Refuse arrays of a damaged file that would lead down a tree without end."""
        sizes = np.diff(self.roots, append=len(self.features))
        if (self.depths < 0).any() or (self.depths > np.maximum(sizes, 0)).any():
            raise ValueError("a tree is deeper than it has nodes")

    def logits(self, asked: Asked) -> Array:
        """Ask the trees about the rows."""
        return self.of(asked.rows)

    @cached_property
    def walk(self) -> Walk:
        """The way down the trees on a processor, which becomes quicker with the rows asked."""
        return Walk(**self.state())

    def expect(self, n_rows: int) -> None:
        """Choose the way down the trees for so many rows."""
        self.walk.expected = n_rows

    @property
    def row_seconds(self) -> float:
        """That of a step, as many times as trees are deep."""
        return TREE_STEP * float(self.depths.sum())

    def __getstate__(self) -> dict[str, np.ndarray]:
        """Its arrays: other processes find their own way."""
        return self.state()

    def of(self, rows: Rows) -> Array:
        """Logarithm of the trees' mean class distribution, blurred.  (b, m) → (b, c)."""
        if is_torch(rows):
            return blurred_logits(means_on_device(rows, **self.state()))
        trees = (self.features, self.lefts, self.thresholds, self.values)
        parts = []
        for start in range(0, rows.shape[0], CHUNK):
            part = rows[start : start + CHUNK]
            parts.append(self._mean(part.toarray() if sparse.issparse(part) else part, trees))
        shares = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return blurred_logits(shares)

    def _mean(self, rows: Array, trees: tuple[Array, ...]) -> Array:
        means = self.walk.means(rows)
        if means is not None:
            return means
        features, lefts, thresholds, values = trees
        flat = rows.reshape(-1)
        firsts = np.arange(len(rows)) * rows.shape[1]
        total = 0.0
        for root, depth in zip(self.roots.tolist(), self.depths.tolist(), strict=True):
            nodes = np.zeros_like(firsts) + root
            for _ in range(depth):
                nodes = lefts[nodes] + (flat[firsts + features[nodes]] > thresholds[nodes])
            total = total + values[nodes]
        return total / len(self.roots)

    def out_of_bag(self, rows: np.ndarray, outside: np.ndarray) -> np.ndarray:
        """Logits of labelled rows from the trees that did not see them; even where all did.

        ``outside`` (trees, l) says which trees did not.
        """
        rows = rounded_up(rows)
        flat, trees, places = rows.reshape(-1), *np.nonzero(outside)
        leaves = self.roots[trees]
        for start in range(0, len(trees), CHUNK):
            part = slice(start, start + CHUNK)
            firsts, nodes = places[part] * rows.shape[1], leaves[part]
            for _ in range(int(self.depths[trees[part]].max())):
                right = flat.take(firsts + self.features.take(nodes)) > self.thresholds.take(nodes)
                nodes = self.lefts.take(nodes) + right
            leaves[part] = nodes
        columns = [np.bincount(places, column.take(leaves), len(rows)) for column in self.values.T]
        shares = np.stack(columns, axis=1)
        n_trees = outside.sum(axis=0)[:, None]
        return np.asarray(
            blurred_logits(
                np.where(n_trees, shares, 1.0) / np.where(n_trees, n_trees, shares.shape[1])
            )
        )


class ForestMember(Member):
    """A random forest, where rows are a table."""

    name, worth = "forest", 0.02
    says_shares = True
    words = "decision trees on the labelled rows"
    model = Forest

    @classmethod
    def candidates(cls, evidence: TrainingSet) -> list[Self]:
        """None on principal components and on directions of words.

        Thresholds on them say little that distances do not: without trees MNIST and Fashion-MNIST
        gain or lose less than 0.3 points at 30 to 11,401 labels, and a fit a quarter of its time.
        """
        n_labelled, n_features = evidence.rows.shape
        labels = evidence.problem.labels
        fits = n_labelled >= MIN_LABELS and n_features <= MAX_FEATURES
        trees = EFFORTS[evidence.problem.settings.effort].trees
        fits = fits and _tree_bytes(trees, len(labels.rows), labels.n_classes) <= MOST_BYTES
        return [cls()] if fits and evidence.kind == "table" else []

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """scikit-learn's trees and ours, and what walks down them."""
        if size.n_labelled < MIN_LABELS:
            return Cost()
        if size.n_features >= PROJECT_ABOVE:
            return Cost()  # projected, most likely
        trees = EFFORTS[size.effort].trees
        needed = _tree_bytes(trees, size.n_labelled, size.n_classes)
        if needed > MOST_BYTES:
            return Cost()
        return Cost(
            fixed=needed,
            seconds={"labels": TREE_STEP * USUAL_DEPTH * trees * size.n_rows},
        )

    @classmethod
    def left_out(cls, evidence: TrainingSet) -> list[dict[str, Any]]:
        """Trees that a larger effort would grow."""
        taken, most = EFFORTS[evidence.problem.settings.effort].trees, MOST_TREES
        if taken == most or not cls.candidates(evidence):
            return []
        more = TREE_STEP * USUAL_DEPTH * (most - taken) * evidence.problem.labels.n_rows
        return [left_out("trees", taken, most, more, None)]

    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Grow the trees; each says what it thinks of the rows it did not see."""
        given, rows, settings = evidence.labelled.given, evidence.rows, evidence.problem.settings
        forest, held_out = grow_forest(
            rows.toarray() if sparse.issparse(rows) else rows,
            evidence.labelled.codes,
            len(evidence.log_prior),
            settings.seed,
            None if given is None else given.sum(axis=1),
            EFFORTS[settings.effort].trees,
            evidence.problem.graph.engine.n_threads,
        )
        held_out[evidence.lone] = np.nan
        held_out += lost_shares(evidence.targets)
        return MemberFit(forest, held_out, forest.of(evidence.sample_rows))


def lost_shares(targets: np.ndarray) -> np.ndarray:
    """What the logit of a row's own class lacks because its own label was held out.  (l, c).

    Trees that did not see a row saw n_c − w labels of its class, and the shares of the classes are
    taken off with all n_c of them counted (``Trained.log_shares``).
    """
    counts = targets.sum(axis=0)
    left = counts - targets
    known = (targets > 0) & (left > 1e-9 * counts)
    return np.asarray(np.log(np.where(known, counts, 1.0) / np.where(known, left, 1.0)))


def _tree_bytes(trees: int, n_labelled: int, n_classes: int) -> int:
    """What scikit-learn's trees and ours take together."""
    each = NODES_PER_LABEL if n_classes <= FEW_CLASSES else MOST_NODES_PER_LABEL
    nodes = trees * each * min(n_labelled, MOST_LABELLED)
    return int(nodes * (84 + 12 * n_classes))


def blurred_logits(shares: Array) -> Array:
    """Logarithm of class distributions, none of them certain."""
    return namespace(shares).log((1.0 - BLUR) * shares + BLUR / shares.shape[1])


def grow_forest(
    rows: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    seed: int,
    weights: np.ndarray | None = None,
    trees: int = EFFORTS[DEFAULT_EFFORT].trees,
    n_threads: int = 1,
) -> tuple[Forest, np.ndarray]:
    """Learn a forest; also what the trees that did not see a labelled row say of it.

    ``rows``: (l, m): labelled rows; ``codes``: (l,): their classes; ``weights``: (l,): how much
    each label counts; of a distribution, trees take the largest share for the label;
    ``held_out``: (l, c): logits of each row from the trees whose bootstrap sample left it out.
    """
    tried = max(int(np.sqrt(rows.shape[1])), 1)
    if len(rows) * tried <= SIDE_BY_SIDE:
        rng = np.random.default_rng(seed)
        counts = drawn_counts(trees, len(rows), weights, rng)
        grown = grow(Table.of(rows, codes, n_classes), counts, tried, rng)
    else:
        grown, counts = grow_many(rows, codes, seed, weights, trees, n_threads)
        known = np.unique(codes)
        if len(known) < n_classes:
            values = np.zeros((len(grown["values"]), n_classes), dtype=np.float32)
            values[:, known] = grown["values"]
            grown["values"] = values
    forest = Forest(**grown)
    return forest, forest.out_of_bag(rows, counts == 0)
