"""The page of recipes: its code runs, and its commands have options that exist."""

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp import LowRankLabelPropagation
from cli_tools import run
from helpers import blobs

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("recipes.md", "clusters.md"))
FEATURES = ["age", "visits", "spent"]


def code(kind: str) -> list[str]:
    return re.findall(rf"^```[a-z]+ {kind}\b.*?\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture
def customers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, truth = blobs(features=3)
    churned = pa.array([None if label == -1 else int(label) for label in y])
    columns = {"id": np.arange(len(X))} | {name: X[:, j] for j, name in enumerate(FEATURES)}
    table = pa.table(columns | {"churned": churned})
    pq.write_table(table, "customers.parquet", row_group_size=50)
    model = LowRankLabelPropagation().fit(table.select(FEATURES), y)
    model.save("model.biglp")
    return table, model, truth


def execute(kind: str) -> dict:
    found: dict = {}
    for block in code(kind):
        exec(block, found)
    return found


def test_duckdb(customers):
    pytest.importorskip("duckdb")
    _, model, truth = customers
    found = execute("duckdb")
    answers = found["shop"].sql("select * from answers order by id").to_arrow_table()
    assert answers["churned"].to_pylist() == model.transduction_.tolist()
    leaving = {row for (row,) in found["leaving"].fetchall()}
    found["shop"].close()
    assert np.mean([(row in leaving) == (label == 1) for row, label in enumerate(truth)]) > 0.9


def test_polars(customers):
    pytest.importorskip("polars")
    _, model, _ = customers
    labelled = execute("polars")["labelled"]
    assert labelled["churned"].to_list() == model.transduction_.tolist()


def test_spark(customers):
    table, model, _ = customers
    batches = table.drop_columns("churned").slice(0, 60).to_batches(max_chunksize=25)
    labelled = execute("spark")["labelled"]
    found = pa.Table.from_batches(labelled(iter([batches[0].slice(0, 0), *batches])))
    rows = table.slice(0, 60).select(FEATURES)
    assert found["churned"].to_pylist() == model.predict(rows).tolist()
    assert found["confidence"].to_pylist() == model.predict_proba(rows).max(axis=1).tolist()


def test_ray(customers):
    table, model, _ = customers
    labeller = execute("ray")["Labeller"]("model.biglp", FEATURES)
    rows = table.drop_columns("churned")
    assert labeller(rows)["churned"].to_pylist() == model.predict(rows.select(FEATURES)).tolist()


def test_shell_scripts(tmp_path):
    blocks = code("slurm") + code("docker")
    assert len(blocks) == 2
    for block in blocks:
        (tmp_path / "job.sh").write_text(block, encoding="utf-8")
        subprocess.run(["bash", "-n", tmp_path / "job.sh"], check=True)
        joined = block.replace("\\\n", " ")
        for command in re.findall(r"biglp +((?:fit|predict) .*)", joined):
            name, *words = shlex.split(command, comments=True)
            known = run(name, "--help").output
            for word in words:
                assert not word.startswith("--") or word in known, word
