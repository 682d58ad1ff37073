"""A random forest in plain arrays: grown by scikit-learn, kept without pickles, asked in blocks.

Where thresholds on single features decide (network records, instrument readings), neither distances
nor straight lines see it, and trees do. Nodes are numbered so that a node's right child follows its
left one, and a leaf is its own left child with a threshold of infinity. One step down a tree is
then the same arithmetic for every row, leaf or not:

    node ← left[node] + (x[feature[node]] > threshold[node]).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from biglp._answers.base import Extra
from biglp._answers.committee.logistic import MANY_CLASSES
from biglp._answers.committee.member import (
    Asked,
    Evidence,
    Member,
    MemberFit,
    Opinion,
    everywhere,
)
from biglp._answers.committee.tree_tensors import means_on_device
from biglp._answers.committee.walks import COMPILED_BYTES, MANY, Walk, has_compiled
from biglp._core.arrays import Array, Rows, is_torch, namespace
from biglp._core.effort import DEFAULT_EFFORT, EFFORTS, TREE_STEP, left_out
from biglp._core.shape import Shape
from biglp._propagate.systems import MOST_LABELLED
from biglp._sources.directions import PROJECT_ABOVE

BLUR = 0.02
"""Share of every answer that is spread evenly: a few trees that agree are not certain."""
CHUNK = 4096
"""Rows that go down the trees together, so that their nodes stay in the processor's cache."""
MOST_TREES = EFFORTS["best"].trees
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
class Forest(Opinion):
    """Trees one after the other in flat arrays.

    Attributes
    ----------
    features, thresholds, lefts : ndarrays of shape (nodes,)
        Test of each node, and its left child.
    values : ndarray of shape (nodes, c)
        Class distribution of each node.
    roots, depths : ndarrays of shape (trees,)
    """

    features: np.ndarray
    thresholds: np.ndarray
    lefts: np.ndarray
    values: np.ndarray
    roots: np.ndarray
    depths: np.ndarray

    def logits(self, asked: Asked) -> Array:
        """Ask the trees about the rows."""
        return self.of(asked.rows)

    @cached_property
    def walk(self) -> Walk:
        """The way down the trees on a processor, which becomes quicker with the rows asked."""
        return Walk(**self.state())

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
        found = self.walk.means(rows)
        if found is not None:
            return found
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


class ForestMember(Member):
    """A random forest, where rows are a table."""

    name, worth = "forest", 0.02
    starts = everywhere(0.0) | {"table": (0.0, 0.22), "clusters": (0.5, 0.95)}
    says_shares = True
    opinion = Forest

    @classmethod
    def candidates(cls, evidence: Evidence) -> list[Self]:
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
    def extra(cls, shape: Shape) -> Extra:
        """scikit-learn's trees and ours, and what walks down them."""
        if shape.n_labelled < MIN_LABELS:
            return Extra()
        if shape.n_features >= PROJECT_ABOVE:
            return Extra()  # projected, most likely
        trees = EFFORTS[shape.effort].trees
        needed = _tree_bytes(trees, shape.n_labelled, shape.n_classes)
        if needed > MOST_BYTES:
            return Extra()
        return Extra(small=needed + COMPILED_BYTES * (shape.n_rows > MANY and has_compiled()))

    @classmethod
    def left_out(cls, evidence: Evidence) -> list[dict[str, Any]]:
        """Trees that a larger effort would grow."""
        taken, most = EFFORTS[evidence.problem.settings.effort].trees, MOST_TREES
        if taken == most or not cls.candidates(evidence):
            return []
        more = TREE_STEP * USUAL_DEPTH * (most - taken) * evidence.problem.labels.n_rows
        return [left_out("trees", taken, most, more, None)]

    def learn(self, evidence: Evidence) -> MemberFit:
        """Grow the trees; each says what it thinks of the rows it did not see."""
        given, rows, settings = evidence.labelled.given, evidence.rows, evidence.problem.settings
        forest, held_out = grow_forest(
            rows.toarray() if sparse.issparse(rows) else rows,
            evidence.labelled.codes,
            len(evidence.log_prior),
            settings.seed,
            None if given is None else given.sum(axis=1),
            EFFORTS[settings.effort].trees,
        )
        held_out[evidence.lone] = np.nan
        return MemberFit(forest, held_out, forest.of(evidence.sample_rows))


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
) -> tuple[Forest, np.ndarray]:
    """Learn a forest; also what the trees that did not see a labelled row say of it.

    Parameters
    ----------
    rows : ndarray of shape (l, m)
        Labelled rows.
    codes : ndarray of shape (l,)
        Their classes.
    n_classes : int
    seed : int
    weights : ndarray of shape (l,), optional
        How much each label counts; of a distribution, trees take the largest share for the label.
    trees : int

    Returns
    -------
    forest : Forest
    held_out : ndarray of shape (l, c)
        Logits of each row from the trees whose bootstrap sample left it out.
    """
    from sklearn.ensemble import RandomForestClassifier  # slow to load, and seldom needed

    # scikit-learn takes values that differ by less than 1e-7 for equal. Powers of two bring all
    # features to the size of 1 without touching a digit.
    powers = _powers_of_two(rows)
    rows = np.ldexp(rows, -powers)
    grown = RandomForestClassifier(trees, random_state=seed % 2**32)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        grown.fit(rows, codes, weights)
    packed = [_packed(estimator.tree_, powers) for estimator in grown.estimators_]
    sizes = [len(tree["features"]) for tree in packed]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    values = np.zeros((sum(sizes), n_classes), dtype=np.float32)
    values[:, grown.classes_] = np.concatenate([tree["values"] for tree in packed])
    forest = Forest(
        features=np.concatenate([tree["features"] for tree in packed]),
        thresholds=np.concatenate([tree["thresholds"] for tree in packed]),
        lefts=np.concatenate(
            [tree["lefts"] + root for tree, root in zip(packed, roots, strict=True)]
        ),
        values=values,
        roots=roots,
        depths=np.array([estimator.tree_.max_depth for estimator in grown.estimators_]),
    )
    return forest, _out_of_bag(grown, rows, n_classes)


def _powers_of_two(rows: np.ndarray) -> np.ndarray:
    """Power of two next to the range of each feature; 0 for a constant one.  (m,)."""
    ranges = np.ptp(rows.astype(np.float64), axis=0)
    return np.where(ranges > 0, np.frexp(ranges)[1], 0).astype(np.int32)


def _packed(tree: Any, powers: np.ndarray) -> dict[str, np.ndarray]:
    """One of scikit-learn's trees, renumbered so that siblings are neighbours."""
    left, right = tree.children_left, tree.children_right
    order = [0]
    for node in order:  # grows while it is walked through: parents before children
        if left[node] >= 0:
            order += [int(left[node]), int(right[node])]
    old = np.array(order)
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
        "values": tree.value[old, 0, :].astype(np.float32),
    }


def _out_of_bag(grown: Any, rows: np.ndarray, n_classes: int) -> np.ndarray:
    shares = np.zeros((len(rows), n_classes))
    asked = np.zeros(len(rows))
    for tree, drawn in zip(grown.estimators_, grown.estimators_samples_, strict=True):
        outside = np.ones(len(rows), dtype=bool)
        outside[drawn] = False
        if outside.any():
            shares[np.ix_(outside, grown.classes_)] += tree.predict_proba(rows[outside])
            asked += outside
    even = np.full(n_classes, 1.0 / n_classes)
    shares = np.where(asked[:, None] > 0, shares / np.maximum(asked, 1.0)[:, None], even)
    return np.asarray(blurred_logits(shares))
