"""The paper's data sets: their formats, stand-ins and splits, and digits that are deformed."""

import bz2
import json
from functools import partial
from urllib.parse import urlsplit

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import cli_tools
from biglp._core import BadRowsError, DownloadError, ParameterError
from paper import datasets
from paper.datasets.deforming import Deformer
from paper.datasets.registry import cache_folder, entry, own_folder
from published import csv_text, publish, zipped

RNG = np.random.default_rng(0)
FETCHED = ["hepmass", "hepmass-all", "susy", "mnist8m", "protein", "gisette"]


@pytest.mark.parametrize("name", FETCHED)
def test_every_format(site, name):
    rows, labels = publish(site, name)
    folder = datasets.fetch(name)
    assert folder == datasets.where(name) == cache_folder() / name
    found = datasets.load(name)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.labels, labels)
    assert isinstance(found.rows, np.memmap)
    assert found.rows.dtype == entry(name).dtype
    assert found.stand_in_for is None
    assert f"{len(rows)} rows × {entry(name).features:,} features" in found.description
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["classes"] == {str(c): int((labels == c).sum()) for c in entry(name).classes}
    site.asked.clear()
    datasets.fetch(name)
    assert site.asked == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("susy", zipped(b"1.0,2.0,3.0\n"), "has 3 columns; susy has a label and 18"),
        ("susy", zipped(b"1.0" + b",nan" * 18 + b"\n"), "missing or not finite"),
        ("susy", csv_text(np.zeros(3), np.ones((3, 18))), r"rows of the classes \(0, 1\)"),
        ("susy", csv_text(np.ones(90), RNG.random((90, 18)))[:3000], r"is no \.gz file"),
        ("mnist8m", bz2.compress(b"7 1:3\n9 785:1\n"), "has features 1 to 785"),
        ("mnist8m", bz2.compress(b"5 bad\n7 1:3\n9 2:x\n"), "line 3: .*2:x"),
    ],
)
def test_wrong_content(site, name, content, message):
    """Whatever a server sends, nothing wrong is kept as rows."""
    site.files[urlsplit(entry(name).files[0].urls[0]).path] = content
    with pytest.raises((BadRowsError, DownloadError), match=message):
        datasets.fetch(name)
    with pytest.raises(
        BadRowsError, match=f"{name} is not here. Run: python -m paper datasets fetch {name}"
    ):
        datasets.load(name)
    assert {path.name for path in own_folder(entry(name)).iterdir()} <= {"downloads", ".lock"}


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
    assert found.paper_labels(0.001) == 16
    for wrong in ({"percent": 81}, {"n_train": 1}, {}, {"percent": 9, "n_train": 9}):
        with pytest.raises(ParameterError, match="labelled rows"):
            found.split(**wrong)


done = partial(cli_tools.done, program="paper")
failed = partial(cli_tools.failed, program="paper")


def test_list_fetch_where(site, digits):
    publish(site, "susy")
    assert "Run: python -m paper datasets fetch susy" in failed(3, "datasets", "where", "susy")
    shown = done("datasets", "fetch", "susy").stdout
    assert "susy: 40 rows × 18 features" in shown
    place = str(datasets.where("susy"))
    assert place in shown
    assert done("datasets", "where", "susy").stdout.strip() == place
    facts = {one["name"]: one for one in json.loads(done("datasets", "list", "--json").stdout)}
    assert list(facts) == datasets.names()
    assert (facts["susy"]["state"], facts["susy"]["where"]) == ("cached", place)
    assert facts["mnist8m"]["state"] == "stand-in"
    rows = {line.split()[0]: line for line in done("datasets", "list").stdout.splitlines()}
    assert "40 × 18" in rows["susy"]
    assert "missing" in rows["hepmass"]
    assert "simulated" in rows["sim100m"]
    assert done("datasets", "where", "sim100m").stdout.startswith("sim:100Mx100")


def test_deformed_digits(site, digits):
    X, y = digits
    shown = done("datasets", "fetch", "mnist-deformed", "--rows", "0.2K").stdout
    assert "mnist-deformed: 200 rows × 784 features" in shown
    found = datasets.load("mnist-deformed")
    seven = np.flatnonzero(np.isin(y, [7, 9]))
    np.testing.assert_array_equal(found.rows[:60], X[seven])
    np.testing.assert_array_equal(found.labels, y[seven[np.arange(200) % 60]])
    assert "mnist8m" in found.stand_in_for
    assert (found.rows[60:120] != found.rows[:60]).any(axis=1).all()
    done("datasets", "fetch", "mnist-deformed", "--rows", "90")
    assert len(datasets.load("mnist-deformed").rows) == 90
    done("datasets", "fetch", "mnist-deformed")
    assert len(datasets.load("mnist-deformed").rows) == 90


def discs(n: int = 30, side: int = 28) -> np.ndarray:
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:side, :side]
    out = []
    for _ in range(n):
        centre, radius = side / 2 + rng.normal(size=2), side * rng.uniform(0.15, 0.3)
        distance = np.hypot(y - centre[0], x - centre[1])
        out.append(255 * np.clip(2 - np.abs(distance - radius), 0, 1))
    return np.rint(out).astype(np.uint8).reshape(n, -1)


@pytest.mark.parametrize("side", [28, 9])
def test_agrees_with_interpolation(side):
    images = discs(side=side)
    deformer = Deformer(images, seed=2)
    found = deformer.read(30, 90).reshape(-1, side, side)
    field = deformer._coefficients(30, 90) @ deformer._functions / 8192
    field = field.reshape(2, -1, side, side)
    grid = np.mgrid[:side, :side]
    for row in range(60):
        image = images[row % 30].reshape(side, side).astype(float)
        expected = map_coordinates(
            image, grid + field[:, row], order=1, cval=0, mode="grid-constant"
        )
        assert np.abs(found[row] - expected).max() < 5  # 1/128 of a pixel, at a full edge of 255
