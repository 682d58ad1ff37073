"""The way down the trees of a forest on a GPU: all trees at once, in a few launches a step."""

from __future__ import annotations

import numpy as np

from biglp._core.arrays import Array, beside, namespace

DEVICE_WALKS = 1 << 22
"""Rows × trees that are on their way down together, where launching is what takes the time."""


def means_on_device(
    rows: Array, roots: np.ndarray, depths: np.ndarray, **arrays: np.ndarray
) -> Array:
    """Mean class distribution of rows; the trees are copied once a block.  (b, m) → (b, c).

    Parameters
    ----------
    rows : torch tensor of shape (b, m)
    roots, depths : ndarrays of shape (trees,)
    **arrays : ndarrays of shape (nodes,), and (nodes, c) of values
        ``features``, ``thresholds``, ``lefts`` and ``values`` of :class:`.forest.Forest`.
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
