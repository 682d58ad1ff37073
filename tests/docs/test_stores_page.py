"""The commands of the page about object stores are run, in order, against an S3 server."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_tools import done
from helpers import blobs

PAGE = Path(__file__).parents[2] / "docs" / "stores.md"


def as_bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


@pytest.fixture
def filled(store, tmp_path, monkeypatch):
    """The store that the page speaks of."""
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.chdir(tmp_path)
    X, y, _ = blobs(600)
    table = pa.table({f"f{i}": X[:, i] for i in range(X.shape[1])})
    labelled = table.append_column("y", pa.array(y, mask=y < 0))
    for number in range(2):
        part = (300 * number, 300)
        store.put(f"rows/{number}.parquet", as_bytes(labelled.slice(*part)))
        store.put(f"new/part-{number}.parquet", as_bytes(table.slice(*part)))
    deltalake.write_deltalake("customers", labelled)
    deltalake.write_deltalake("customers", labelled, mode="overwrite")
    for path in (tmp_path / "customers").rglob("*.*"):
        store.put(f"lake/{path.relative_to(tmp_path)}", path.read_bytes())
    return store


def test_commands_run(filled):
    commands = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "$ "]
    assert len(commands) == 4
    for command in commands:
        done(*shlex.split(command)[2:])
    assert {"out/summary.json", "new.parquet", "next.csv"} <= set(filled.names())
    found = pq.read_table("out/labels.parquet")["label"].to_numpy()
    stored = pq.read_table(io.BytesIO(filled.get("out/labels.parquet")))["label"].to_numpy()
    assert np.array_equal(found, stored)  # of the live rows, which are the same
