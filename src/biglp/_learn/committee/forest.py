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
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse

from biglp._algebra.systems import MOST_LABELLED
from biglp._compiled import native
from biglp._core.arrays import Array, Rows, is_torch, namespace
from biglp._core.size import DEFAULT_EFFORT, EFFORTS, SKLEARN, TREE_STEP, Cost, Size
from biglp._learn.committee.member import Member, MemberFit, MemberModel, TrainingSet
from biglp._learn.committee.trees import FEW, Walk, means_on_device, rounded_down, rounded_up
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


def grow(
    rows: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    counts: np.ndarray,
    tried: int,
    rng: np.random.Generator,
) -> Arrays:
    """Grow a tree on each line of counts.

    ``counts``: (trees, l); ``tried``: features that a node looks at; ``arrays``: those of
    :class:`biglp._learn.committee.forest.Forest`.
    """
    # Thresholds look at ranks within each feature only; equal values share one.  (l, m).
    rows, codes, n_ranks = rounded_up(rows), codes.astype(np.int64), len(codes)
    order = np.argsort(rows, axis=0, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=0)
    steps = np.zeros(rows.shape, dtype=np.int32)
    steps[1:] = ordered[1:] != ordered[:-1]
    ranked = np.cumsum(steps, axis=0, dtype=np.int32)
    ranks, values = np.empty_like(ranked), np.zeros_like(rows)
    np.put_along_axis(ranks, order, ranked, axis=0)
    np.put_along_axis(values, ranked, ordered, axis=0)

    # A level of all trees: which labelled row each of its rows is, sorted by node, and how often
    # its tree has drawn it; the rows of each node, and its tree.
    trees, rows = np.nonzero(counts)
    weights, sizes = counts[trees, rows], np.bincount(trees, minlength=len(counts))
    trees, depths = np.arange(len(counts)), np.zeros(len(counts), dtype=np.int64)
    levels: list[Arrays] = []
    n_nodes = 0
    while len(sizes):
        nodes = np.repeat(np.arange(len(sizes)), sizes)
        places = nodes * n_classes + codes[rows]
        classes = np.bincount(places, weights, len(sizes) * n_classes).astype(np.int64)
        classes = classes.reshape(-1, n_classes)
        n_nodes += len(classes)
        level = {
            "features": np.zeros(len(classes), dtype=np.int64),
            "thresholds": np.full(len(classes), np.inf, dtype=np.float32),
            "lefts": np.arange(n_nodes - len(classes), n_nodes),  # a leaf is its own left child
            "values": (classes / classes.sum(axis=1, keepdims=True)).astype(np.float32),
            "trees": trees,
        }
        levels.append(level)
        # Nodes of one class are leaves.
        mixed = (classes > 0).sum(axis=1) > 1
        if not mixed.any():
            break
        rows, weights = rows[mixed[nodes]], weights[mixed[nodes]]
        sizes, trees, classes = sizes[mixed], trees[mixed], classes[mixed]
        nodes, starts = np.repeat(np.arange(len(sizes)), sizes), np.cumsum(sizes) - sizes

        # Features that each node tries, those that are constant among its rows last.  (a, f).
        here = ranks[rows]
        least = np.minimum.reduceat(here, starts, axis=0)
        constant = least == np.maximum.reduceat(here, starts, axis=0)
        keys = rng.random(constant.shape)
        keys[constant] += 1.0
        features = np.argsort(keys, axis=1)[:, :tried]

        # One line for each pair of a feature's place and a node; rows of a line sorted by value.
        n_rows, n_split = len(rows), len(sizes)
        lines = np.arange(tried)[:, None] * n_split + nodes
        key = (lines * n_ranks + ranks[rows[:, None], features[nodes]].T).ravel()
        order = np.argsort(key, kind="stable")
        key, place = key[order], order % n_rows
        firsts = (np.arange(tried)[:, None] * n_rows + starts).ravel()
        lengths = np.tile(sizes, tried)
        code, weight, node = codes[rows][place], weights[place], nodes[place]

        # Weight of the rows of the same class before each row of its line.
        groups = np.repeat(np.arange(len(lengths)), lengths) * (code.max() + 1) + code
        order = np.argsort(groups, kind="stable")
        ordered, groups = weight[order], groups[order]
        begins = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
        sums = _along(ordered, begins, np.diff(np.append(begins, len(groups))))
        own = np.empty_like(sums)
        own[order] = sums - ordered

        # What each threshold leaves: the larger, the less impurity.
        squares = _along(weight * (2 * own + weight), firsts, lengths)
        shared = _along(weight * classes[node, code], firsts, lengths)
        left = _along(weight, firsts, lengths)
        right = classes.sum(axis=1)[node] - left
        rest = (classes**2).sum(axis=1)[node] - 2 * shared + squares
        last = np.zeros(len(key), dtype=bool)  # of its value, and not of its line
        last[:-1] = key[1:] != key[:-1]
        last[firsts + lengths - 1] = False
        score = np.where(last, squares / left + rest / np.maximum(right, 1), -1.0)

        # The best threshold of each node, the first among equals, and the ranks on both sides of
        # it; none where all rows of the node are equal.
        best = np.maximum.reduceat(score, firsts)
        places = np.where(score == np.repeat(best, lengths), np.arange(len(score)), len(score))
        here = np.arange(n_split)
        slot = best.reshape(tried, n_split).argmax(axis=0)
        at = np.minimum.reduceat(places, firsts).reshape(tried, n_split)[slot, here]
        found = score[at] >= 0
        feature, below = features[here, slot], key[at] % n_ranks
        above = key[np.where(found, at + 1, at)] % n_ranks
        split = np.flatnonzero(mixed)[found]
        level["features"][split] = feature[found]
        level["thresholds"][split] = rounded_down(
            values[below[found], feature[found]].astype(np.float64) / 2
            + values[above[found], feature[found]].astype(np.float64) / 2
        )
        level["lefts"][split] = n_nodes + 2 * np.arange(len(split))

        # The level below.
        child = 2 * (np.cumsum(found) - 1)[nodes] + (ranks[rows, feature[nodes]] > below[nodes])
        order = np.flatnonzero(found[nodes])
        order = order[np.argsort(child[order], kind="stable")]
        rows, weights = rows[order], weights[order]
        sizes = np.bincount(child[order], minlength=2 * len(split))
        trees = np.repeat(trees[found], 2)
        depths[trees] = len(levels)

    arrays = {name: np.concatenate([level[name] for level in levels]) for name in levels[0]}
    trees = arrays.pop("trees")
    order = np.argsort(trees, kind="stable")  # the nodes of a tree together, siblings still so
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    arrays = {name: array[order] for name, array in arrays.items()}
    arrays["lefts"] = number[arrays["lefts"]]
    roots = np.searchsorted(trees[order], np.arange(len(counts)))
    return {**arrays, "roots": roots, "depths": depths}


def _along(numbers: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sums from the beginning of each line to each number of it."""
    sums = np.cumsum(numbers)
    return np.asarray(sums - np.repeat(sums[starts] - numbers[starts], sizes))


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
) -> tuple[Arrays, np.ndarray]:
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
    packed, drawn = [tree for tree, _ in grown], np.array([counts for _, counts in grown])
    sizes = [len(tree["features"]) for tree in packed]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    for tree, root in zip(packed, roots, strict=True):
        tree["lefts"] += root
    names = tuple(packed[0])
    arrays = {name: np.concatenate([tree.pop(name) for tree in packed]) for name in names}
    return {**arrays, "roots": roots}, drawn


def _grown(
    rows: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, powers: np.ndarray, seed: int
) -> tuple[Arrays, np.ndarray]:
    """A tree, renumbered so that siblings are neighbours, and how often it has drawn each row."""
    from sklearn import config_context  # slow to load, and seldom needed
    from sklearn.tree import DecisionTreeClassifier

    rng, count = np.random.RandomState(seed), len(rows)
    if weights is None:
        drawn = rng.randint(0, count, count)
    else:
        drawn = rng.choice(count, count, p=weights / weights.sum())
    counts = np.bincount(drawn, minlength=count)
    model = DecisionTreeClassifier(max_features="sqrt", random_state=seed)
    with config_context(skip_parameter_validation=True):
        model.fit(rows, codes, counts.astype(np.float64), check_input=False)
    tree = model.tree_
    left, right = tree.children_left, tree.children_right
    levels = [np.zeros(1, dtype=np.intp)]
    while len(inner := levels[-1][left[levels[-1]] >= 0]):
        levels.append(np.stack([left[inner], right[inner]], axis=1).ravel())
    old = np.concatenate(levels)  # parents before children
    new = np.empty(len(old), dtype=np.int64)
    new[old] = np.arange(len(old))
    leaf = left[old] < 0
    feature = np.where(leaf, 0, tree.feature[old])
    limits = rounded_down(np.ldexp(tree.threshold[old], powers[feature]))
    arrays = {
        "features": feature.astype(np.int64),
        "thresholds": np.where(leaf, np.float32(np.inf), limits).astype(np.float32),
        "lefts": np.where(leaf, np.arange(len(old)), new[left[old]]),
        "depths": np.array([tree.max_depth]),
        "values": tree.value[old, 0, :].astype(np.float32),
    }
    return arrays, counts


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


@dataclass(eq=False)
class Forest(Walk, MemberModel):
    """Trees one after the other in flat arrays."""

    def __post_init__(self) -> None:
        """Refuse arrays of a damaged file that would lead down a tree without end."""
        sizes = np.diff(self.roots, append=len(self.features))
        if (self.depths < 0).any() or (self.depths > np.maximum(sizes, 0)).any():
            raise ValueError("a tree is deeper than it has nodes")

    @property
    def row_seconds(self) -> float:  # type: ignore[override]
        """That of a step, as many times as trees are deep."""
        return TREE_STEP * float(self.depths.sum())

    def of(self, rows: Rows) -> Array:
        """Logarithm of the trees' mean class distribution, blurred.  (b, m) → (b, c)."""
        if is_torch(rows):
            return blurred_logits(means_on_device(rows, **self.state()))
        parts = []
        for start in range(0, rows.shape[0], CHUNK):
            part = rows[start : start + CHUNK]
            part = part.toarray() if sparse.issparse(part) else part
            means = self.means(part, self.expected)
            if means is None:  # NumPy's way: a step for all rows at once
                flat, firsts = part.reshape(-1), np.arange(len(part)) * part.shape[1]
                total: Any = 0.0
                for root, depth in zip(self.roots.tolist(), self.depths.tolist(), strict=True):
                    nodes = np.zeros_like(firsts) + root
                    for _ in range(depth):
                        above = flat[firsts + self.features[nodes]] > self.thresholds[nodes]
                        nodes = self.lefts[nodes] + above
                    total = total + self.values[nodes]
                means = total / len(self.roots)
            parts.append(means)
        return blurred_logits(parts[0] if len(parts) == 1 else np.concatenate(parts))


class ForestMember(Member):
    """A random forest, where rows are a table."""

    name, worth = "forest", 0.02
    says_shares = True
    words = "decision trees on the labelled rows"
    model = Forest
    # Thresholds on principal components and on directions of words say little that distances do
    # not: without trees MNIST and Fashion-MNIST gain or lose less than 0.3 points at 30 to 11,401
    # labels, and a fit a quarter of its time.
    kinds = ("table",)

    @classmethod
    def candidates(cls, evidence: TrainingSet) -> list[Self]:
        """None where labels are too few, or trees would be too large."""
        n_labelled, n_features = evidence.rows.shape
        labels = evidence.problem.labels
        trees = EFFORTS[evidence.problem.settings.effort].trees
        small = _tree_bytes(trees, len(labels.rows), labels.n_classes) <= MOST_BYTES
        fits = n_labelled >= MIN_LABELS and n_features <= MAX_FEATURES and small
        return super().candidates(evidence) if fits else []

    @classmethod
    def cost(cls, size: Size) -> Cost:
        """scikit-learn's trees and ours, and what walks down them."""
        trees = EFFORTS[size.effort].trees
        needed = _tree_bytes(trees, size.n_labelled, size.n_classes)
        # Many features are projected, most likely.
        few = size.n_labelled < MIN_LABELS or size.n_features >= PROJECT_ABOVE
        if few or needed > MOST_BYTES:
            return Cost()
        seconds = {"labels": TREE_STEP * USUAL_DEPTH * trees * size.n_rows}
        learnt = min(size.n_labelled, MOST_LABELLED)
        together = learnt * int(np.sqrt(size.n_features)) <= SIDE_BY_SIDE
        ours = together and (native.can_run() or size.n_rows <= FEW)
        return Cost(libraries={} if ours else SKLEARN, fixed=needed, seconds=seconds)

    def learn(self, evidence: TrainingSet) -> MemberFit:
        """Grow the trees; each says what it thinks of the rows it did not see."""
        part, rows, settings = evidence.part, evidence.rows, evidence.problem.settings
        trees = EFFORTS[settings.effort].trees
        forest, held_out = grow_forest(
            rows.toarray() if sparse.issparse(rows) else rows,
            part.codes,
            evidence.problem.labels.n_classes,
            settings.seed,
            None if part.given is None else part.given.sum(axis=1),
            trees,
            evidence.problem.graph.engine.n_threads,
        )
        held_out[evidence.lone] = np.nan
        held_out += lost_shares(evidence.targets)
        more = TREE_STEP * USUAL_DEPTH * (MOST_TREES - trees) * evidence.problem.labels.n_rows
        left = ("trees", trees, MOST_TREES, more) if trees < MOST_TREES else None
        return MemberFit(forest, held_out, forest.of(evidence.sample_rows), left_out=left)


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
    ``held_out``: (l, c): logits of each row from the trees whose bootstrap sample left it out; even
    where none did.
    """
    tried = max(int(np.sqrt(rows.shape[1])), 1)
    if len(rows) * tried <= SIDE_BY_SIDE:
        rng = np.random.default_rng(seed)
        counts = drawn_counts(trees, len(rows), weights, rng)
        grown = grow(rows, codes, n_classes, counts, tried, rng)
    else:
        grown, counts = grow_many(rows, codes, seed, weights, trees, n_threads)
        known, values = np.unique(codes), grown["values"]
        if len(known) < n_classes:
            grown["values"] = np.zeros((len(values), n_classes), dtype=np.float32)
            grown["values"][:, known] = values
    forest = Forest(**grown)

    # Every row goes down the trees that did not see it.
    rows, outside = rounded_up(rows), counts == 0
    flat, numbers, places = rows.reshape(-1), *np.nonzero(outside)
    leaves = forest.roots[numbers]
    for start in range(0, len(numbers), CHUNK):
        part = slice(start, start + CHUNK)
        firsts, nodes = places[part] * rows.shape[1], leaves[part]
        for _ in range(int(forest.depths[numbers[part]].max())):
            limits = forest.thresholds.take(nodes)
            right = flat.take(firsts + forest.features.take(nodes)) > limits
            nodes = forest.lefts.take(nodes) + right
        leaves[part] = nodes
    columns = [np.bincount(places, column.take(leaves), len(rows)) for column in forest.values.T]
    n_trees = outside.sum(axis=0)[:, None]
    shares = np.where(n_trees, np.stack(columns, axis=1), 1.0)
    shares = shares / np.where(n_trees, n_trees, n_classes)
    return forest, np.asarray(blurred_logits(shares))
