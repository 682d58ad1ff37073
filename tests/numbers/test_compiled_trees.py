"""Ways down the trees: small and large ones, on every kind of processor, with the same bits.

Trees of damaged files are not packed, and new rows take another way once there are many.
"""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from biglp._compiled import native
from biglp._compiled import packed_trees as packed
from biglp._compiled.packed_trees import Packed
from biglp._learn.committee import trees as walks
from biglp._learn.committee.forest import CHUNK, Forest, grow_forest
from helpers import threshold_table

WAYS = native.library()[0].ways().decode().split() if native.can_run() else []
needs_loops = pytest.mark.skipif(not WAYS, reason="no compiled loops are here")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Every kind of vectors that this processor has."""
    monkeypatch.setenv("BIGLP_COMPILED", request.param)
    native.library.cache_clear()
    yield request.param
    monkeypatch.undo()
    native.library.cache_clear()


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


@pytest.mark.parametrize(
    ("n_labels", "n_classes", "small", "exits"),
    [(60, 2, 256, 64), (400, 3, 256, 64), (900, 4, 16, 3), (900, 37, 4, 40), (700, 5, 1, 2)],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_compiled_walk_finds_every_leaf(
    way, n_labels, n_classes, small, exits, kind, monkeypatch
):
    monkeypatch.setattr(packed, "SMALL", small)
    monkeypatch.setattr(packed, "EXITS", exits)
    monkeypatch.setattr(native, "CACHED", 5000)
    forest = noise(n_labels, n_classes)
    rows = np.random.default_rng(1).normal(size=(131, 6)).astype(kind)
    rows[:40] = rows[:40].round(1)  # on thresholds
    rows[50], rows[60, 2] = np.inf, -np.inf
    rows[70, ::2] = np.nan
    trees = Packed.of(forest, native.tree_tile())
    assert (forest.depths > 1).all()
    for count in (131, 64, 1, 0):
        got = native.tree_totals(rows[:count], trees)
        np.testing.assert_array_equal(got[:, :n_classes], totals(forest, rows[:count]))
        assert not got[:, n_classes:].any()


def test_trees_of_a_leaf_are_packed(way):
    at = np.arange(3)
    values = np.array([[1, 0], [0, 1], [0.5, 0.5]], dtype=np.float32)
    forest = Forest(0 * at, np.full(3, np.inf, np.float32), at, values, at, 0 * at)
    trees = Packed.of(forest, native.tree_tile())
    got = native.tree_totals(np.zeros((2, 1), np.float32), trees)
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


@pytest.fixture
def forest():
    rows, codes = threshold_table(120)
    return grow_forest(rows, codes, 5, seed=0)[0]


@pytest.fixture(params=[np.float32, np.float64])
def rows(request, forest):
    """Rows, some of them on thresholds or next to one."""
    found = np.random.default_rng(1).normal(size=(CHUNK + 37, 6)).astype(request.param)
    limits = forest.thresholds[np.isfinite(forest.thresholds)]
    near = limits[: len(found)].astype(request.param)
    found[: len(near), 0] = near
    found[: len(near), 1] = np.nextafter(near, request.param(np.inf))
    found[: len(near), 2] = np.nextafter(near, request.param(-np.inf))
    return np.ascontiguousarray(found[:, : int(forest.features.max()) + 2])


def by_numpy(forest, rows, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(walks.Walk, "means", lambda *given: None)
        return forest.of(rows)


@needs_loops
def test_the_compiled_way_has_the_bits_of_numpy(way, forest, rows, monkeypatch):
    plain = by_numpy(forest, rows, monkeypatch)
    vars(forest)["expected"] = 2 * walks.FEW
    np.testing.assert_array_equal(forest.of(rows), plain)
    assert isinstance(forest._packed, Packed)


def test_without_the_loops_the_answer_is_the_same(forest, rows, monkeypatch):
    plain = by_numpy(forest, rows, monkeypatch)
    monkeypatch.setattr(walks, "FEW", 0)
    monkeypatch.setattr(native, "library", lambda: (None, ""))
    np.testing.assert_array_equal(forest.of(rows), plain)
    assert forest._trees
    assert forest._packed is None
    forest._trees = []  # a release of scikit-learn whose nodes are others
    np.testing.assert_array_equal(forest.of(rows), plain)


def test_only_the_arrays_travel(forest, rows):
    forest.of(rows)
    again = pickle.loads(pickle.dumps(forest))
    assert again.asked == 0
    np.testing.assert_array_equal(again.of(rows), forest.of(rows))


def test_a_few_new_rows_load_nothing():
    code = """if True:
        import sys
        import numpy as np
        from biglp._learn.committee.forest import Forest
        one = np.zeros(1, dtype=np.int64)
        far = np.full(1, np.inf, dtype=np.float32)
        forest = Forest(one, far, one, np.ones((1, 2), dtype=np.float32), one, one)
        forest.of(np.zeros((10, 3), dtype=np.float32))
        assert "sklearn.tree" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_loops
def test_rows_that_are_expected_choose_the_way_at_once(forest):
    rows = np.zeros((5, 6), dtype=np.float32)
    vars(forest)["expected"] = walks.FEW
    forest.of(rows)
    assert forest._packed is None
    vars(forest)["expected"] = 2 * walks.FEW
    forest.of(rows)
    assert forest._packed


def test_rows_without_all_features_are_refused_on_every_way(forest, monkeypatch):
    monkeypatch.setattr(walks, "FEW", 0)
    monkeypatch.setattr(walks.Walk, "_by_trees", lambda self, rows: None)
    with pytest.raises(IndexError):
        forest.of(np.zeros((5, 1), dtype=np.float32))
