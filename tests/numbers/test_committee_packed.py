"""Packed trees: small and large ones, every width of a vector, and trees of damaged files."""

from dataclasses import replace

import numpy as np
import pytest

from biglp._compiled import packed_trees as packed
from biglp._compiled.packed_trees import Packed
from biglp._learn.committee.forest import Forest, grow_forest


def noise(n_labels, n_classes, seed=0):
    """Rows without any order: trees are as large as they can be."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_labels, 5)).round(1).astype(np.float32)
    return grow_forest(rows, rng.integers(0, n_classes, n_labels), n_classes, seed, trees=7)[0]


def totals(forest, rows):
    """Sums of the trees' leaves, row by row."""
    found = np.zeros((len(rows), forest.values.shape[1]), dtype=np.float32)
    for i, row in enumerate(rows):
        for root in forest.roots:
            node = root
            while forest.lefts[node] != node:
                node = forest.lefts[node] + (row[forest.features[node]] > forest.thresholds[node])
            found[i] += forest.values[node]
    return found


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(
    ("n_labels", "n_classes", "small", "exits"),
    [(60, 2, 256, 64), (400, 3, 256, 64), (900, 4, 16, 3), (900, 37, 4, 40), (700, 5, 1, 2)],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_compiled_walk_finds_every_leaf(
    lanes, n_labels, n_classes, small, exits, kind, monkeypatch
):
    compiled = pytest.importorskip("biglp._compiled.cpu", exc_type=ImportError)
    monkeypatch.setattr(packed, "SMALL", small)
    monkeypatch.setattr(packed, "EXITS", exits)
    monkeypatch.setattr(compiled, "CACHED", 5000)
    forest = noise(n_labels, n_classes)
    rows = np.random.default_rng(1).normal(size=(131, 6)).astype(kind)
    rows[:40] = rows[:40].round(1)  # on thresholds
    found = Packed.of(forest, compiled.VECTORS * lanes)
    assert (forest.depths > 1).all()
    walk = compiled.CompiledWalk(found.values.shape[1], kind == np.float64, lanes)
    for count in (131, 64, 1):
        got = walk.totals(rows[:count], found)
        np.testing.assert_array_equal(got[:, :n_classes], totals(forest, rows[:count]))
        assert not got[:, n_classes:].any()


def test_trees_of_a_leaf_are_packed():
    compiled = pytest.importorskip("biglp._compiled.cpu", exc_type=ImportError)
    at = np.arange(3)
    values = np.array([[1, 0], [0, 1], [0.5, 0.5]], dtype=np.float32)
    forest = Forest(0 * at, np.full(3, np.inf, np.float32), at, values, at, 0 * at)
    found = Packed.of(forest, compiled.vector_tile())
    got = compiled.compiled_walk(2, False).totals(np.zeros((2, 1), np.float32), found)
    np.testing.assert_array_equal(got, [[1.5, 1.5]] * 2)


@pytest.mark.parametrize(
    "damage",
    [
        {"lefts": lambda old: np.where(np.arange(len(old)) == 0, 0, old)},
        {"lefts": lambda old: np.where(np.arange(len(old)) == 0, len(old) - 1, old)},
        {"lefts": lambda old: np.where(np.arange(len(old)) == 1, old[0], old)},
        {"lefts": lambda old: old * 0 - 1},
        {"features": lambda old: old - 1},
        {"features": lambda old: old + packed.MOST_FEATURES},
        {"thresholds": lambda old: np.where(np.isinf(old), np.float32(0), old)},
        {"roots": lambda old: old + 1},
    ],
)
def test_trees_of_a_damaged_file_are_not_packed(damage):
    forest = noise(200, 3)
    assert Packed.of(forest, 64) is not None
    ((name, change),) = damage.items()
    assert Packed.of(replace(forest, **{name: change(getattr(forest, name))}), 64) is None
