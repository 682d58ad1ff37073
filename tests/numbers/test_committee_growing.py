"""Trees grown side by side: every split is the best one, as a plain search finds it."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from biglp._learn.committee.forest import Forest, drawn_counts, grow, grow_forest
from helpers import threshold_table


def impurity(codes: np.ndarray, weights: np.ndarray) -> float:
    """Weight times Gini impurity."""
    counts = np.bincount(codes, weights)
    return float(counts.sum() - (counts**2).sum() / counts.sum()) if len(codes) else 0.0


def least_impurity(rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    """What the best threshold on any feature leaves."""
    found = np.inf
    for column in rows.T:
        for limit in np.unique(column)[:-1]:
            left = column <= limit
            both = impurity(codes[left], weights[left]) + impurity(codes[~left], weights[~left])
            found = min(found, both)
    return found


def test_every_split_is_the_best_of_all_features_and_leaves_are_of_one_class():
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(60, 4)), 1).astype(np.float32)  # with equal values
    codes = rng.integers(0, 3, 60)
    counts = drawn_counts(3, 60, None, rng)
    forest = Forest(**grow(rows, codes, 3, counts, 4, rng))
    for root, depth, drawn in zip(forest.roots, forest.depths, counts, strict=True):
        here = np.flatnonzero(drawn)
        nodes = np.full(len(here), root)
        for _ in range(depth + 1):
            after = forest.lefts[nodes] + (
                rows[here, forest.features[nodes]] > forest.thresholds[nodes]
            )
            for node in np.unique(nodes):
                own, known = here[nodes == node], forest.lefts[node] == node
                shares = np.bincount(codes[own], drawn[own], 3) / drawn[own].sum()
                np.testing.assert_allclose(forest.values[node], shares, rtol=1e-6)
                if known:
                    assert shares.max() == 1 or (rows[own] == rows[own][0]).all()
                    continue
                sides = [here[(nodes == node) & (after == side)] for side in np.unique(after)]
                left = sum(impurity(codes[side], drawn[side]) for side in sides)
                assert left == pytest.approx(least_impurity(rows[own], codes[own], drawn[own]))
            nodes = after
        assert (forest.lefts[nodes] == nodes).all()


def test_forests_are_as_good_as_scikit_learns():
    rows, codes = threshold_table(700)
    ours, theirs = [], []
    for seed in range(4):
        forest, held_out = grow_forest(rows[:100], codes[:100], 4, seed)
        ours.append((forest.of(rows[100:]).argmax(1) == codes[100:]).mean())
        grown = RandomForestClassifier(64, random_state=seed).fit(rows[:100], codes[:100])
        theirs.append(grown.score(rows[100:], codes[100:]))
        assert abs((held_out.argmax(1) == codes[:100]).mean() - ours[-1]) < 0.12
    assert abs(np.mean(ours) - np.mean(theirs)) < 0.02


def test_a_label_of_no_weight_is_never_drawn():
    weights = np.array([1.0, 0.0, 3.0, 1.0])
    counts = drawn_counts(500, 4, weights, np.random.default_rng(0))
    assert (counts.sum(axis=1) == 4).all()
    assert counts[:, 1].sum() == 0
    assert counts[:, 2].mean() == pytest.approx(4 * 3 / 5, rel=0.1)


def test_rows_that_are_all_equal_are_one_leaf():
    forest, held_out = grow_forest(np.ones((20, 3)), np.arange(20) % 2, 2, seed=0)
    assert (forest.depths == 0).all()
    assert np.isfinite(held_out).all()
    assert forest.of(np.zeros((5, 3), dtype=np.float32)).shape == (5, 2)
