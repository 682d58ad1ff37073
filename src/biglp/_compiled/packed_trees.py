"""The trees of a forest as the compiled walk wants them.

The upper part of a tree is not walked. Its exits, which are leaves or nodes that the walk goes on
from, are numbered from left to right and have a bit each. A row that is above a node's threshold
cannot leave through the exits left of that node: the node's mask has zeros there. A row's exit is
the lowest bit that is left when all nodes have been asked, in any order, which takes one
comparison and one "and" a node for many rows at once, where a step down the tree takes a dozen
instructions a row (Lucchese et al., "QuickScorer", SIGIR 2015).

Small trees have an upper part only. A large one has so many nodes that most rows never come by
that only the largest of them, those with most leaves below, are asked in this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

BITS = 32
"""Exits of one word."""
SMALL, EXITS = 256, 64
"""Leaves up to which a tree has an upper part only, and exits of the upper part of a larger one."""
PLACE_BITS = 20
"""Bits of a node's left child; its feature has the rest of 32."""
PLACES, MOST_FEATURES = 1 << PLACE_BITS, 1 << (32 - PLACE_BITS)


class Trees(Protocol):
    """The arrays of :class:`biglp._learn.committee.forest.Forest` that are packed."""

    features: np.ndarray
    thresholds: np.ndarray
    lefts: np.ndarray
    values: np.ndarray
    roots: np.ndarray


@dataclass(frozen=True)
class Packed:
    """Packed trees; all arrays are of 32 bits an element, and contiguous.

    Attributes
    ----------
    trees : ndarray of shape (trees, 4)
        First word, end of words, first place, and whether a walk follows.
    words : ndarray of shape (words + 1, 2)
        First of a word's comparisons, and its first exit. The last word of a tree comes first, so
        that of two words which have a bit left the lower one is looked at last.
    comparisons : ndarray of shape (comparisons, 3)
        Where a feature begins in a tile, threshold and mask of an upper node.
    nodes : ndarray of shape (places, 2)
        Threshold, and feature and left child, of exits and of all below. Places begin anew in each
        tree: first its exits in order, then all below.
    values : ndarray of shape (places, padded)
        Class distributions; zeros follow up to a number of columns that vectors like.
    """

    trees: np.ndarray
    words: np.ndarray
    comparisons: np.ndarray
    nodes: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, trees: Trees, tile: int) -> Packed | None:
        """Pack trees for tiles of so many rows; None where they do not fit, or are damaged."""
        lefts, roots = trees.lefts, trees.roots
        inner = lefts != np.arange(len(lefts))
        if not _is_sound(trees, inner):
            return None
        tree = np.repeat(np.arange(len(roots)), np.diff(roots, append=len(lefts)))
        levels = _levels(lefts, roots, inner)
        leaves = _counted(levels, lefts, inner)
        upper = inner & (leaves[roots] <= SMALL)[tree]
        if (leaves[roots] > SMALL).any():
            upper |= inner & (_ranks(tree, -leaves) < EXITS - 1)
        counts = _counted(levels, lefts, upper)
        firsts = np.zeros(len(lefts), dtype=np.int64)
        below = ~upper
        below[roots] = False
        for level in levels:
            parents = level[upper[level]]
            left = lefts[parents]
            firsts[left] = firsts[parents]
            firsts[left + 1] = firsts[parents] + counts[left]
            below[left] = below[left + 1] = False
        words, comparisons = _comparisons(trees, tree, upper, (firsts, counts), tile)
        # Exits in their order, then all below, where siblings stay neighbours.
        kept = np.flatnonzero(~upper)
        kept = kept[
            np.lexsort(
                (np.where(below, np.arange(len(below)), firsts)[kept], below[kept], tree[kept])
            )
        ]
        starts = np.searchsorted(tree[kept], np.arange(len(roots)))
        place = np.zeros(len(lefts), dtype=np.int64)
        place[kept] = np.arange(len(kept)) - starts[tree[kept]]
        nodes = np.empty((len(kept), 2), dtype=np.uint32)
        nodes[:, 0] = trees.thresholds[kept].view(np.uint32)
        nodes[:, 1] = trees.features[kept] << PLACE_BITS | place[lefts[kept]]
        n_words = -(-counts[roots] // BITS)
        ends = np.cumsum(n_words)
        walked = np.bincount(tree[below], minlength=len(roots)) > 0
        facts = np.stack([ends - n_words, ends, starts, walked], axis=1).astype(np.uint32)
        values = np.zeros((len(kept), padded(trees.values.shape[1])), dtype=np.float32)
        values[:, : trees.values.shape[1]] = trees.values[kept]
        return cls(facts, words, comparisons, nodes, values)


def padded(n_classes: int) -> int:
    """Columns that class distributions are stored in."""
    return 2 if n_classes <= 2 else -(-n_classes // 4) * 4


def _is_sound(trees: Trees, inner: np.ndarray) -> bool:
    """Whether nodes are those of trees: others may come from a damaged file."""
    features, lefts, roots = trees.features, trees.lefts, trees.roots
    n_nodes, ends = len(lefts), np.append(roots[1:], len(lefts))
    sizes = ends - roots
    if not len(roots) or roots[0] != 0 or sizes.min() < 1 or sizes.max() > PLACES:
        return False
    if features.min() < 0 or features.max() >= MOST_FEATURES:
        return False
    children = lefts[inner]
    # A child comes after its parent, within the same tree, and has no other parent.
    if (children <= np.flatnonzero(inner)).any() or (
        children + 1 >= np.repeat(ends, sizes)[inner]
    ).any():
        return False
    parents = np.bincount(children, minlength=n_nodes)
    parents[1:] += parents[:-1].copy()
    alone = np.ones(n_nodes, dtype=np.int64)
    alone[roots] = 0
    return bool((parents == alone).all() and np.isposinf(trees.thresholds[~inner]).all())


def _levels(lefts: np.ndarray, roots: np.ndarray, inner: np.ndarray) -> list[np.ndarray]:
    """Nodes of all trees, level by level."""
    levels = [roots]
    while len(parents := levels[-1][inner[levels[-1]]]):
        levels.append(np.concatenate([lefts[parents], lefts[parents] + 1]))
    return levels


def _counted(levels: list[np.ndarray], lefts: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Ends below each node, where nodes that are no parents are ends."""
    counts = np.ones(len(lefts), dtype=np.int64)
    for level in reversed(levels):
        parents = level[parent[level]]
        counts[parents] = counts[lefts[parents]] + counts[lefts[parents] + 1]
    return counts


def _ranks(group: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Rank of each key within its group, whose members are neighbours."""
    order = np.lexsort((keys, group))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order)) - np.searchsorted(group, group)
    return ranks


def _comparisons(
    trees: Trees,
    tree: np.ndarray,
    upper: np.ndarray,
    exits: tuple[np.ndarray, np.ndarray],
    tile: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Words and comparisons of all trees.

    Parameters
    ----------
    trees : Trees
    tree, upper : ndarrays of shape (nodes,)
        Which tree a node is in, and whether it is in the upper part.
    exits : tuple of ndarrays of shape (nodes,)
        First exit of each node, and how many it has.
    tile : int
    """
    firsts, counts = exits
    nodes = np.flatnonzero(upper)
    begin, end = firsts[nodes], firsts[nodes] + counts[trees.lefts[nodes]]
    lowest = begin // BITS
    times = (
        (end - 1) // BITS - lowest + 1
    )  # a node is in each word in which it has exits to its left
    which = np.repeat(np.arange(len(nodes)), times)
    word = lowest[which] + np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
    low = np.maximum(begin[which] - BITS * word, 0).astype(np.uint64)
    high = np.minimum(end[which] - BITS * word, BITS).astype(np.uint64)
    one = np.uint64(1)
    nodes = nodes[which]
    n_words = -(-counts[trees.roots] // BITS)
    ends = np.cumsum(n_words)
    key = ends[tree[nodes]] - 1 - word
    # The loop over a word's comparisons wants one at least: this one leaves all as it is.
    lacking = np.setdiff1d(np.arange(ends[-1]), key)
    found = np.zeros((len(key) + len(lacking), 3), dtype=np.uint32)
    found[: len(key), 0] = trees.features[nodes] * tile
    found[: len(key), 1] = trees.thresholds[nodes].view(np.uint32)
    found[: len(key), 2] = ~((one << high) - (one << low)).astype(np.uint32)
    found[len(key) :, 1:] = np.float32(np.inf).view(np.uint32), 2**BITS - 1
    key = np.append(key, lacking)
    order = np.argsort(key, kind="stable")
    words = np.zeros((ends[-1] + 1, 2), dtype=np.uint32)
    words[:, 0] = np.searchsorted(key[order], np.arange(len(words)))
    words[:-1, 1] = BITS * (np.repeat(ends, n_words) - 1 - np.arange(ends[-1]))
    return words, found[order]
