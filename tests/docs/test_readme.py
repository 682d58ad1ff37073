"""Every command that a page shows is run, in order, in one folder; those of stores.md on a store.

Commands are the lines of ``console`` blocks that begin with ``$ biglp``; ``# exit 3`` at the end of
one says that it is meant to fail with that code.
"""

import io
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp.cli import app
from cli_tools import run
from helpers import blobs

ROOT = Path(__file__).parents[2]


def commands(page: str) -> list[tuple[str, int]]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ biglp"):
                command, _, comment = line.removeprefix("$ ").partition("  # ")
                code = re.search(r"exit (\d+)", comment)
                found.append((command.strip(), int(code[1]) if code else 0))
    return found


def execute(page: str) -> set[str]:
    found = commands(page)
    for command, code in found:
        outcome = run(*shlex.split(command)[1:])
        assert outcome.exit_code == code, (command, outcome.output)
    return {command.split()[1] for command, _ in found}


def test_commands_of_the_readme_run(here):
    assert "fit" in execute("README.md")


def test_commands_of_their_page_run_and_there_is_one_of_each(here):
    shown = execute("docs/command-line.md")
    known = {each.name or each.callback.__name__ for each in app.registered_commands}
    assert known - shown == {"label"}


def as_bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def test_commands_of_the_page_on_stores_run(store, here):
    deltalake = pytest.importorskip("deltalake")
    X, y, _ = blobs(600)
    table = pa.table({f"f{i}": X[:, i] for i in range(X.shape[1])})
    labelled = table.append_column("y", pa.array(y, mask=y < 0))
    for number in range(2):
        part = (300 * number, 300)
        store.put(f"rows/{number}.parquet", as_bytes(labelled.slice(*part)))
        store.put(f"new/part-{number}.parquet", as_bytes(table.slice(*part)))
    deltalake.write_deltalake("customers", labelled)
    deltalake.write_deltalake("customers", labelled, mode="overwrite")
    for path in (here / "customers").rglob("*.*"):
        store.put(f"lake/{path.relative_to(here)}", path.read_bytes())
    execute("docs/stores.md")
    assert {"out/summary.json", "new.parquet", "next.csv"} <= set(store.names())
    found = pq.read_table("out/labels.parquet")["label"].to_numpy()
    stored = pq.read_table(io.BytesIO(store.get("out/labels.parquet")))["label"].to_numpy()
    assert np.array_equal(found, stored)  # of the live rows, which are the same
