"""Opening a data set or its stand-in, and the paper's splits."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.errors import BadRowsError, ParameterError
from paper import datasets
from paper.datasets.registry import entry
from published import publish


def test_stand_in(digits):
    X, y = digits
    with pytest.raises(BadRowsError, match=r"fetch mnist8m, or use .*stand_in=True.*of MNIST"):
        datasets.load("mnist8m")
    for wanted in (True, "auto"):
        found = datasets.load("mnist8m", stand_in=wanted)
        np.testing.assert_array_equal(found.rows, X[np.isin(y, [7, 9])])
        assert set(found.labels) == {7, 9} == set(found.classes)
        assert "mnist8m" in found.stand_in_for
        assert "of MNIST" in found.stand_in_for
        assert found.description.startswith("A stand-in")
    assert set(datasets.load("gisette", stand_in=True).labels) == {4, 9}
    with pytest.raises(BadRowsError, match=r"its stand-in susy_subset_30k.npz in BIGLP_DATA"):
        datasets.load("susy", stand_in=True)


def test_the_real_thing_comes_first(digits, site):
    publish(site, "mnist8m")
    datasets.fetch("mnist8m")
    assert datasets.load("mnist8m", stand_in="auto").stand_in_for is None
    assert datasets.load("mnist8m", stand_in=True).stand_in_for is not None


def test_split_as_in_the_paper(digits):
    found = datasets.load("mnist8m", stand_in=True)
    assert found.n_rows == 60
    first, second = found.split(10, seed=0), found.split(10, seed=1)
    np.testing.assert_array_equal(first.test, second.test)
    assert len(first.test) == 12
    for train, test in (first, second):
        assert len(train) == 6
        assert not set(train) & set(test)
        assert (np.diff(train) > 0).all()
        assert len(np.unique(found.labels[train])) == 2
    assert not np.array_equal(first.train, second.train)
    np.testing.assert_array_equal(first.train, found.split(10, seed=0).train)
    rest = found.split(n_train=48)
    assert sorted([*rest.train, *rest.test]) == list(range(60))
    drawn = np.bincount(np.concatenate([found.split(n_train=12, seed=s).train for s in range(300)]))
    assert set(np.flatnonzero(drawn == 0)) == set(first.test)
    assert drawn[drawn > 0].min() > 45  # 75 expected, 7.5 their standard deviation
    assert drawn.max() < 105
    assert found.paper_labels(0.001) == 16
    for wrong in (
        {"percent": 1},
        {"percent": 81},
        {"n_train": 1},
        {},
        {"percent": 9, "n_train": 9},
    ):
        with pytest.raises(ParameterError, match="labelled rows"):
            found.split(**wrong)


def test_samples_cross_blocks(monkeypatch):
    from paper.datasets import loading

    monkeypatch.setattr(loading, "_BLOCK", 7)
    counts = np.zeros(100)
    for seed in range(400):
        drawn = loading.sorted_sample(100, 30, np.random.default_rng(seed))
        assert len(drawn) == len(set(drawn)) == 30
        assert (np.diff(drawn) > 0).all()
        counts[drawn] += 1
    assert counts.min() > 75  # 120 expected, 9 their standard deviation
    assert counts.max() < 165


def test_simulation(monkeypatch):
    small = replace(entry("sim100m"), rows=3000, simulation="sim:3000x5,noise=0.3,seed=1")
    monkeypatch.setattr("paper.datasets.loading.entry", lambda name: small)
    found = datasets.load("sim100m")
    train, test = found.split(1, seed=3)
    assert len(train) == 30
    y = np.full(3000, -1)
    y[train] = found.labels[train]
    model = LowRankLabelPropagation(random_state=0).fit(found.rows, y)
    assert np.mean(model.transduction_[test] == found.labels[test]) > 0.8


@pytest.mark.skipif("BIGLP_DATA" not in os.environ, reason="BIGLP_DATA names no data folder")
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("susy", (30_000, 18)),
        ("hepmass", (18_477, 28)),
        ("mnist8m", (14_251, 784)),
        ("protein", (1_382, 357)),
        ("gisette", (13_782, 784)),
    ],
)
def test_real_stand_ins(name, shape):
    found = datasets.load(name, stand_in=True)
    assert found.rows.shape == shape
    assert f"{shape[0]:,}" in found.stand_in_for
