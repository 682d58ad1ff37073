"""Plots of fitted estimators."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from biglp import LowRankLabelPropagation
from biglp._core import LabelError, MissingExtraError, ParameterError
from biglp.plot import LearningCurveDisplay, MapDisplay, MembersDisplay, ReliabilityDisplay
from helpers import blobs

pytest.importorskip("matplotlib")
mpl.use("Agg")


@pytest.fixture(scope="module")
def case():
    X, y, _ = blobs(n=400)
    names = np.array(["$a$ <b>", "b", "c"], dtype=object)
    return X, np.array([None if label == -1 else names[label] for label in y], dtype=object)


@pytest.fixture(scope="module")
def model(case):
    return LowRankLabelPropagation(n_landmarks=40).fit(*case)


@pytest.fixture
def ax():
    figure, made = pyplot.subplots()
    yield made
    pyplot.close(figure)


@pytest.mark.parametrize("display", [MapDisplay, ReliabilityDisplay, MembersDisplay])
def test_drawn_on_given_axes_and_again(display, model, ax, tmp_path):
    shown = display.from_estimator(model, ax=ax)
    assert shown.ax_ is ax
    shown.figure_.savefig(tmp_path / "plot.png")
    again = shown.plot()
    assert again is shown
    assert shown.ax_ is not ax
    pyplot.close(shown.figure_)


def test_a_map_has_every_row_and_name(model, ax):
    shown = MapDisplay.from_estimator(model, ax)
    rows, labelled = (points.get_offsets() for points in ax.collections)
    assert len(rows) == len(shown.labels) == 400 - len(shown.labelled)
    assert len(labelled) == model.report_["labelled_rows"]
    assert {text.get_text() for text in ax.texts} == {r"\$a\$ <b>", "b", "c"}


def test_members_and_reliability_show_the_report(model, ax):
    shown = MembersDisplay.from_estimator(model, ax)
    assert shown.shares.sum() == pytest.approx(1)
    assert len(ax.patches) == len(model.report_["members"])
    found = ReliabilityDisplay.from_estimator(model, ax)
    assert found.right.tolist() == [group["right"] for group in model.report_["reliability"]]


def test_a_learning_curve_leaves_labels_out(case, ax):
    X, y = case
    n_labels = sum(label is not None for label in y)
    model = LowRankLabelPropagation(n_landmarks=40)
    shown = LearningCurveDisplay.from_estimator(model, X, y, sizes=[6, n_labels], ax=ax)
    assert shown.n_labels.tolist() == [6, n_labels]
    assert shown.found[0] > 0.8
    assert np.isnan(shown.found[-1])  # no label is left to look for
    assert shown.low[-1] <= shown.estimated[-1] <= shown.high[-1]
    assert not hasattr(model, "classes_")
    with pytest.raises(ParameterError, match=r"from 3 \(one of each class\) to"):
        LearningCurveDisplay.from_estimator(model, X, y, sizes=[2])
    with pytest.raises(LabelError, match="none of the 400 rows has a label"):
        LearningCurveDisplay.from_estimator(model, X, np.full(400, -1))


def test_what_cannot_be_drawn_is_said(case, model, tmp_path):
    model.save(tmp_path / "m")
    with pytest.raises(ParameterError, match="no rows to draw a map of"):
        MapDisplay.from_estimator(LowRankLabelPropagation.load(tmp_path / "m"))
    alone = LowRankLabelPropagation(factor="anchors", n_landmarks=40).fit(*case)
    with pytest.raises(ParameterError, match="there is no reliability to draw"):
        ReliabilityDisplay.from_estimator(alone)


def test_without_matplotlib_the_install_line(model, monkeypatch):
    monkeypatch.setattr("biglp.plot.displays.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "biglp\[plot\]"'):
        MembersDisplay.from_estimator(model)
