"""The report: a mapping for programs, a few lines for people."""

import json
import pickle
from copy import deepcopy

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._fit.report import Report
from helpers import blobs, measured_problem, model, regressor

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = blobs(n=200, labelled=40)
    return LowRankLabelPropagation(engine="serial").fit(X, y)


def test_first_hour_10_it_is_still_a_mapping(fitted, tmp_path):
    report = fitted.report_
    plain = dict(report)
    assert isinstance(report, dict)
    assert report == plain
    assert json.loads(json.dumps(report)) == json.loads(json.dumps(plain))
    for again in (pickle.loads(pickle.dumps(report)), deepcopy(report)):
        assert type(again) is Report
        assert again == report
    fitted.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp").report_
    assert type(loaded) is Report
    assert str(loaded) == str(report)


def test_first_hour_10_it_prints_as_a_few_lines(fitted):
    report = fitted.report_
    text = str(report)
    assert repr(report) == text
    lines = text.splitlines()
    assert 3 <= len(lines) <= 9
    assert lines[0].startswith("200 rows, 40 labels: anchors, ")
    assert f"About {report['estimated_accuracy']['accuracy']:.0%} of the unlabelled" in lines[1]
    assert "{" not in text


def test_first_hour_10_the_projection_is_in_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) @ rng.normal(size=(4, 30))
    y = np.where(np.arange(120) < 30, X[:, 0] > 0, -1)
    report = LowRankLabelPropagation(engine="serial", projection=3).fit(X, y).report_
    assert report["directions"] == 3
    assert "3 directions" in str(report)


def test_first_hour_10_html_is_escaped():
    names = np.array(["<script>alert(1)</script>", "a & b", ""])
    X, y, _ = blobs(n=120, labelled=30, classes=2)
    shown = LowRankLabelPropagation(engine="serial").fit(X, names[y]).report_._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "<th>estimated_accuracy</th>" in shown
    assert shown.count("<tr>") == shown.count("</tr>") > 20


def test_first_hour_10_every_method_has_its_lines():
    X, y, _ = blobs(n=150, labelled=30)
    assert "of held-out labels found" in str(model(alpha="auto").fit(X, y).report_)
    rows, targets, *_ = measured_problem(targets=2)
    assert "error on 30 held-out labels: " in str(regressor().fit(rows, targets).report_)
    updated = model().fit(X, y).update_labels([140], [1]).report_
    assert type(updated) is Report
    assert str(updated).startswith("150 rows, 31 labels: ")
    assert str(Report()) == ""
