"""The compiled walk down the trees (``pip install "biglp[fast]"``).

A step needs the result of the one before, and so a row's walk waits for memory most of the time.
Several rows go down a tree side by side: while one waits, others move. All take as many steps as
the longest of them, which costs nothing but arithmetic, because a leaf leads to itself; every few
steps they are asked whether all have arrived. Numbers of nodes have no sign: numba would look for
negative ones at each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

SIDE_BY_SIDE, LOOK_EVERY = 32, 4
NODE = np.uint32


def _add_leaves(rows: Any, nodes: Any, trees: Any, values: Any, totals: Any) -> None:
    """Add the class distributions of the leaves that rows end in to ``totals``.

    Parameters
    ----------
    rows : ndarray of shape (b, m), float32
    nodes : tuple of ndarrays
        Feature, threshold and left child of each node.
    trees : tuple of ndarrays
        First node and depth of each tree.
    values : ndarray of shape (nodes, c)
    totals : ndarray of shape (b, c)
        Trees are added in their order, as NumPy would.
    """
    features, thresholds, lefts = nodes
    roots, depths = trees
    n_rows, width = rows.shape
    flat = rows.ravel()
    here = np.empty(SIDE_BY_SIDE, NODE)
    after = np.empty(SIDE_BY_SIDE, NODE)
    firsts = np.empty(SIDE_BY_SIDE, NODE)
    for tree in range(len(roots)):
        for start in range(0, n_rows, SIDE_BY_SIDE):
            count = min(SIDE_BY_SIDE, n_rows - start)
            for k in range(SIDE_BY_SIDE):
                here[k] = roots[tree]
                # Places after the last row go along with it, and nobody asks where they end.
                firsts[k] = NODE(min(start + k, n_rows - 1) * width)
            for step in range(depths[tree]):
                if step % LOOK_EVERY == LOOK_EVERY - 1:
                    moving = NODE(0)
                    for k in range(SIDE_BY_SIDE):
                        moving |= lefts[here[k]] ^ here[k]
                    if moving == 0:
                        break
                for k in range(SIDE_BY_SIDE):
                    node = here[k]
                    right = flat[NODE(firsts[k] + features[node])] > thresholds[node]
                    after[k] = NODE(lefts[node] + NODE(right))
                for k in range(SIDE_BY_SIDE):
                    here[k] = after[k]
            for k in range(count):
                leaf = here[k]
                for j in range(values.shape[1]):
                    totals[start + k, j] += values[leaf, j]


def _compile(function: Any) -> Any:
    try:
        return njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # nowhere to keep what was compiled: once a process, then
        return njit(nogil=True, error_model="numpy")(function)


add_leaves = _compile(_add_leaves)
