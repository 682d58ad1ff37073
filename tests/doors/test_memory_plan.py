"""One plan of memory and time adds up what every part costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from biglp._core.settings import Settings
from biglp._core.size import SKLEARN, Cost, Size
from biglp._engines import SerialEngine
from biglp._fit.plan import plan_fit

SIZE = Size(1_000_000, 20, 4, 100, 20.0, np.dtype(np.float32))


def plan_of(*parts, size=SIZE, **given):
    return plan_fit(Settings.of({"memory": "4GB", **given}), size, SerialEngine(), *parts)


def report(size):
    return Cost(seconds={"report": 1.0})


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ({}, ["k-means", "Gram", "learning", "labels"]),
        ({"factor": "nystrom"}, ["k-means", "degrees", "Gram", "learning", "labels"]),
        ({"factor": "linear"}, ["degrees", "Gram", "learning", "labels"]),
        ({"factor": "glnp"}, ["GLNP", "degrees", "Gram", "learning", "labels"]),
    ],
)
def test_steps_stand_in_their_order(given, steps):
    seconds = plan_of(report, **given).seconds
    assert [step for step in seconds if step != "k-means" or step in steps] == [*steps, "report"]
    assert all(guess > 0 for guess in seconds.values())


def test_features_that_are_not_stored_are_made_in_every_sweep():
    much, little = (
        plan_of(factor="nystrom", n_landmarks=200, memory=memory) for memory in ("4GB", "400MB")
    )
    assert much.stores_features
    assert not little.stores_features
    assert little.seconds["degrees"] == much.seconds["degrees"]
    for step in ("Gram", "labels"):
        assert little.seconds[step] > much.seconds[step]


def test_sweeps_grow_with_the_rows_and_k_means_with_its_sample():
    small, large = (
        plan_of(n_landmarks=500, size=replace(SIZE, n_rows=n_rows)).seconds
        for n_rows in (1_000_000, 4_000_000)
    )
    assert large["Gram"] == pytest.approx(4 * small["Gram"])
    assert large["k-means"] == small["k-means"]
    assert large["learning"] == small["learning"]


def test_a_library_that_two_parts_load_is_there_once():
    def other(size):
        return Cost(libraries=SKLEARN, fixed=1 << 20)

    plain, more = plan_of(), plan_of(other)
    assert more.process == plain.process
    assert more.small == plain.small + (1 << 20)
