"""What a fit says of itself: how many rows are right, and whether its labels tell."""

import json
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation
from biglp._core import LabelRegionWarning
from helpers import blobs, rows_in_a_block

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.UnlikeLabelsWarning")


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def shown(truth, rows):
    labels = np.full(len(truth), -1)
    labels[rows] = truth[rows]
    return labels


def fitted(rows, labels, **more):
    return LowRankLabelPropagation(engine="serial", random_state=0).fit(rows, labels, **more)


def right(model, truth, labels):
    return (model.transduction_ == truth)[labels < 0].mean()


@pytest.mark.parametrize("n", [60, 300])
def test_the_interval_holds_the_accuracy(digits, n):
    rows, truth = digits
    labels = shown(truth, np.random.default_rng(n).choice(len(truth), n, replace=False))
    model = fitted(rows, labels)
    found = model.report_["estimated_accuracy"]
    low, high = found["interval"]
    assert low - 0.02 < right(model, truth, labels) < high + 0.02  # nine of ten, of one draw
    assert found["base_rate"] < 0.2
    assert list(found["recall"]) == [str(name) for name in range(10)]
    assert model.report_["trustworthy"] == (high - low <= 0.2)
    json.dumps(model.report_, allow_nan=False)


def test_suggested_labels(digits):
    rows, truth = digits
    labels = shown(truth, np.random.default_rng(1).choice(len(truth), 20, replace=False))
    model = fitted(rows, labels)
    for _ in range(4):
        chosen = model.suggest(15)
        labels[chosen] = truth[chosen]
        with warnings.catch_warnings():
            warnings.simplefilter("error", LabelRegionWarning)
            model.update_labels(chosen, truth[chosen])
    low, high = model.report_["estimated_accuracy"]["interval"]
    accuracy = right(model, truth, labels)
    assert low < accuracy < high
    assert model.report_["held_out_accuracy"] < accuracy - 0.1  # what it would say otherwise


def test_any_cut_and_threads_give_the_same():
    rows, labels, _ = blobs(n=600, labelled=60)
    reports = []
    for rows_each, engine in ((600, "serial"), (97, "serial"), (97, "threads")):
        with rows_in_a_block(rows_each):
            model = LowRankLabelPropagation(engine=engine, random_state=0).fit(rows, labels)
        reports.append(model.report_)
    keys = ("estimated_accuracy", "unseen_share", "labels_cover_rows", "trustworthy")
    first, *others = ([report[key] for key in keys] for report in reports)
    assert others == [first, first]


def test_labels_that_tell_little():
    rows, labels, truth = blobs(n=300, labelled=3)  # one of each class
    report = fitted(rows, labels).report_
    assert (report["estimated_accuracy"], report["trustworthy"]) == (None, False)
    report = fitted(rows, truth).report_  # no row is left
    assert (report["estimated_accuracy"], report["trustworthy"]) == (None, True)
    rows, labels, _ = blobs(n=300, labelled=40)
    labels[(labels == 2) & (np.cumsum(labels == 2) > 1)] = -1  # a class with one label
    found = fitted(rows, labels).report_["estimated_accuracy"]
    json.dumps(found, allow_nan=False)
    assert set(found["recall"]) == {"0", "1", "2"}


def test_labels_of_one_corner(digits):
    rows, truth = digits
    first = (rows - rows.mean(axis=0)) @ np.linalg.svd(rows - rows.mean(axis=0))[2][0]
    corner = np.flatnonzero(first > np.quantile(first, 0.8))[:60]
    with pytest.warns(LabelRegionWarning, match=r"one region: \d\d% of all rows"):
        model = fitted(rows, shown(truth, corner))
    assert model.report_["labels_cover_rows"] is False
    assert not model.report_["trustworthy"]
    others = np.random.default_rng(0).choice(len(truth), 200, replace=False)
    model.update_labels(others, truth[others])
    assert model.report_["labels_cover_rows"]
