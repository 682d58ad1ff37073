"""The forest: scikit-learn's answers, splits as a plain search finds them, and every way down."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from biglp import LowRankLabelPropagation, _compiled
from biglp._compiled.packed_trees import MOST_FEATURES, Packed
from biglp._core import EFFORTS
from biglp._learn import MEMBERS, TrainingSet
from biglp._learn.committee.forest import drawn_counts, grow_forest
from helpers import threshold_table

native = _compiled.native
WAYS = native.library()[0].ways().decode().split() if native.can_run() else []
TREES, BLUR = EFFORTS["balanced"].trees, 0.02


def grown(rows, codes, seed=0, weights=None):
    given = {"n_landmarks": 5, "scaling": "none", "random_state": seed}
    settings = {**given, "alpha": 0.5, "engine": "serial"}
    fitted = LowRankLabelPropagation(**settings).fit(rows, codes, weights)
    evidence = TrainingSet.of(fitted._problem)
    learnt = MEMBERS["forest"]().learn(evidence)
    return learnt.model, learnt.held_out


def blurred(shares):
    return np.log((1 - BLUR) * shares + BLUR / shares.shape[1])


class TestForest:
    @pytest.fixture
    def many(self, monkeypatch):
        monkeypatch.setattr("biglp._learn.committee.forest.SIDE_BY_SIDE", 0)

    @pytest.mark.usefixtures("many")
    def test_it_says_what_scikit_learn_says_and_held_out_is_out_of_bag(self):
        rows, codes = threshold_table()
        forest, held_out = grown(rows[:120], codes[:120], seed=3)
        theirs = RandomForestClassifier(TREES, random_state=3, oob_score=True)
        theirs.fit(rows[:120], codes[:120])
        expected = blurred(theirs.predict_proba(rows))
        np.testing.assert_allclose(forest.of(rows), expected, atol=1e-5)
        expected = blurred(theirs.oob_decision_function_)
        counts = np.bincount(codes[:120])[codes[:120]]  # of its own class one label was missing
        expected[np.arange(120), codes[:120]] += np.log(counts / (counts - 1))
        np.testing.assert_allclose(held_out, expected, atol=1e-5)

    def test_any_cut_torch_and_sparse_rows_give_the_same(self):
        rows, codes = threshold_table(300)
        forest, _ = grown(rows[:60], codes[:60])
        whole = forest.of(rows)
        parts = np.concatenate([forest.of(rows[:7]), forest.of(rows[7:])])
        np.testing.assert_array_equal(whole, parts)
        np.testing.assert_array_equal(forest.of(sparse.csr_array(rows)), whole)
        torch = pytest.importorskip("torch")
        np.testing.assert_allclose(forest.of(torch.from_numpy(rows)), whole, atol=1e-6)

    def test_trees_that_are_deeper_than_they_have_nodes_are_refused(self):
        """A bit of a model file that flipped: the way down would have no end."""
        forest, _ = grown(*threshold_table(60))
        depths = forest.depths.copy()
        depths[3] = 1 << 40
        with pytest.raises(ValueError, match="deeper than it has nodes"):
            replace(forest, depths=depths)


# --------------------------------------------------------------------------------------------------
# Trees grown side by side: every split is the best one, as a plain search finds it.


def impurity(codes, weights):
    counts = np.bincount(codes, weights)
    return float(counts.sum() - (counts**2).sum() / counts.sum()) if len(codes) else 0.0


def least_impurity(column, codes, weights):
    return min(
        impurity(codes[left], weights[left]) + impurity(codes[~left], weights[~left])
        for left in (column <= limit for limit in np.unique(column)[:-1])
    )


def test_every_split_is_the_best_of_its_feature_and_leaves_are_of_one_class():
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(60, 4)), 1).astype(np.float32)  # with equal values
    codes = rng.integers(0, 3, 60)
    counts = drawn_counts(3, 60, None, np.random.default_rng(7))
    forest, _ = grow_forest(rows, codes, 3, seed=7, trees=3)
    for root, depth, drawn in zip(forest.roots, forest.depths, counts, strict=True):
        here = np.flatnonzero(drawn)
        nodes = np.full(len(here), root)
        for _ in range(depth + 1):
            right = rows[here, forest.features[nodes]] > forest.thresholds[nodes]
            after = forest.lefts[nodes] + right
            for node in np.unique(nodes):
                own, known = here[nodes == node], forest.lefts[node] == node
                shares = np.bincount(codes[own], drawn[own], 3) / drawn[own].sum()
                np.testing.assert_allclose(forest.values[node], shares, rtol=1e-6)
                if known:
                    assert shares.max() == 1 or (rows[own] == rows[own][0]).all()
                    continue
                sides = [here[(nodes == node) & (after == side)] for side in np.unique(after)]
                left = sum(impurity(codes[side], drawn[side]) for side in sides)
                column = rows[own, forest.features[node]]
                assert left == pytest.approx(least_impurity(column, codes[own], drawn[own]))
            nodes = after
        assert (forest.lefts[nodes] == nodes).all()
    weights = np.array([1.0, 0.0, 3.0, 1.0])
    counts = drawn_counts(500, 4, weights, rng)
    assert (counts.sum(axis=1) == 4).all()
    assert counts[:, 1].sum() == 0  # a label of no weight is never drawn
    assert counts[:, 2].mean() == pytest.approx(4 * 3 / 5, rel=0.1)


def test_rows_that_are_all_equal_are_one_leaf():
    forest, held_out = grown(np.ones((20, 3)), np.arange(20) % 2)
    assert (forest.depths == 0).all()
    assert np.isfinite(held_out).all()
    assert forest.of(np.zeros((5, 3), dtype=np.float32)).shape == (5, 2)


# --------------------------------------------------------------------------------------------------
# Ways down the trees: small and large ones, on every kind of processor, with the same bits.


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setenv("BIGLP_COMPILED", request.param)
    native.library.cache_clear()
    yield request.param
    monkeypatch.undo()
    native.library.cache_clear()


def noise(n_labels, n_classes):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_labels, 5)).round(1).astype(np.float32)
    return grow_forest(rows, rng.integers(0, n_classes, n_labels), n_classes, 0, trees=7)[0]


def step_by_step(forest, rows):
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
    monkeypatch.setattr("biglp._compiled.packed_trees.SMALL", small)
    monkeypatch.setattr("biglp._compiled.packed_trees.EXITS", exits)
    monkeypatch.setattr(native, "CACHED", 5000)
    forest = noise(n_labels, n_classes)
    rows = np.random.default_rng(1).normal(size=(131, 6)).astype(kind)
    rows[:40] = rows[:40].round(1)  # on thresholds
    rows[50], rows[60, 2] = np.inf, -np.inf
    rows[70, ::2] = np.nan
    trees = Packed.of(forest, native.tree_tile())
    for count in (131, 64, 1, 0):
        got = native.tree_totals(rows[:count], trees)
        np.testing.assert_array_equal(got[:, :n_classes], step_by_step(forest, rows[:count]))
        assert not got[:, n_classes:].any()


@pytest.mark.parametrize(
    "damage",
    [
        {"lefts": lambda old: np.where(np.arange(len(old)) == 0, 0, old)},
        {"lefts": lambda old: np.where(np.arange(len(old)) == 0, len(old) - 1, old)},
        {"lefts": lambda old: np.where(np.arange(len(old)) == 1, old[0], old)},
        {"lefts": lambda old: old * 0 - 1},
        {"features": lambda old: old - 1},
        {"features": lambda old: old + MOST_FEATURES},
        {"thresholds": lambda old: np.where(np.isinf(old), np.float32(0), old)},
        {"roots": lambda old: old + 1},
    ],
)
def test_trees_of_a_damaged_file_are_not_packed(damage):
    forest = noise(200, 3)
    assert Packed.of(forest, 64) is not None
    ((name, change),) = damage.items()
    assert Packed.of(replace(forest, **{name: change(getattr(forest, name))}), 64) is None


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_way_down_has_the_bits_of_numpy(kind, monkeypatch):
    forest = pickle.loads(pickle.dumps(grown(*threshold_table(120))[0]))  # only the arrays travel
    rows = np.random.default_rng(1).normal(size=(5000, 6)).astype(kind)
    limits = forest.thresholds[np.isfinite(forest.thresholds)][:5000].astype(kind)
    rows[: len(limits), 0] = limits  # on thresholds, and next to one
    rows[: len(limits), 1] = np.nextafter(limits, kind(np.inf))
    rows[: len(limits), 2] = np.nextafter(limits, kind(-np.inf))
    with monkeypatch.context() as patch:
        patch.setattr("biglp._learn.committee.trees.Walk.means", lambda *given: None)
        plain = forest.of(rows)
    monkeypatch.setattr("biglp._learn.committee.trees.FEW", 0)
    if WAYS:
        compiled = pickle.loads(pickle.dumps(forest))
        np.testing.assert_array_equal(compiled.of(rows), plain)
        assert isinstance(compiled._packed, Packed)
    monkeypatch.setattr(native, "library", lambda: (None, ""))
    np.testing.assert_array_equal(forest.of(rows), plain)
    assert forest._packed is None
    forest._trees = []  # a release of scikit-learn whose nodes are others
    np.testing.assert_array_equal(forest.of(rows), plain)
    with pytest.raises(IndexError):  # rows without all features
        forest.of(np.zeros((5, 1), dtype=np.float32))
