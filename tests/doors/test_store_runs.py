"""Whole runs on a real S3 server: the same labels as from local files, or one clear message."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._files import object_store
from cli_tools import done, failed, run
from helpers import blobs
from row_files import ROWS, found_labels, write
from store_server import FAULTS

STORE_FAILED = 8
QUICK = ("--factor", "nystrom", "-k", 20)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture(scope="module")
def rows():
    X, y, _ = blobs(ROWS, labelled=60)
    return X, y


def upload(store, arguments: tuple[str, ...]) -> list[str]:
    """Put the files that are named among arguments into the store, and name them there."""
    named = []
    for argument in arguments:
        path = Path(argument)
        for file in [path] if path.is_file() else sorted(path.rglob("*")) if path.exists() else []:
            store.put(f"in/{file}", file.read_bytes())
        named.append(store.uri(f"in/{argument}") if path.exists() else argument)
    return named


def stored_labels(store, folder: str) -> np.ndarray:
    """Labels that a run wrote to the store."""
    ending = "npy" if f"{folder}/labels.npy" in store.names() else "parquet"
    Path("got").mkdir(exist_ok=True)
    for stale in Path("got").iterdir():
        stale.unlink()
    Path("got", f"labels.{ending}").write_bytes(store.get(f"{folder}/labels.{ending}"))
    return found_labels("got")


@pytest.mark.parametrize("kind", ["npy", "parquet", "folder", "csv", "libsvm"])
def test_labels_are_those_of_local_files(here, store, rows, kind):
    arguments = write(kind, *rows)
    done("fit", *arguments, "-o", "local", *QUICK)
    done("fit", *upload(store, arguments), "-o", store.uri("out"), *QUICK)
    assert np.array_equal(stored_labels(store, "out"), found_labels("local"))
    model = store.get("out/model.biglp")
    assert model == Path("local/model.biglp").read_bytes()
    names = [name for name in store.names() if name.startswith("out")]
    assert len(names) == 4
    assert not list(Path("../cache/runs").iterdir())  # nothing is left of the work
    facts = json.loads(store.get("out/summary.json"))["run"]["input"]
    assert all("ETag" in fact for fact in facts.values())


def test_every_command(here, store, rows):
    arguments = upload(store, write("parquet", *rows))
    out = store.uri("dir/out")
    done("fit", *arguments, "-o", out)
    done("predict", f"{out}/model.biglp", arguments[0], "-o", store.uri("new.npy"))
    done("predict", f"{out}/model.biglp", arguments[0], "-o", "new.npy")
    assert store.get("new.npy") == Path("new.npy").read_bytes()
    done("suggest", out, "-n", 5, "-o", store.uri("next.csv"))
    assert store.get("next.csv").startswith(b"row,label,")
    assert "Probably wrong" in done("check", out).output
    assert "3,000 rows" in done("inspect", *arguments).output
    shown = done("fit", *arguments, "-o", store.uri("dry"), "--dry-run").output
    assert "nothing was written" in shown
    others = [name for name in store.names() if not name.startswith(("in/", "dir/out/"))]
    assert others == ["new.npy", "next.csv"]
    assert "exists already" in failed(2, "suggest", out, "-o", store.uri("next.csv"))
    assert "already holds results" in failed(2, "fit", *arguments, "-o", out)
    assert "in a store" in run("simulate", "10x2", "-o", store.uri("x.npy")).output


def test_resuming(here, store, rows):
    arguments = upload(store, write("npy", *rows))
    command = ("fit", *arguments, "-o", store.uri("out"), *QUICK)
    store.faults, store.methods = ["", "", *["503"] * 100], ("PUT",)
    message = failed(STORE_FAILED, *command)
    assert "s3://bucket/out/model.biglp could not be written" in message
    assert "Kept in" in message
    written = [name for name in store.names() if name.startswith("out")]
    assert written == ["out/.biglp-run", "out/labels.npy"]
    assert b"its work is in" in store.get("out/.biglp-run")
    store.faults, store.asked = [], []
    done(*command, "--resume")
    assert not any("in/rows.npy" in asked and "GET" in asked for asked in store.asked)
    results = ("labels.npy", "model.biglp", "report.html", "summary.json")
    written = [name for name in store.names() if name.startswith("out/")]
    assert written == [f"out/{name}" for name in results]
    assert "already ended" in done(*command, "--resume").output
    store.put("in/rows.npy", Path("rows.npy").read_bytes() + b" ")
    message = failed(5, *command, "--resume")
    assert "holds the results of another run" in message
    assert "ETag" in message


@pytest.mark.parametrize("seed", range(3))
def test_faults(here, store, rows, seed):
    """The same labels or one clear message, never a half file; benchmarks/stores.py has more."""
    arguments = write("folder", *rows)
    done("fit", *arguments, "-o", "local", *QUICK)
    named = upload(store, arguments)
    rng = random.Random(seed)
    store.methods = ("GET", "PUT", "POST", "HEAD", "DELETE")
    store.faults = [rng.choice(["", "", *FAULTS]) for _ in range(200)]
    command = ("fit", *named, "-o", store.uri("out"), *QUICK)
    result = run(*command)
    store.faults = []
    written = [name for name in store.names() if name.startswith("out/")]
    for name in written:
        # The others name the input and the time.
        if not name.endswith(("summary.json", "report.html", ".biglp-run")):
            assert store.get(name) == Path("local", Path(name).name).read_bytes()
    if result.exit_code != 0:
        assert result.exit_code == STORE_FAILED, result.output
        assert result.stderr.count("biglp: ") == 1
        if "out/summary.json" in written:  # it arrived, and the answer to it did not
            assert np.array_equal(stored_labels(store, "out"), found_labels("local"))
        done(*command, *(["--resume"] if "Kept" in result.stderr else []))
    assert np.array_equal(stored_labels(store, "out"), found_labels("local"))


def test_python(here, store, rows):
    X, y = rows
    np.save("rows.npy", X)
    (name,) = upload(store, ("rows.npy",))
    model = LowRankLabelPropagation("nystrom", 20).fit(name, y)
    expected = LowRankLabelPropagation("nystrom", 20).fit(X, y)
    assert np.array_equal(model.transduction_, expected.transduction_)
    model.save(store.uri("models/m.biglp"))
    loaded = LowRankLabelPropagation.load(store.uri("models/m.biglp"))
    assert np.array_equal(loaded.predict(name), expected.predict(X))
    with pytest.raises(ValueError, match="there is no model file s3://bucket/none"):
        LowRankLabelPropagation.load(store.uri("none"))


def test_an_endpoint_in_the_address_and_no_bucket(here, store, rows, monkeypatch):
    arguments = write("folder", *rows)
    message = failed(STORE_FAILED, "fit", *arguments, "-o", "s3://no-such-bucket/out")
    assert "no-such-bucket/out/.biglp-run could not be written" in message
    assert not any(Path("../cache").rglob("*.npz"))  # told before the work
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    object_store.cache_clear()
    options = f"?endpoint_override=127.0.0.1:{store.port}&scheme=http"
    named = [word + options * word.startswith("s3://") for word in upload(store, arguments)]
    done("fit", *named, "-o", store.uri("out") + options, *QUICK)
    assert "out/summary.json" in store.names()
    done("suggest", store.uri("out") + options)
