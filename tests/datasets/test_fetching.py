"""Fetching a data set: archives, interruptions, damage, several processes."""

from __future__ import annotations

import io
import threading
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.errors import DownloadError
from cli_tools import done, failed
from paper import datasets
from paper.datasets.registry import entry, own_folder
from published import publish, published


def test_fit_takes_the_rows(site):
    publish(site, "mnist8m")
    datasets.fetch("mnist8m")
    found = datasets.load("mnist8m")
    model = LowRankLabelPropagation(random_state=0).fit(found.rows, found.labels)
    assert set(model.classes_) == {7, 9}


def test_downloads_may_be_discarded(site):
    publish(site, "susy")
    folder = datasets.fetch("susy", keep_downloads=False)
    assert [path.name for path in (folder / "downloads").iterdir()] == ["SUSY.csv.gz.json"]
    assert datasets.load("susy").n_rows == 40


def test_archive_where_the_file_is_gone(site):
    parts, rows, _ = published("hepmass")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file, content in zip(entry("hepmass").files, parts, strict=True):
            archive.writestr(f"hepmass/{file.name}", content)
    site.files["/static/public/347/hepmass.zip"] = packed.getvalue()
    datasets.fetch("hepmass")
    np.testing.assert_array_equal(datasets.load("hepmass").rows, rows)
    assert [path for path, _ in site.asked].count("/static/public/347/hepmass.zip") == 1
    left = {path.name for path in (own_folder(entry("hepmass")) / "downloads").iterdir()}
    names = {file.name for file in entry("hepmass").files}
    assert left == names | {f"{name}.json" for name in names} | {"hepmass.zip.json"}
    site.files["/static/public/279/susy.zip"] = b"no archive"
    with pytest.raises(DownloadError, match=r"is no \.zip file"):
        datasets.fetch("susy")
    del site.files["/static/public/279/susy.zip"]
    with pytest.raises(DownloadError, match=r"SUSY.csv.gz could not be fetched: .* 404"):
        datasets.fetch("susy")


def test_interrupted_fetch_goes_on(site):
    rows, _ = publish(site, "susy")
    site.drops = [900] + [0] * 5
    with pytest.raises(DownloadError, match=r"are kept, to go on from"):
        datasets.fetch("susy")
    assert done("datasets", "list", "--json", program="paper").stdout.count("part fetched") == 1
    datasets.fetch("susy")
    assert site.asked[-1][1] == "bytes=900-"
    np.testing.assert_array_equal(datasets.load("susy").rows, rows)


def test_damaged_download_is_noticed_later(site):
    rows, _ = publish(site, "susy")
    folder = datasets.fetch("susy")
    (folder / "meta.json").unlink()
    path = folder / "downloads" / "SUSY.csv.gz"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(DownloadError, match="is not the file that was fetched"):
        datasets.fetch("susy")
    assert not path.exists()
    datasets.fetch("susy")
    np.testing.assert_array_equal(datasets.load("susy").rows, rows)


def test_two_at_once(site):
    """One fetches, the other waits and finds it done."""
    rows, _ = publish(site, "susy")
    threads = [threading.Thread(target=datasets.fetch, args=("susy",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.asked) == 1
    np.testing.assert_array_equal(datasets.load("susy").rows, rows)


def test_known_checksum(site, monkeypatch):
    publish(site, "susy")
    known = entry("susy")
    wrong = replace(known, files=(replace(known.files[0], sha256="0" * 64),))
    monkeypatch.setattr("paper.datasets.fetching.entry", lambda name: wrong)
    message = failed(8, "datasets", "fetch", "susy", program="paper")
    assert "should be 000" in message
    assert "has been removed" in message
    assert list((own_folder(known) / "downloads").iterdir()) == []
