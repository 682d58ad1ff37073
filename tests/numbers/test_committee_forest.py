"""The forest: what scikit-learn says, out of bag, at thresholds, in any cut."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from biglp._core.size import EFFORTS, Size
from biglp._learn.committee.forest import (
    BLUR,
    MOST_BYTES,
    ForestMember,
    blurred_logits,
    grow_forest,
    lost_shares,
)
from helpers import threshold_table

TREES = EFFORTS["balanced"].trees


@pytest.fixture
def many(monkeypatch):
    """Trees are grown as they are from many labels."""
    monkeypatch.setattr("biglp._learn.committee.forest.SIDE_BY_SIDE", 0)


class TestForest:
    def test_says_what_scikit_learn_says(self, many):
        rows, codes = threshold_table()
        forest, _ = grow_forest(rows[:100], codes[:100], 4, seed=3)
        grown = RandomForestClassifier(TREES, random_state=3).fit(rows[:100], codes[:100])
        shares = np.zeros((len(rows), 4))
        shares[:, grown.classes_] = grown.predict_proba(rows)
        expected = np.log((1 - BLUR) * shares + BLUR / 4)
        np.testing.assert_allclose(forest.of(rows), expected, atol=1e-5)

    def test_held_out_is_out_of_bag(self, many):
        rows, codes = threshold_table(120)
        _, held_out = grow_forest(rows, codes, 4, seed=1)
        grown = RandomForestClassifier(TREES, random_state=1, oob_score=True).fit(rows, codes)
        np.testing.assert_allclose(
            held_out, blurred_logits(grown.oob_decision_function_), atol=1e-5
        )

    def test_a_class_without_labels_gets_the_blur_only(self):
        rows, codes = threshold_table(80)
        forest, held_out = grow_forest(rows, codes, 6, seed=0)
        assert forest.of(rows).shape == held_out.shape == (80, 6)
        np.testing.assert_allclose(forest.of(rows)[:, 5], np.log(BLUR / 6), rtol=1e-6)

    def test_values_at_a_threshold_turn_left(self, many):
        rows = np.repeat(np.arange(8, dtype=np.float32), 10)[:, None]
        forest, _ = grow_forest(rows, (rows[:, 0] > 3).astype(int), 2, seed=0)
        at = np.unique(forest.thresholds[np.isfinite(forest.thresholds)])
        grown = RandomForestClassifier(TREES, random_state=0).fit(rows, rows[:, 0] > 3)
        near = np.concatenate([at, np.nextafter(at, np.float32(99)), np.nextafter(at, -99)])
        near = near.astype(np.float32)[:, None]
        expected = blurred_logits(grown.predict_proba(near))
        np.testing.assert_allclose(forest.of(near), expected, atol=1e-5)

    def test_any_cut_and_torch_give_the_same(self):
        torch = pytest.importorskip("torch")
        rows, codes = threshold_table(300)
        forest, _ = grow_forest(rows[:60], codes[:60], 4, seed=0)
        whole = forest.of(rows)
        parts = np.concatenate([forest.of(rows[:7]), forest.of(rows[7:])])
        np.testing.assert_array_equal(whole, parts)
        np.testing.assert_allclose(forest.of(torch.from_numpy(rows)), whole, atol=1e-6)


def test_the_trees_are_copied_to_a_device_once_a_block(monkeypatch):
    pytest.importorskip("torch")
    from biglp._core.arrays import to_device
    from biglp._learn.committee import trees as module

    rows, codes = threshold_table(12_000)
    monkeypatch.setattr(module, "DEVICE_WALKS", 1 << 16)
    grown, _ = grow_forest(rows[:60], codes[:60], 4, seed=0)
    copied, plain = [], module.beside
    monkeypatch.setattr(
        module, "beside", lambda place, array: copied.append(id(array)) or plain(place, array)
    )
    grown.of(to_device(rows, "torch:cpu"))
    trees = (grown.features, grown.lefts, grown.thresholds, grown.values)
    assert all(copied.count(id(array)) == 1 for array in trees)


@pytest.mark.parametrize("scale", [2.0**-30, 1e-6, 1e6])
def test_the_scale_of_rows_does_not_matter(scale):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)).astype(np.float32)
    codes = (rows[:, 0] + rows[:, 1] ** 2 > 0.5).astype(int)
    scaled = (rows * np.float64(scale)).astype(np.float32)
    plain, held_out = grow_forest(rows[:100], codes[:100], 2, seed=0)
    other, held_out_there = grow_forest(scaled[:100], codes[:100], 2, seed=0)
    np.testing.assert_array_equal(held_out, held_out_there)
    assert (plain.of(rows).argmax(1) == other.of(scaled).argmax(1)).mean() > 0.99


def test_the_memory_of_many_classes_is_in_the_plan():
    size = partial(Size, n_rows=20_000, n_features=10, values=10.0, dtype=np.dtype("float32"))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 10)).astype(np.float32)
    forest, _ = grow_forest(rows, np.arange(1000) % 100, 100, seed=0)
    ours = sum(array.nbytes for array in vars(forest).values())
    theirs = 2 * forest.values.nbytes
    planned = ForestMember.cost(size(n_classes=100, n_labelled=1000)).fixed
    assert ours + theirs <= planned <= MOST_BYTES
    assert ForestMember.cost(size(n_classes=1000, n_labelled=10_000)).fixed == 0  # not grown


def test_trees_that_are_deeper_than_they_have_nodes_are_refused():
    """A bit of a model file that flipped: the way down would have no end."""
    forest, _ = grow_forest(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2, 2, 0)
    depths = forest.depths.copy()
    depths[3] = 1 << 40
    with pytest.raises(ValueError, match="deeper than it has nodes"):
        replace(forest, depths=depths)


def test_what_a_held_out_label_lacks_of_its_class():
    targets = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    found = lost_shares(targets)
    np.testing.assert_allclose(found[:, 0], [np.log(4 / 3), np.log(4 / 3), np.log(2), 0.0])
    np.testing.assert_array_equal(found[:, 1], 0.0)  # the only label of a class is left out at all
