"""MNIST 7 v 9 with 16 labels: what the paper reaches, and what the defaults must.

Set BIGLP_DATA to the folder that holds mnist.npz. Over ten draws the presets reach 75.4 % and the
defaults 95.0 %; a few draws are enough to see that they still do.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from biglp import LowRankLabelPropagation

DRAWS = 5
LABELS = 16


@pytest.fixture(scope="module")
def seven_or_nine():
    """Pixels of all sevens and nines, and which is which."""
    folder = os.environ.get("BIGLP_DATA")
    if not folder:
        pytest.skip("BIGLP_DATA is not set; give the folder that holds mnist.npz")
    path = Path(folder) / "mnist.npz"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    with np.load(path) as data:
        digits = data["y"]
        keep = (digits == 7) | (digits == 9)
        return data["X"][keep], digits[keep].astype(int)


def draw_labels(truth, draw):
    """Labels of a few random rows, -1 for the others."""
    rows = np.random.default_rng(draw).choice(len(truth), LABELS, replace=False)
    y = np.full(len(truth), -1)
    y[rows] = truth[rows]
    return y


def accuracy(estimator, X, truth, draw):
    """Share of the unlabelled rows that are labelled rightly."""
    y = draw_labels(truth, draw)
    answers = estimator.fit(X, y).transduction_
    return (answers == truth)[y == -1].mean()


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
def test_the_presets_of_the_paper(seven_or_nine):
    preset = LowRankLabelPropagation.paper("nystrom-kmeans", k=100)
    accuracies = [accuracy(preset, *seven_or_nine, draw) for draw in range(DRAWS)]
    assert np.mean(accuracies) >= 0.72


def test_the_defaults(seven_or_nine):
    defaults = LowRankLabelPropagation()
    accuracies = [accuracy(defaults, *seven_or_nine, draw) for draw in range(DRAWS)]
    assert np.mean(accuracies) >= 0.93
