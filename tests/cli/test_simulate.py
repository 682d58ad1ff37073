"""``biglp simulate``: files of made-up rows."""

from __future__ import annotations

import numpy as np

from cli_tools import done, failed


def test_simulate(here):
    done("simulate", "2.5K", "7", "-o", "sim.npy", "--classes", "4", "--labels-per-class", "5")
    assert np.load("sim.npy").shape == (2500, 7)
    shown, truth = np.load("sim.labels.npy"), np.load("sim.truth.npy")
    assert np.bincount(shown[shown >= 0]).tolist() == [5, 5, 5, 5]
    assert (truth[shown >= 0] == shown[shown >= 0]).all()
    done("fit", "sim.npy", "--labels", "sim.labels.npy", "-o", "a")
    done("fit", "sim:2.5Kx7,classes=4,labels=5", "-o", "b")
    np.testing.assert_array_equal(np.load("a/labels.npy"), np.load("b/labels.npy"))
    assert "--overwrite" in failed(2, "simulate", "10", "2", "-o", "sim.npy")
    assert "must end in .npy" in failed(2, "simulate", "10", "2", "-o", "sim.csv")
    assert "whole number" in failed(2, "simulate", "1.5", "2", "-o", "x.npy")
    assert "are free there" in failed(4, "simulate", "100G", "1000", "-o", "x.npy")
