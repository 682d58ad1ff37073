"""The report as a page: whole, escaped, small, whatever names and sizes are."""

import base64
import io

import numpy as np
import pytest
from sklearn.datasets import load_digits

from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._fit.evidence import Examples, ReportSample
from biglp._report import Content, Pictures, Step, png, report_html, short_html, side_of
from helpers import blobs
from report_tools import seen

HOSTILE = '</style></title><script>alert(1)</script><img src=x onerror="alert(2)">\' {{ 7*7 }} %} "'
ESTIMATE = {
    "accuracy": 0.9,
    "interval": [0.8, 0.95],
    "base_rate": 0.5,
    "largest_class": HOSTILE,
    "recall": {HOSTILE: 0.9, "b": None},
    "next_labels": {"labels": 50, "gain": 0.01, "range": [0.0, 0.02]},
}


def content(names, **more):
    """A report with all its parts, of made-up facts."""
    rng, n, c = np.random.default_rng(0), 300, len(names)
    codes = rng.integers(0, c, n)
    examples = Examples(
        rows=np.arange(6),
        parts=np.array([0, 0, 1, 1, 2, 2]),
        codes=np.array([0, 1, 0, 1, 0, 1]),
        others=np.array([1, 0, 1, 0, 1, 0]),
        shares=np.full(6, 0.7, dtype=np.float32),
        values=rng.normal(size=(6, 3)).astype(np.float32),
        columns=np.empty((0, 0), dtype=np.int64),
    )
    evidence = ReportSample(
        codes=codes,
        confidence=rng.random(n).astype(np.float32),
        places=rng.normal(size=(n, 2)),
        labelled_codes=codes[:20],
        labelled_places=rng.normal(size=(20, 2)),
        examples=examples,
    )
    counts = dict.fromkeys(names, 10)
    settings = {
        "factor": "anchors",
        "landmarks": 100,
        "nearest": 5,
        "scaling": HOSTILE,
        "members": [{"member": HOSTILE, "weight": 1.0, "accuracy": None}],
        "held_out_accuracy": 0.9,
        "held_out_labels": 20,
        "supervised_accuracy": None,
        "estimated_accuracy": ESTIMATE,
        "reliability": [{"labels": 20, "confidence": 0.9, "right": 0.9}],
        HOSTILE: HOSTILE,
    }
    facts = {
        "rows": n,
        "labelled_rows": 20,
        "given": counts,
        "found": counts,
        "settings": settings,
        "seconds": 1.5,
        "peak_memory": 1 << 28,
        "steps": [{"step": HOSTILE, "sweeps": 1, "rows": 10, "seconds": 0.1}],
        "versions": {HOSTILE: HOSTILE},
        "command": HOSTILE,
        "warnings": [HOSTILE],
        "told": [HOSTILE],
    }
    given = {
        "title": HOSTILE,
        "facts": facts,
        "classes": names,
        "evidence": evidence,
        "feature_names": [HOSTILE] * 3,
        "going_on": (Step(HOSTILE, HOSTILE),),
        "missing": (HOSTILE,),
    }
    return Content(**given | more)


@pytest.mark.parametrize("beside", [(), [{HOSTILE: HOSTILE}] * 6])
def test_hostile_names_are_text(beside):
    given = content((HOSTILE, "b"), beside=beside)
    for html in (report_html(given), short_html(given)):
        page = seen(html)
        assert "alert(1)" in page.text
        assert "{{ 7*7 }}" in page.text
        assert "<script" not in html
        assert "<img src=x" not in html


def test_all_parts_are_there():
    page = seen(report_html(content(("a", "b"))))
    ids = {value for tag, name, value in page.attributes if (tag, name) == ("section", "id")}
    assert ids == {"done", "classes", "sure", "members", "map", "rows", "next", "run"}
    linked = {value[1:] for tag, name, value in page.attributes if (tag, name) == ("a", "href")}
    assert linked == ids
    assert "About 90% of the unlabelled rows are right (90% interval 80% to 95%)" in page.text
    assert "70% sure, else b" in page.text
    assert "rather b; 70% likely wrong" in page.text


def test_a_thousand_classes_are_bounded():
    names = tuple(f"class {code} " + "x" * 60 for code in range(1000))
    html = report_html(content(names))
    assert len(html) < 300_000
    assert "and 900 smaller classes" in seen(html).text


def test_facts_of_no_kind_at_all():
    page = seen(report_html(Content(title="nothing", facts={})))
    assert "nothing" in page.text
    assert "section" in page.tags


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = blobs(n=400)
    return LowRankLabelPropagation(n_landmarks=40).fit(X, y)


def test_of_a_model(fitted, tmp_path):
    html = fitted.report_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html
    page = seen(html)
    assert page.text.startswith("400 rows labelled from")
    assert {"#map", "#rows", "#sure"} <= {v for t, n, v in page.attributes if t == "a"}
    assert html == fitted.report_html()


def test_of_a_loaded_model_says_what_is_missing(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    page = seen(LowRankLabelPropagation.load(tmp_path / "m").report_html())
    assert "holds no training rows" in page.text
    assert "Members and their weights" in page.text


def test_notebooks_show_the_short_form(fitted):
    new = LowRankLabelPropagation()
    assert "biglp short" not in new._repr_html_()
    assert "biglp short" in fitted._repr_html_()
    bundle = fitted._repr_mimebundle_()
    assert "of the unlabelled rows are right" in bundle["text/html"]
    assert bundle["text/plain"] == repr(fitted)


def test_of_a_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(np.arange(300) < 60, X[:, 0], np.nan)
    page = seen(LowRankLabelPropagationRegressor(n_landmarks=30).fit(X, y).report_html())
    assert "300 rows given values from 60 labels" in page.text
    assert "The error on 60 labels that were held out is" in page.text
    assert "Histogram of the answers" in {value for _, _, value in page.attributes}


# Which rows are pictures, and PNG files that others can read --------------------------------------


def smooth(n, side, channels, rng):
    """Coloured squares of light and dark that change slowly."""
    steps = np.linspace(0, 2, side)
    phases = rng.uniform(0, 6, (n, channels, 1, 1))
    waves = np.sin(phases + 2 * steps[:, None] + steps) * rng.uniform(0.5, 1, (n, channels, 1, 1))
    return waves + rng.normal(0, 0.02, waves.shape)


def test_digits_are_grey_squares():
    found = Pictures.from_rows(load_digits().data)
    assert (found.side, found.channels, found.low, found.high) == (8, 1, 0.0, 16.0)


@pytest.mark.parametrize("planar", [True, False])
def test_colours_in_either_order(planar):
    waves = smooth(50, 10, 3, np.random.default_rng(0))
    rows = (waves if planar else np.moveaxis(waves, 1, 3)).reshape(50, -1)
    found = Pictures.from_rows(rows)
    assert (found.side, found.channels, found.planar) == (10, 3, planar)


def test_tables_and_embeddings_are_none():
    rng = np.random.default_rng(0)
    assert Pictures.from_rows(rng.normal(size=(100, 64))) is None
    assert Pictures.from_rows(rng.random((100, 144)) * rng.exponential(size=144)) is None
    assert Pictures.from_rows(np.zeros((10, 64))) is None
    assert Pictures.from_rows(rng.normal(size=(100, 63))) is None
    assert Pictures.from_rows(np.empty((0, 64))) is None


def test_sides():
    assert side_of(784) == 28
    assert side_of(3072, 3) == 32
    assert side_of(25) is None  # too small to be one
    assert side_of(785) is None


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 4)])
def test_png_is_read_back(shape):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(image.open(io.BytesIO(png(pixels)))), pixels)


def test_large_pictures_are_made_smaller():
    image = pytest.importorskip("PIL.Image")
    rows = smooth(20, 200, 1, np.random.default_rng(0)).reshape(20, -1)
    made = base64.b64decode(Pictures.from_rows(rows).draw(rows[0]).partition(",")[2])
    assert image.open(io.BytesIO(made)).size == (40, 40)
