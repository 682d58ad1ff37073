"""The same rows of numbers in files of every kind that holds arrays, lists or shards."""

import json
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

KINDS = (
    "npy",
    "shards",
    "npz",
    "npz-shards",
    "jsonl",
    "jsonl-fields",
    "hdf5",
    "zarr",
    "list",
    "large_list",
    "fixed_size_list",
    "arrow",
)


def write(kind: str, rows: np.ndarray, folder: Path, cuts: list[int], chunk: int) -> str:
    folder.mkdir()
    bounds = [0, *sorted(cuts), len(rows)]
    shards = [rows[a:b] for a, b in pairwise(bounds)]
    if kind == "npy":
        np.save(folder / "x.npy", rows)
        return str(folder / "x.npy")
    if kind == "shards":
        for number, shard in enumerate(shards):
            np.save(folder / f"emb_{number}.npy", shard)
        return str(folder)
    if kind == "npz":
        np.savez(folder / "x.npz", X=rows, other=rows[:1].T)
        return str(folder / "x.npz")
    if kind == "npz-shards":
        for number, shard in enumerate(shards):
            np.savez_compressed(folder / f"emb_{number}.npz", np.asfortranarray(shard))
        return str(folder / "*.npz")
    if kind in ("jsonl", "jsonl-fields"):
        lines = [
            {"emb": row} if kind == "jsonl" else {f"f{i}": value for i, value in enumerate(row)}
            for row in rows.tolist()
        ]
        (folder / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(folder / "x.jsonl")
    if kind == "hdf5":
        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset(
                "group/emb", data=rows, chunks=(min(chunk, len(rows)), 1), compression="gzip"
            )
        return f"{folder / 'x.h5'}::group/emb"
    if kind == "zarr":
        zarr.create_array(folder / "x.zarr", data=rows, chunks=(chunk, rows.shape[1]))
        return str(folder / "x.zarr")
    table = pa.table({"emb": list_column("list" if kind == "arrow" else kind, rows)})
    if kind == "arrow":
        with pa.OSFile(str(folder / "x.arrow"), "wb") as file:
            writer = pa.ipc.new_file(file, table.schema)
            writer.write_table(table, max_chunksize=chunk)
            writer.close()
        return str(folder / "x.arrow")
    pq.write_table(table, folder / "x.parquet", row_group_size=chunk)
    return str(folder / "x.parquet")


def list_column(kind: str, rows: np.ndarray) -> pa.Array:
    flat = pa.array(rows.reshape(-1))
    if kind == "fixed_size_list":
        return pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
    bounds = np.arange(len(rows) + 1) * rows.shape[1]
    if kind == "large_list":
        return pa.LargeListArray.from_arrays(pa.array(bounds), flat)
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), flat)
