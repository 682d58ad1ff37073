"""How little the graph may think of a class, and what that brings."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from biglp import LowRankLabelPropagation
from biglp._learn.committee import answer as spread
from biglp._learn.committee.answer import DEPTH, graph_logits

DENSITIES = np.array([[1.0, 1e-3, 0.0], [0.0, 0.0, 0.0], [1e-20, 1e-22, 0.0]])


def islands(n_islands=4, rows_each=300):
    """Pairs of moons far from each other, one label for each moon."""
    rng = np.random.default_rng(0)
    parts = [make_moons(rows_each, noise=0.08, random_state=i) for i in range(n_islands)]
    rows = np.vstack([part + 100.0 * rng.normal(size=2) for part, _ in parts])
    truth = np.concatenate([2 * i + codes for i, (_, codes) in enumerate(parts)])
    labels = np.full(len(truth), -1)
    for code in range(2 * n_islands):
        labels[rng.choice(np.flatnonzero(truth == code))] = code
    return rows, labels, truth


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_no_class_is_far_below_the_likeliest(library):
    densities = DENSITIES
    if library == "torch":
        densities = pytest.importorskip("torch").as_tensor(DENSITIES)
    found = np.asarray(graph_logits(densities))
    largest = np.log(np.maximum(DENSITIES, 1e-30)).max(axis=1)
    expected = np.maximum(np.log(np.maximum(DENSITIES, 1e-30)), largest[:, None] - DEPTH)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (np.ptp(found, axis=1) <= DEPTH + 1e-6).all()
    assert np.ptp(found[1]) == 0.0  # of a row that nothing reaches all classes are alike


def test_a_graph_in_parts_is_heard_among_the_classes_of_each_part(monkeypatch):
    rows, labels, truth = islands()
    hidden = labels < 0

    def accuracy():
        model = LowRankLabelPropagation(random_state=0).fit(rows, labels)
        return (model.transduction_ == truth)[hidden].mean()

    found = accuracy()
    monkeypatch.setattr(spread, "DEPTH", np.inf)
    assert found > accuracy() + 0.02
    assert found > 0.9
