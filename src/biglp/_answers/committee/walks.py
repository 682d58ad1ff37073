"""Ways down the trees of a forest on a processor: which leaf of each tree a row ends in.

There are three, with the same comparisons and the same order of additions, so that answers have the
same bits whichever is taken. NumPy's needs nothing; scikit-learn's own trees are filled from the
plain arrays (no pickle), and take a second to load where nothing else has loaded them; the compiled
one (``pip install "biglp[fast]"``) takes the better part of a second to load as well. So each is
taken once the rows that were asked about have paid for it: new rows may be a handful or a billion.
A fit says beforehand how many there will be, and then there is one way from the first row on.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FEW = 10_000
"""Rows up to which loading scikit-learn for them takes longer than NumPy does."""
MANY = 500_000
"""Rows that were asked about from which on the compiled walk is worth loading."""
EXPECTED_MANY = 1_000_000
"""The same for rows that are expected: loading takes one thread, walking all of them."""


def has_compiled() -> bool:
    """Whether the compiled walk is installed; nothing is loaded."""
    return importlib.util.find_spec("numba") is not None


@dataclass
class Walk:
    """The trees of a forest, and how many rows they were asked about.

    Attributes
    ----------
    features, thresholds, lefts, values, roots, depths : ndarrays
        Those of :class:`biglp._answers.committee.forest.Forest`.
    """

    features: np.ndarray
    thresholds: np.ndarray
    lefts: np.ndarray
    values: np.ndarray
    roots: np.ndarray
    depths: np.ndarray
    asked: int = field(default=0, init=False)
    expected: int = field(default=0, init=False)
    _trees: list[Any] | None = field(default=None, init=False)
    _kernel: Any = field(default=None, init=False)

    def means(self, rows: np.ndarray) -> np.ndarray | None:
        """Mean class distribution of the trees; None: NumPy's way is the quickest so far.

        Threads that count at the same time may lose a few rows, which does not matter.
        """
        self.asked += len(rows)
        if self.asked <= FEW and "sklearn.tree" not in sys.modules:
            return None
        rows = rounded_up(rows)
        if self._many() and has_compiled():
            totals = self._compiled(rows)
        else:
            found = self._by_trees(rows)
            if found is None:
                return None
            totals = found
        return totals / len(self.roots)

    def _many(self) -> bool:
        """Whether rows are so many that the compiled walk has paid, or will pay."""
        if not self.expected:
            return self.asked > MANY
        # Where other steps of the fit have loaded numba, only the walk is left to load.
        return self.expected > (MANY // 10 if "numba" in sys.modules else EXPECTED_MANY)

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

    def _compiled(self, rows: np.ndarray) -> np.ndarray:
        if self._kernel is None:
            from biglp._answers.committee.compiled import add_leaves

            small = (self.features, self.lefts, self.roots, self.depths)
            self._kernel = (add_leaves, *(array.astype(np.uint32) for array in small))
        add_leaves, features, lefts, roots, depths = self._kernel
        totals = np.zeros((len(rows), self.values.shape[1]), dtype=np.float32)
        nodes = (features, self.thresholds, lefts)
        add_leaves(rows, nodes, (roots, depths), self.values, totals)
        return totals


def rounded_up(rows: np.ndarray) -> np.ndarray:
    """The same rows in float32, those between two numbers as the larger one.

    Thresholds are float32: a number is above one of them exactly when it is so rounded up.
    """
    found = np.ascontiguousarray(rows, dtype=np.float32)
    if rows.dtype == np.float32:
        return found
    return np.where(found < rows, np.nextafter(found, np.float32(np.inf)), found)


def _sklearn_trees(walk: Walk) -> list[Any]:
    """scikit-learn's trees with our nodes; none where its nodes have become others."""
    from sklearn.tree import _tree  # private, but as it is since release 1.3

    wanted = {"left_child", "right_child", "feature", "threshold"}
    if not wanted <= set(getattr(_tree.NODE_DTYPE, "names", ())):
        return []
    ends = np.append(walk.roots[1:], len(walk.features))
    return [
        _sklearn_tree(walk, _tree, slice(root, end), depth)
        for root, end, depth in zip(
            walk.roots.tolist(), ends.tolist(), walk.depths.tolist(), strict=True
        )
    ]


def _sklearn_tree(walk: Walk, module: Any, part: slice, depth: int) -> Any:
    lefts = walk.lefts[part] - part.start
    leaf = lefts == np.arange(len(lefts))
    nodes = np.zeros(len(lefts), dtype=module.NODE_DTYPE)
    nodes["left_child"] = np.where(leaf, -1, lefts)
    nodes["right_child"] = np.where(leaf, -1, lefts + 1)
    nodes["feature"] = walk.features[part]
    nodes["threshold"] = np.where(leaf, 0.0, walk.thresholds[part])
    width = int(walk.features.max()) + 1
    tree = module.Tree(width, np.ones(1, dtype=np.intp), 1)
    # Only leaves are asked for: what these say stays with the forest.
    values = np.zeros((len(lefts), 1, 1))
    tree.__setstate__(
        {"max_depth": depth, "node_count": len(lefts), "nodes": nodes, "values": values}
    )
    return tree
