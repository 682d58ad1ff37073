"""Every kind of file gives the same rows from a store as from a disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core.errors import BadRowsError
from biglp._rows import as_source

ROWS = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)


def shards(folder: Path) -> str:
    for number in (1, 2, 10):
        np.save(folder / f"emb_{number}.npy", ROWS[number:].astype(np.float16))
    return "emb_*.npy"


def embeddings(folder: Path) -> str:
    column = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 4)
    pq.write_table(pa.table({"emb": column}), folder / "x.parquet", row_group_size=7)
    return "x.parquet"


def partitions(folder: Path) -> str:
    for year in (2023, 2024):
        (folder / f"t/year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"a": ROWS[:, 0]}), folder / f"t/year={year}/x.parquet")
    return "t"


def json_lines(folder: Path) -> str:
    lines = (json.dumps({"emb": row.tolist()}) for row in ROWS)
    (folder / "x.jsonl").write_text("\n".join(lines) + "\n")
    return "x.jsonl"


def hdf5(folder: Path) -> str:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "x.h5", "w") as file:
        file["a"] = ROWS
        file["b"] = ROWS[::-1]
    return "x.h5::b"


def delta(folder: Path) -> str:
    deltalake = pytest.importorskip("deltalake")
    table = pa.table({"a": ROWS[:, 0], "kind": np.arange(40) % 3})
    deltalake.write_deltalake(str(folder / "d"), table, partition_by=["kind"])
    deltalake.DeltaTable(str(folder / "d")).delete("kind = 1")
    return "d"


@pytest.mark.parametrize("make", [shards, embeddings, partitions, json_lines, hdf5, delta])
def test_the_same_rows(store, tmp_path, make):
    folder = tmp_path / "files"
    folder.mkdir()
    name = make(folder)
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(f"in/{path.relative_to(folder)}", path.read_bytes())
    local, stored = as_source(str(folder / name)), as_source(store.uri(f"in/{name}"))
    assert (stored.n_rows, stored.n_features) == (local.n_rows, local.n_features)
    assert stored.feature_names == local.feature_names
    assert np.array_equal(stored.read(0, stored.n_rows), local.read(0, local.n_rows))
    if make is delta:
        assert local.n_features == 2
        assert set(np.unique(local.read(0, local.n_rows)[:, 1])) == {0.0, 2.0}


def test_a_folder_that_is_one_array_is_refused(store):
    store.put("x.zarr/zarr.json", b"{}")
    for name in ("x.zarr", ""):
        with pytest.raises(BadRowsError, match=r"x\.zarr is a folder that is read as one array"):
            as_source(store.uri(name))
