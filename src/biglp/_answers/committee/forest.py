"""A random forest in plain arrays, kept without pickles and asked in blocks.

Where thresholds on single features decide (network records, instrument readings), neither distances
nor straight lines see it, and trees do. Nodes are numbered so that a node's right child follows its
left one, and a leaf is its own left child with a threshold of infinity. One step down a tree is
then the same arithmetic for every row, leaf or not:

    node ← left[node] + (x[feature[node]] > threshold[node]).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from biglp._algebra.systems import MOST_LABELLED
from biglp._answers.committee.growing import Table, drawn_counts, grow
from biglp._answers.committee.growing_many import grow_many, growing_threads
from biglp._answers.committee.member import (
    Asked,
    Evidence,
    Member,
    MemberFit,
    MemberModel,
    everywhere,
)
from biglp._answers.committee.tree_tensors import means_on_device
from biglp._answers.committee.walks import (
    FEW,
    Walk,
    rounded_up,
)
from biglp._compiled import COMPILER_BYTES, LOOPS, has_compiler
from biglp._core.arrays import Array, Rows, is_torch, namespace
from biglp._core.parameters import DEFAULT_EFFORT, EFFORTS, TREE_STEP, left_out
from biglp._core.size import Cost, Size
from biglp._transforms.project import PROJECT_ABOVE

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
        columns = [np.bincount(places, said.take(leaves), len(rows)) for said in self.values.T]
        shares = np.stack(columns, axis=1)
        asked = outside.sum(axis=0)[:, None]
        return np.asarray(
            blurred_logits(np.where(asked, shares, 1.0) / np.where(asked, asked, shares.shape[1]))
        )


class ForestMember(Member):
    """A random forest, where rows are a table."""

    name, worth = "forest", 0.02
    starts = everywhere(0.0) | {"table": (0.0, 0.22), "clusters": (0.5, 0.95)}
    says_shares = True
    words = "decision trees on the labelled rows"
    model = Forest

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
            libraries={LOOPS: COMPILER_BYTES * (size.n_rows > FEW and has_compiler())},
            fixed=needed,
            seconds={"labels": TREE_STEP * USUAL_DEPTH * trees * size.n_rows},
        )

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
        with growing_threads(evidence.problem.graph.engine.n_threads):
            forest, held_out = grow_forest(
                rows.toarray() if sparse.issparse(rows) else rows,
                evidence.labelled.codes,
                len(evidence.log_prior),
                settings.seed,
                None if given is None else given.sum(axis=1),
                EFFORTS[settings.effort].trees,
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
    tried = max(int(np.sqrt(rows.shape[1])), 1)
    if len(rows) * tried <= SIDE_BY_SIDE:
        rng = np.random.default_rng(seed)
        counts = drawn_counts(trees, len(rows), weights, rng)
        grown = grow(Table.of(rows, codes, n_classes), counts, tried, rng)
    else:
        grown, counts = grow_many(rows, codes, seed, weights, trees)
        known = np.unique(codes)
        if len(known) < n_classes:
            values = np.zeros((len(grown["values"]), n_classes), dtype=np.float32)
            values[:, known] = grown["values"]
            grown["values"] = values
    forest = Forest(**grown)
    return forest, forest.out_of_bag(rows, counts == 0)
