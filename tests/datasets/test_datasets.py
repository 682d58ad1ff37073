"""Data sets from their publishers' formats to rows that fit takes, and the commands around them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import threading
import zipfile
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import pytest

import biglp.datasets.preparing as preparing
import biglp.datasets.transfer as transfer
from biglp import LowRankLabelPropagation, datasets
from biglp._core.errors import BadRowsError, DownloadError, OutputError, ParameterError
from biglp.datasets.places import cache_folder, own_folder
from biglp.datasets.registry import entry, mirrored
from cli_tools import done, failed
from dataset_server import closed_port, serving

RNG = np.random.default_rng(0)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A server with nothing on it, in the place of all publishers; an empty cache."""
    monkeypatch.setattr(transfer, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("BIGLP_DATA", raising=False)
    with serving() as made:
        monkeypatch.setenv("BIGLP_MIRROR", made.url)
        yield made


def csv_text(labels: np.ndarray, values: np.ndarray, header: str | None = None) -> bytes:
    """UCI's numbers: 18 decimals, the label first."""
    lines = [header] if header else []
    for label, row in zip(labels, values, strict=True):
        lines.append(",".join(f"{value:.18e}" for value in (label, *row)))
    return gzip.compress(("\n".join(lines) + "\n").encode())


def libsvm_text(labels: np.ndarray, values: np.ndarray) -> bytes:
    """LIBSVM's lines: features counted from 1, zeros left out."""
    lines = []
    for label, row in zip(labels, values, strict=True):
        entries = (f"{index + 1}:{row[index]:.9g}" for index in np.flatnonzero(row))
        lines.append(f"{label} {' '.join(entries)} \n")
    return bz2.compress("".join(lines).encode())


def published(name: str, n: int = 40) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Small files in a data set's own format, and the rows and labels that should come out."""
    known = entry(name)
    parts, rows, labels = [], [], []
    for _ in known.files:
        if known.text == "csv":
            y = RNG.integers(2, size=n)
            X = RNG.normal(size=(n, known.features)).astype(np.float32)
            extra = RNG.normal(size=(n, 1)) if name == "hepmass-all" else np.empty((n, 0))
            names = [f"f{i}" for i in range(known.features)] + ["mass"] * extra.shape[1]
            header = f"# label,{','.join(names)}" if known.header else None
            parts.append(csv_text(y, np.hstack([X, extra]), header))
        else:
            among = {"mnist8m": 10, "protein": 3, "gisette": 2}[name]
            y = RNG.integers(among, size=n)
            y[:4] = [*known.classes, *known.classes] if name != "gisette" else [0, 1, 0, 1]
            y = 2 * y - 1 if name == "gisette" else y
            X = RNG.integers(256, size=(n, known.features)) * (
                RNG.random((n, known.features)) < 0.2
            )
            X = X.astype(np.float32) / (1 if name == "mnist8m" else 256)
            parts.append(libsvm_text(y, X))
        chosen = np.isin(y, known.classes)
        rows.append(X[chosen])
        labels.append(y[chosen])
    return parts, np.concatenate(rows), np.concatenate(labels)


def publish(site, name: str) -> tuple[np.ndarray, np.ndarray]:
    parts, rows, labels = published(name)
    for file, content in zip(entry(name).files, parts, strict=True):
        site.files[urlsplit(file.urls[0]).path] = content
    return rows, labels


FETCHED = ["hepmass", "hepmass-all", "susy", "mnist8m", "protein", "gisette"]

# --- from the publisher to rows ----------------------------------------------------------------


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
    import biglp._sources.formats.libsvm as libsvm

    monkeypatch.setattr(libsvm, "CHUNK_BYTES", 700)
    rows, labels = publish(site, "protein")
    datasets.fetch("protein")
    np.testing.assert_array_equal(datasets.load("protein").rows, rows)
    np.testing.assert_array_equal(datasets.load("protein").labels, labels)


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
    with pytest.raises(DownloadError, match="is damaged"):
        datasets.fetch("susy")
    del site.files["/static/public/279/susy.zip"]
    with pytest.raises(DownloadError, match=r"SUSY.csv.gz could not be fetched: .* 404"):
        datasets.fetch("susy")


def test_interrupted_fetch_goes_on(site):
    rows, _ = publish(site, "susy")
    site.drops = [900] + [0] * 5
    with pytest.raises(DownloadError, match=r"are kept, to go on from"):
        datasets.fetch("susy")
    assert done("datasets", "list", "--json").stdout.count("part fetched") == 1
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("susy", gzip.compress(b"1.0,2.0,3.0\n"), "has 3 columns; susy has a label and 18"),
        ("susy", gzip.compress(b"1.0" + b",nan" * 18 + b"\n"), "missing or not finite"),
        ("susy", csv_text(np.zeros(3), np.ones((3, 18))), r"rows of the classes \(0, 1\)"),
        ("susy", csv_text(np.ones(3) / 2, np.ones((3, 18))), "no whole number"),
        ("susy", csv_text(np.ones(90), RNG.random((90, 18)))[:3000], "cannot be read"),
        ("mnist8m", bz2.compress(b"7 1:3\n9 785:1\n"), "has features 1 to 785"),
        ("mnist8m", bz2.compress(b"7 1:3\n9 2:256\n"), "whole numbers from 0 to 255"),
        ("mnist8m", bz2.compress(b"5 bad\n7 1:3\n9 2:x\n"), "line 3: .*2:x"),
        ("mnist8m", libsvm_text(np.ones(9), RNG.random((9, 784)))[:999], "cannot be read"),
    ],
)
def test_wrong_content(site, name, content, message):
    """Whatever a server sends, nothing wrong is kept as rows."""
    site.files[urlsplit(entry(name).files[0].urls[0]).path] = content
    with pytest.raises(BadRowsError, match=message):
        datasets.fetch(name)
    with pytest.raises(BadRowsError, match=f"{name} is not here. Run: biglp datasets fetch {name}"):
        datasets.load(name)
    assert {path.name for path in own_folder(entry(name)).iterdir()} <= {"downloads", ".lock"}


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
    monkeypatch.setattr("biglp.datasets.fetching.entry", lambda name: wrong)
    message = failed(8, "datasets", "fetch", "susy")
    assert "should be 000" in message
    assert "has been removed" in message
    assert list((own_folder(known) / "downloads").iterdir()) == []


def test_no_room_for_the_rows(site, monkeypatch):
    publish(site, "susy")
    monkeypatch.setattr(preparing, "free_space", lambda folder: 1 << 20)
    with pytest.raises(OutputError, match=r"susy takes 353 MB in .*BIGLP_CACHE"):
        datasets.fetch("susy")


# --- the registry --------------------------------------------------------------------------------


def test_registry_is_sound():
    assert {"hepmass", "susy", "mnist8m", "protein", "gisette", "sim100m"} <= set(datasets.names())
    for name in datasets.names():
        known = entry(name)
        assert known.licence
        assert known.citation
        assert bool(known.files) + bool(known.simulation) + bool(known.deformed_from) == 1
        for file in known.files:
            assert all(url.startswith("https://") for url in file.urls)
            assert all(url.endswith(f"/{file.name}") for url in file.urls)
            assert file.sha256 is None or len(file.sha256) == 64
    # 60,000 digits of MNIST, 6,265 of them 7 and 5,949 of them 9, in 135 versions each.
    assert entry("mnist8m").rows == 135 * (6265 + 5949)


def test_unknown_name():
    with pytest.raises(ParameterError, match=r"there is no data set 'suzy'.*mean 'susy'"):
        datasets.load("suzy")


def test_mirror():
    url = "https://archive.ics.uci.edu/ml/x.gz"
    assert mirrored(url, "http://localhost:1/m/") == "http://localhost:1/m/ml/x.gz"
    with pytest.raises(ParameterError, match="must begin with http"):
        mirrored(url, "ftp://x")


@pytest.mark.parametrize("named", ["BIGLP_CACHE", "XDG_CACHE_HOME", None])
def test_cache_folder(monkeypatch, tmp_path, named):
    for name in ("BIGLP_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    if named:
        monkeypatch.setenv(named, str(tmp_path / "c"))
    ends = {"BIGLP_CACHE": "c/datasets", "XDG_CACHE_HOME": "c/biglp/datasets"}
    assert cache_folder() == tmp_path / ends.get(named, ".cache/biglp/datasets")


# --- stand-ins and splits ------------------------------------------------------------------------


@pytest.fixture
def digits(site, tmp_path, monkeypatch):
    """A small file in the place of MNIST, in BIGLP_DATA."""
    folder = tmp_path / "data"
    folder.mkdir()
    y = np.arange(300) % 10
    X = RNG.integers(256, size=(300, 784)).astype(np.uint8)
    np.savez(folder / "mnist.npz", X=X, y=y.astype(np.uint8))
    monkeypatch.setenv("BIGLP_DATA", str(folder))
    return X, y


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


def test_the_real_thing_comes_first(digits, site):
    publish(site, "mnist8m")
    datasets.fetch("mnist8m")
    assert datasets.load("mnist8m", stand_in="auto").stand_in_for is None
    assert datasets.load("mnist8m", stand_in=True).stand_in_for is not None


def test_prepared_data_of_others(site, tmp_path, monkeypatch):
    rows, _ = publish(site, "susy")
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path / "theirs"))
    datasets.fetch("susy")
    monkeypatch.setenv("BIGLP_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("BIGLP_DATA", str(tmp_path / "theirs" / "datasets"))
    np.testing.assert_array_equal(datasets.load("susy").rows, rows)
    assert datasets.fetch("susy") == tmp_path / "theirs" / "datasets" / "susy"


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
    drawn = np.bincount(np.concatenate([found.split(n_train=12, seed=s).train for s in range(300)]))
    assert set(np.flatnonzero(drawn == 0)) == set(first.test)
    assert drawn[drawn > 0].min() > 45  # 75 expected, 7.5 their standard deviation
    assert drawn.max() < 105
    assert found.paper_labels(0.001) == 16
    for wrong in (
        {"percent": 1},
        {"percent": 81},
        {"n_train": 1},
        {},
        {"percent": 9, "n_train": 9},
    ):
        with pytest.raises(ParameterError, match="labelled rows"):
            found.split(**wrong)


def test_samples_cross_blocks(monkeypatch):
    from biglp.datasets import loading

    monkeypatch.setattr(loading, "_BLOCK", 7)
    counts = np.zeros(100)
    for seed in range(400):
        drawn = loading.sorted_sample(100, 30, np.random.default_rng(seed))
        assert len(drawn) == len(set(drawn)) == 30
        assert (np.diff(drawn) > 0).all()
        counts[drawn] += 1
    assert counts.min() > 75  # 120 expected, 9 their standard deviation
    assert counts.max() < 165


def test_simulation(monkeypatch):
    small = replace(entry("sim100m"), rows=3000, simulation="sim:3000x5,noise=0.3,seed=1")
    monkeypatch.setattr("biglp.datasets.loading.entry", lambda name: small)
    found = datasets.load("sim100m")
    train, test = found.split(1, seed=3)
    assert len(train) == 30
    y = np.full(3000, -1)
    y[train] = found.labels[train]
    model = LowRankLabelPropagation(random_state=0).fit(found.rows, y)
    assert np.mean(model.transduction_[test] == found.labels[test]) > 0.8


@pytest.mark.skipif("BIGLP_DATA" not in os.environ, reason="BIGLP_DATA names no data folder")
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("susy", (30_000, 18)),
        ("hepmass", (18_477, 28)),
        ("mnist8m", (14_251, 784)),
        ("protein", (1_382, 357)),
        ("gisette", (13_782, 784)),
    ],
)
def test_real_stand_ins(name, shape):
    found = datasets.load(name, stand_in=True)
    assert found.rows.shape == shape
    assert f"{shape[0]:,}" in found.stand_in_for


# --- the commands --------------------------------------------------------------------------------


def test_list_fetch_where(site, digits):
    publish(site, "susy")
    message = failed(3, "datasets", "where", "susy")
    assert "susy is not here. Run: biglp datasets fetch susy" in message
    shown = done("datasets", "fetch", "susy").stdout
    assert "susy: 40 rows × 18 features" in shown
    place = str(datasets.where("susy"))
    assert place in shown
    assert done("datasets", "where", "susy").stdout.strip() == place
    assert done("datasets", "fetch", "susy", "--quiet").stdout == ""
    table = done("datasets", "list").stdout
    assert table.split() >= ["name"]
    rows = {line.split()[0]: line for line in table.splitlines()}
    assert "40 × 18" in rows["susy"]
    assert "cached" in rows["susy"]
    assert "stand-in $BIGLP_DATA/mnist.npz" in " ".join(rows["mnist8m"].split())
    assert "missing" in rows["hepmass"]
    assert "simulated" in rows["sim100m"]
    facts = {one["name"]: one for one in json.loads(done("datasets", "list", "--json").stdout)}
    assert facts["susy"]["state"] == "cached"
    assert facts["susy"]["where"] == place
    assert list(facts) == datasets.names()
    assert done("datasets", "where", "sim100m").stdout.startswith("sim:100Mx100")
    assert json.loads(done("datasets", "where", "gisette", "--json").stdout)["state"] == "stand-in"
    fetched = json.loads(done("datasets", "fetch", "susy", "sim100m", "--json").stdout)
    assert [one["name"] for one in fetched] == ["susy", "sim100m"]


def test_failing_commands(site, monkeypatch):
    publish(site, "susy")
    assert "there is no data set 'nope'" in failed(2, "datasets", "fetch", "susy", "nope")
    assert site.asked == []
    assert "for mnist-deformed only" in failed(2, "datasets", "fetch", "susy", "--rows", "10")
    assert "404" in failed(8, "datasets", "fetch", "gisette")
    port = closed_port()
    message = failed(8, "datasets", "fetch", "susy", "--mirror", f"http://127.0.0.1:{port}")
    assert "refused" in message
    assert "Check the network" in message
    monkeypatch.setattr(transfer, "free_space", lambda folder: 1000)
    assert "are free" in failed(4, "datasets", "fetch", "susy")
    assert "mnist.npz" in failed(3, "datasets", "fetch", "mnist-deformed")


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
