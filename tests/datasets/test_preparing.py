"""From the publishers' formats to rows that fit takes."""

from __future__ import annotations

import bz2
import json
from urllib.parse import urlsplit

import numpy as np
import pytest

import paper.datasets.fetching as preparing
from biglp._core.errors import BadRowsError, DownloadError, OutputError
from paper import datasets
from paper.datasets.registry import cache_folder, entry, own_folder
from published import csv_text, libsvm_text, publish, zipped

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


def test_rows_of_many_pieces(site, monkeypatch):
    import biglp._rows.libsvm as libsvm

    monkeypatch.setattr(libsvm, "CHUNK_BYTES", 700)
    rows, labels = publish(site, "protein")
    datasets.fetch("protein")
    np.testing.assert_array_equal(datasets.load("protein").rows, rows)
    np.testing.assert_array_equal(datasets.load("protein").labels, labels)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("susy", zipped(b"1.0,2.0,3.0\n"), "has 3 columns; susy has a label and 18"),
        ("susy", zipped(b"1.0" + b",nan" * 18 + b"\n"), "missing or not finite"),
        ("susy", csv_text(np.zeros(3), np.ones((3, 18))), r"rows of the classes \(0, 1\)"),
        ("susy", csv_text(np.ones(3) / 2, np.ones((3, 18))), "no whole number"),
        ("susy", csv_text(np.ones(90), RNG.random((90, 18)))[:3000], r"is no \.gz file"),
        ("mnist8m", bz2.compress(b"7 1:3\n9 785:1\n"), "has features 1 to 785"),
        ("mnist8m", bz2.compress(b"7 1:3\n9 2:256\n"), "whole numbers from 0 to 255"),
        ("mnist8m", bz2.compress(b"5 bad\n7 1:3\n9 2:x\n"), "line 3: .*2:x"),
        ("mnist8m", libsvm_text(np.ones(9), RNG.random((9, 784)))[:999], r"is no \.bz2 file"),
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


def test_no_room_for_the_rows(site, monkeypatch):
    publish(site, "susy")
    monkeypatch.setattr(preparing, "free_space", lambda folder: 1 << 20)
    with pytest.raises(OutputError, match=r"susy takes 353 MB in .*BIGLP_CACHE"):
        datasets.fetch("susy")
