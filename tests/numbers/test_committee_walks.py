"""Ways down the trees: the same bits, taken when rows have paid for them."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from biglp._compiled import COMPILER_BYTES, LOOPS
from biglp._core.size import Size
from biglp._learn.committee import trees as walks
from biglp._learn.committee.forest import CHUNK, ForestMember, grow_forest
from helpers import threshold_table


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
        patch.setattr(walks.Walk, "means", lambda self, rows: None)
        return forest.of(rows)


@pytest.mark.parametrize("compiled", [False, True], ids=["scikit-learn", "compiled"])
def test_every_way_has_the_same_bits(compiled, forest, rows, monkeypatch):
    if compiled:
        pytest.importorskip("llvmlite")
    plain = by_numpy(forest, rows, monkeypatch)
    monkeypatch.setattr(walks, "has_compiler", lambda: compiled)
    monkeypatch.setattr(walks, "MANY", 0)
    monkeypatch.setattr(walks, "FEW", 0)  # whatever other tests have loaded
    np.testing.assert_array_equal(forest.of(rows), plain)
    assert forest.walk._kernel if compiled else forest.walk._trees


def test_without_compiler_or_known_nodes_the_answer_is_the_same(forest, rows, monkeypatch):
    plain = by_numpy(forest, rows, monkeypatch)
    monkeypatch.setattr(walks, "MANY", 0)
    monkeypatch.setattr(walks, "FEW", 0)
    monkeypatch.setattr(walks, "has_compiler", lambda: False)
    np.testing.assert_array_equal(forest.of(rows), plain)
    assert forest.walk._trees
    assert forest.walk._kernel is None
    forest.walk._trees = []  # a release of scikit-learn whose nodes are others
    np.testing.assert_array_equal(forest.of(rows), plain)


def test_only_the_arrays_travel(forest, rows):
    forest.of(rows)
    again = pickle.loads(pickle.dumps(forest))
    assert "walk" not in vars(again)
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
        assert not {"sklearn.tree", "llvmlite"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_compiled_walk_is_in_the_plan_of_many_rows(monkeypatch):
    def planned(n_rows):
        size = Size(n_rows, 10, 3, 100, 10.0, np.dtype("float32"))
        return ForestMember.cost(size)

    monkeypatch.setattr("biglp._learn.committee.forest.has_compiler", lambda: True)
    assert (planned(walks.FEW).libraries, planned(2 * walks.FEW).libraries) == (
        {LOOPS: 0},
        {LOOPS: COMPILER_BYTES},
    )
    monkeypatch.setattr("biglp._learn.committee.forest.has_compiler", lambda: False)
    assert planned(10**9).libraries == {LOOPS: 0}
    assert planned(10**9).fixed == planned(1000).fixed > 0


def test_rows_that_are_expected_choose_the_way_at_once(forest):
    pytest.importorskip("llvmlite")
    rows = np.zeros((5, 6), dtype=np.float32)
    forest.expect(walks.FEW)
    forest.of(rows)
    assert forest.walk._kernel is None
    forest.expect(2 * walks.MANY)
    forest.of(rows)
    assert forest.walk._kernel


def test_rows_without_all_features_are_refused_on_every_way(forest, rows, monkeypatch):
    monkeypatch.setattr(walks, "MANY", 0)
    monkeypatch.setattr(walks, "FEW", 0)
    monkeypatch.setattr(walks.Walk, "_by_trees", lambda self, rows: None)
    with pytest.raises(IndexError):
        forest.of(np.zeros((5, 1), dtype=np.float32))
