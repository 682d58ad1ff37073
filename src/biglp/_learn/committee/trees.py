"""Ways down the trees of a forest on a processor: which leaf of each tree a row ends in.

There are three, with the same comparisons and the same order of additions, so that answers have the
same bits whichever is taken. NumPy's needs nothing; the compiled one wants trees packed, and is
taken where there are compiled loops; scikit-learn's own trees are filled from the plain arrays (no
pickle), and take a second to load where nothing else has loaded them. So another way than NumPy's
is taken once the rows that were asked about have paid for it: new rows may be a handful or a
billion. A fit says beforehand how many there will be, and then there is one way from the first row
on.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biglp._compiled import native
from biglp._compiled.packed_trees import Packed
from biglp._core.arrays import Array, beside, namespace

FEW = 10_000
"""Rows up to which NumPy is done before scikit-learn's trees are loaded."""
FEW_PACKED = 100
"""Rows up to which NumPy is done before trees are packed."""


@dataclass(eq=False)
class Walk:
    """The trees of a forest, and how many rows they were asked about."""

    # (nodes,): test of each node, and its left child
    features: np.ndarray
    thresholds: np.ndarray
    lefts: np.ndarray
    values: np.ndarray  # (nodes, c): class distribution of each node
    # (trees,)
    roots: np.ndarray
    depths: np.ndarray
    asked: int = field(default=0, init=False)
    _trees: list[Any] | None = field(default=None, init=False)
    _packed: Packed | bool | None = field(default=None, init=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    def means(self, rows: np.ndarray, expected: int = 0) -> np.ndarray | None:
        """Mean class distribution of the trees; None: NumPy's way is the quickest so far.

        ``expected`` rows will be asked about in all. Threads that count at the same time may lose a
        few rows, which does not matter.
        """
        self.asked += len(rows)
        totals = None
        if max(expected, self.asked) > FEW_PACKED and native.can_run():
            with self._lock:  # one thread packs
                if self._packed is None:
                    self._packed = Packed.of(self, native.tree_tile()) or False
            if isinstance(self._packed, Packed) and rows.shape[1] > int(self.features.max()):
                wide = None if rows.dtype == np.float64 else np.float32
                totals = native.tree_totals(np.ascontiguousarray(rows, wide), self._packed)
                totals = totals[:, : self.values.shape[1]]
        if totals is None:
            if self.asked <= FEW and "sklearn.tree" not in sys.modules:
                return None
            totals = self._by_trees(rounded_up(rows))
        if totals is not None:
            totals /= np.float32(len(self.roots))
        return totals

    def _by_trees(self, rows: np.ndarray) -> np.ndarray | None:
        if self._trees is None:
            self._trees = _sklearn_trees(self)
        if not self._trees:
            return None
        totals = np.zeros((len(rows), self.values.shape[1]), dtype=np.float32)
        added = np.empty_like(totals)
        for tree, root in zip(self._trees, self.roots.tolist(), strict=True):
            leaves = tree.apply(rows)
            leaves += root
            totals += self.values.take(leaves, axis=0, out=added, mode="clip")
        return totals


def rounded_up(rows: np.ndarray) -> np.ndarray:
    """The same rows in float32, those between two numbers as the larger one.

    Thresholds are float32: a number is above one of them exactly when it is so rounded up.
    """
    nearest = np.ascontiguousarray(rows, dtype=np.float32)
    if rows.dtype == np.float32:
        return nearest
    return np.where(nearest < rows, np.nextafter(nearest, np.float32(np.inf)), nearest)


def rounded_down(exact: np.ndarray) -> np.ndarray:
    """float64 thresholds in float32: float32 numbers fall on the same side of both."""
    limits = exact.astype(np.float32)
    return np.where(limits > exact, np.nextafter(limits, np.float32(-np.inf)), limits)


def _sklearn_trees(walk: Walk) -> list[Any]:
    """scikit-learn's trees with our nodes; none where its nodes have become others."""
    from sklearn.tree import _tree  # private, but as it is since release 1.3

    wanted = {"left_child", "right_child", "feature", "threshold"}
    if not wanted <= set(getattr(_tree.NODE_DTYPE, "names", ())):
        return []
    trees, width = [], int(walk.features.max()) + 1
    ends = np.append(walk.roots[1:], len(walk.features)).tolist()
    for root, end, depth in zip(walk.roots.tolist(), ends, walk.depths.tolist(), strict=True):
        lefts = walk.lefts[root:end] - root
        leaf = lefts == np.arange(len(lefts))
        nodes = np.zeros(len(lefts), dtype=_tree.NODE_DTYPE)
        nodes["left_child"] = np.where(leaf, -1, lefts)
        nodes["right_child"] = np.where(leaf, -1, lefts + 1)
        nodes["feature"] = walk.features[root:end]
        nodes["threshold"] = np.where(leaf, 0.0, walk.thresholds[root:end])
        tree = _tree.Tree(width, np.ones(1, dtype=np.intp), 1)
        # Only leaves are asked for: what these say stays with the forest.
        state = {"max_depth": depth, "node_count": len(lefts), "nodes": nodes}
        tree.__setstate__({**state, "values": np.zeros((len(lefts), 1, 1))})
        trees.append(tree)
    return trees


# --------------------------------------------------------------------------------------------------
# The way down the trees of a forest on a GPU: all trees at once, in a few launches a step.


DEVICE_WALKS = 1 << 22
"""Rows × trees that are on their way down together, where launching is what takes the time."""


def means_on_device(
    rows: Array, roots: np.ndarray, depths: np.ndarray, **arrays: np.ndarray
) -> Array:
    """Mean class distribution of rows; the trees are copied once a block.  (b, m) → (b, c).

    ``rows``: (b, m); ``roots, depths``: (trees,); ``**arrays``: (nodes,), and (nodes, c) of
    values; ``features``, ``thresholds``, ``lefts`` and ``values`` of :class:`.forest.Forest`.
    """
    torch, parts = namespace(rows), []
    nodes_of = {name: beside(rows, array) for name, array in arrays.items()}
    features, lefts, thresholds = (nodes_of[name] for name in ("features", "lefts", "thresholds"))
    values, starts = nodes_of["values"].to(rows.dtype), beside(rows, roots)
    step = max(DEVICE_WALKS // len(roots), 1)
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        nodes = starts.expand(part.shape[0], -1)
        for _ in range(int(depths.max())):  # a leaf is its own child: short trees wait for others
            nodes = lefts[nodes] + (part.gather(1, features[nodes]) > thresholds[nodes])
        parts.append(torch.nn.functional.embedding_bag(nodes, values, mode="mean"))
    return torch.concatenate(parts)
