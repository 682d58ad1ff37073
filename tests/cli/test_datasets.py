"""``python -m paper datasets``: list, fetch and where."""

from __future__ import annotations

import json
from functools import partial

import numpy as np

import cli_tools
from dataset_server import closed_port
from paper import datasets
from paper.datasets import download as transfer
from published import publish

done = partial(cli_tools.done, program="paper")
failed = partial(cli_tools.failed, program="paper")


def test_list_fetch_where(site, digits):
    publish(site, "susy")
    message = failed(3, "datasets", "where", "susy")
    assert "susy is not here. Run: python -m paper datasets fetch susy" in message
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
