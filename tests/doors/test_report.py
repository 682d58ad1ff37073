"""The report: a mapping for programs, a few lines for people, and a page that is whole, escaped
and small, whatever names and sizes are."""

import json
import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._fit import Report
from helpers import blobs, measured_problem, model, quick_model, regressor, rows_in_a_block
from report_tools import seen

pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")

HOSTILE = '</style></title><script>alert(1)</script><img src=x onerror="alert(2)">\' {{ 7*7 }} %} "'
SECTIONS = {"done", "classes", "sure", "members", "map", "rows", "next", "run"}


def test_hostile_names_are_text():
    X, y, _ = blobs(n=300, classes=2, labelled=30, spread=0.8)
    names = np.array([HOSTILE, "b", None], dtype=object)
    frame = pd.DataFrame(X, columns=[f"{HOSTILE} {i}" for i in range(5)])
    made = LowRankLabelPropagation(n_landmarks=40).fit(frame, names[y])
    page = seen(made.report_html())
    assert "alert(1)" in page.text
    assert "{{ 7*7 }}" in page.text
    for html in (made.report_html(), made._repr_html_(), made.report_._repr_html_()):
        assert "alert(1)" in html
        assert "<script>alert" not in html
        assert "<img src=x" not in html


def test_a_thousand_classes_are_bounded():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(1000), 4)
    X = 9 * rng.normal(size=(1000, 6))[truth] + rng.normal(size=(4000, 6))
    names = np.array([f"class {code} " + "x" * 60 for code in range(1000)], dtype=object)
    y = np.where(np.arange(4000) % 4 < 1, names[truth], None)
    html = LowRankLabelPropagation(factor="anchors", n_landmarks=30).fit(X, y).report_html()
    assert len(html) < 600_000
    assert "and 900 smaller classes" in seen(html).text


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = blobs(n=400)
    return LowRankLabelPropagation(n_landmarks=40, engine="serial").fit(X, y)


def test_of_a_model(fitted, tmp_path):
    html = fitted.report_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html == fitted.report_html()
    page = seen(html)
    assert page.text.startswith("400 rows labelled from")
    ids = {value for tag, name, value in page.attributes if (tag, name) == ("section", "id")}
    assert ids == {value[1:] for tag, _, value in page.attributes if tag == "a"} == SECTIONS
    fitted.save(tmp_path / "m")
    page = seen(LowRankLabelPropagation.load(tmp_path / "m").report_html())
    assert "holds no training rows" in page.text
    assert "Members and their weights" in page.text
    # Notebooks show the short form.
    assert "biglp short" not in LowRankLabelPropagation()._repr_html_()
    assert "biglp short" in fitted._repr_html_()
    assert "rows are right" in fitted._repr_mimebundle_()["text/html"]


def rows_of(html):
    return html[html.index('<section id="map"') : html.index('<section id="run"')]


@pytest.mark.parametrize("factor", ["auto", "nystrom", "linear", "glnp"])
def test_the_same_rows_on_every_cut_and_engine(factor):
    X, y, _ = blobs(n=400, spread=0.8)
    pages = []
    for engine, rows in (("serial", 70), ("threads", 33)):
        more = {"n_landmarks": "auto"} if factor == "linear" else {}
        with rows_in_a_block(rows):
            made = quick_model(factor, engine=engine, alpha="auto", **more).fit(np.abs(X), y)
            pages.append(rows_of(made.report_html()))
    assert pages[0] == pages[1]
    assert "nan" not in seen(pages[0]).text


def test_sparse_rows_and_many_classes_show_a_few(fitted):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(60), 20)
    X = rng.normal(size=(60, 5))[truth] * 8 + rng.normal(size=(1200, 5))
    rows = sparse.csr_matrix(np.where(X > 1, X, 0.0) * [1.0, 1.0, 1.0, 1.0, 1e30])
    y = np.where(np.arange(1200) % 20 < 2, truth, -1)
    html = LowRankLabelPropagation(n_landmarks=60, scaling="none").fit(rows, y).report_html()
    assert len(html) < 300_000
    assert "nan" not in seen(rows_of(html)).text


def test_of_a_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(np.arange(300) < 60, X[:, 0], np.nan)
    page = seen(LowRankLabelPropagationRegressor(n_landmarks=30).fit(X, y).report_html())
    assert "300 rows given values from 60 labels" in page.text
    assert "The error on 60 labels that were held out is" in page.text
    assert "Histogram of the answers" in {value for _, _, value in page.attributes}


# ``report_``: a mapping, and what it prints -------------------------------------------------------


def test_it_is_still_a_mapping(fitted, tmp_path):
    report = fitted.report_
    plain = dict(report)
    assert isinstance(report, dict)
    assert report == plain
    assert json.loads(json.dumps(report)) == json.loads(json.dumps(plain))
    fitted.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp").report_
    for again in (pickle.loads(pickle.dumps(report)), deepcopy(report), loaded):
        assert type(again) is Report
        assert str(again) == str(report)


def test_it_prints_as_a_few_lines(fitted):
    report = fitted.report_
    text = str(report)
    assert repr(report) == text
    lines = text.splitlines()
    assert 3 <= len(lines) <= 9
    assert lines[0].startswith("400 rows, 24 labels: anchors, ")
    share = 100 * report["estimated_accuracy"]["accuracy"]
    assert f"About {share:.0f} % of the unlabelled" in lines[1]
    assert "{" not in text
    X, y, _ = blobs(n=150, labelled=30)
    assert "of held-out labels found" in str(model(alpha="auto").fit(X, y).report_)
    rows, targets, *_ = measured_problem(targets=2)
    assert "error on 30 held-out labels: " in str(regressor().fit(rows, targets).report_)
    updated = model().fit(X, y).update_labels([140], [1]).report_
    assert str(updated).startswith("150 rows, 31 labels: ")
    assert str(Report()) == ""


# Which rows are pictures, and PNG files that others can read --------------------------------------
