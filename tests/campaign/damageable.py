"""Undamaged files of every format, and the commands that read them."""

import bz2
import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import array_files
import cli_tools
import row_files

TABLES = ("csv", "csv.gz", "tsv", "parquet", "feather", "arrow-lz4", "jsonl", "libsvm")
TABLES += ("libsvm.bz2",)
ARRAYS = ("npy", "npy-fortran", "npz", "npz-sparse", "hdf5", "zarr")
LABELS = ("labels.npy", "labels.csv", "pairs.csv", "labels.txt", "labels.json", "pairs.parquet")
MIXED = ("mixed.csv", "mixed.parquet", "mixed.jsonl", "mixed.feather", "metadata.csv", "ids.csv")
"""Tables of numbers, texts, dates and truth values; and labels that stand in another table."""
LATER = ("new.csv", "new.parquet", "inspected.csv", "summary.json")
"""New rows for a model, and what else commands read."""
FILES = (*TABLES, *ARRAYS, *LABELS, *MIXED, *LATER)
PLAIN = ["--factor", "linear", "-q", "-o", "out", "--overwrite"]


def write(kind: str, choose: random.Random) -> tuple[list[str], list[Path]]:
    rng = np.random.default_rng(choose.getrandbits(32))
    n = choose.randrange(60, 300)
    truth = rng.integers(0, 3, n)
    values = np.round(rng.normal(size=(n, 4)) + 2 * truth[:, None], 3)
    shown = np.where(np.arange(n) < 30, truth, -1)
    np.save("labels.npy", shown)
    if kind in MIXED:
        return _write_mixed(kind, values, shown, rng)
    if kind in LATER:
        return _write_later(kind, values, shown)
    if kind in ARRAYS or kind in LABELS:
        named, targets = _write_arrays(kind, values, rng)
        labels = ["--labels", _write_labels(kind, shown)] if kind in LABELS else []
        if labels:
            targets = [Path(labels[1])]
        return ["fit", *named, *(labels or ["--labels", "labels.npy"]), *PLAIN], targets
    named = [*map(str, _write_table(kind, values, shown))]
    if kind.startswith("libsvm"):
        named += ["--labels", "labels.npy"]
    return ["fit", *named, *PLAIN], [Path(named[0])]


def _write_table(kind: str, values: np.ndarray, shown: np.ndarray) -> tuple[str, ...]:
    import pyarrow.feather

    if kind == "libsvm.bz2":
        row_files.write("libsvm", values, shown)
        Path("rows.libsvm.bz2").write_bytes(bz2.compress(Path("rows.libsvm").read_bytes()))
        return ("rows.libsvm.bz2",)
    if kind in ("libsvm", "parquet", "csv"):
        return row_files.write(kind, values, shown)
    row_files.write("csv", values, shown)
    text = Path("rows.csv").read_bytes()
    if kind == "csv.gz":
        Path("rows.csv.gz").write_bytes(gzip.compress(text))
        return "rows.csv.gz", "--label-column", "y"
    if kind == "tsv":
        Path("rows.tsv").write_bytes(text.replace(b",", b"\t"))
        return "rows.tsv", "--label-column", "y"
    table = pyarrow.csv.read_csv("rows.csv")
    if kind == "jsonl":
        lines = [json.dumps(row) for row in table.to_pylist()]
        Path("rows.jsonl").write_text("\n".join(lines) + "\n")
        return "rows.jsonl", "--label-column", "y"
    packing = "lz4" if kind == "arrow-lz4" else "uncompressed"
    pyarrow.feather.write_feather(table, "rows.feather", compression=packing)
    return "rows.feather", "--label-column", "y"


Written = tuple[list[str], list[Path]]


def _write_arrays(kind: str, values: np.ndarray, rng: np.random.Generator) -> Written:
    from scipy import sparse

    if kind == "npy-fortran":
        np.save("rows.npy", np.asfortranarray(values))
        return ["rows.npy"], [Path("rows.npy")]
    if kind == "npz-sparse":
        thin = np.where(rng.random(values.shape) < 0.5, 0, values)
        sparse.save_npz("rows.npz", sparse.csr_matrix(thin))
        return ["rows.npz"], [Path("rows.npz")]
    if kind in LABELS or kind == "npy":
        np.save("rows.npy", values)
        return ["rows.npy"], [Path("rows.npy")]
    named = array_files.write(kind, values, Path("made"), [], 50)
    place = Path(named.partition("::")[0])
    return [named], [path for path in sorted(place.parent.rglob("*")) if path.is_file()]


def _write_labels(kind: str, shown: np.ndarray) -> str:
    known = np.flatnonzero(shown >= 0)
    if kind == "labels.csv":
        Path(kind).write_text("label\n" + "\n".join(map(str, shown)) + "\n")
    elif kind == "pairs.csv":
        Path(kind).write_text("row,label\n" + "".join(f"{i},{shown[i]}\n" for i in known))
    elif kind == "pairs.parquet":
        pd.DataFrame({"row": known, "label": shown[known]}).to_parquet(kind)
    elif kind == "labels.txt":
        Path(kind).write_text("".join(f"{label}\n" for label in shown))
    elif kind == "labels.json":
        said = [{"result": [{"value": {"choices": [str(label)]}}]} for label in shown[known]]
        rows = [{"row": int(row)} for row in known]
        tasks = [{"data": a, "annotations": [b]} for a, b in zip(rows, said, strict=True)]
        Path(kind).write_text(json.dumps(tasks))
    return kind


def _write_mixed(kind: str, values: np.ndarray, shown: np.ndarray, rng: Any) -> Written:
    n = len(values)
    table = pd.DataFrame(values, columns=[*"abcd"])
    table["word"] = rng.choice(["red", "green", "", "1", "nan", "é"], n)
    table["day"] = pd.Timestamp("2020-02-28") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    table["yes"] = rng.random(n) < 0.5
    table["note"] = rng.choice(["one two", "two, three", 'a "b" c', "line\nline"], n)
    table["name"] = [f"id-{i}" for i in range(n)]
    table["w"] = rng.random(n)
    table["y"] = np.where(shown >= 0, np.array(["p", "q", "r"])[shown], None)
    table.loc[rng.random(n) < 0.1, ["a", "word", "day"]] = None
    named = ["--label-column", "y", "--id-column", "name", "--text", "note"]
    if kind == "metadata.csv":
        np.save("rows.npy", values)
        table[["name", "y"]].to_csv(kind, index=False)
        return ["fit", "rows.npy", "--metadata", kind, *named[:4], *PLAIN], [Path(kind)]
    if kind == "ids.csv":
        table.drop(columns=["y"]).to_csv("rows.csv", index=False)
        table.loc[shown >= 0, ["name", "y"]].to_csv(kind, index=False)
        words = ["--labels", kind, "--id-column", "name", "--drop", "note"]
        return ["fit", "rows.csv", *words, *PLAIN], [Path(kind), Path("rows.csv")]
    writers = {
        "csv": lambda: table.to_csv(kind, index=False),
        "parquet": lambda: table.to_parquet(kind),
        "feather": lambda: table.to_feather(kind),
        "jsonl": lambda: table.to_json(kind, orient="records", lines=True, date_format="iso"),
    }
    writers[kind.partition(".")[2]]()
    # Words make very many features, for which the linear kernel is not made.
    options = ["--factor", "anchors", "-k", "8", *PLAIN[2:]]
    return ["fit", kind, *named, "--weight-column", "w", *options], [Path(kind)]


def _write_later(kind: str, values: np.ndarray, shown: np.ndarray) -> Written:
    row_files.write("csv", values, shown)
    if kind == "inspected.csv":
        Path("rows.csv").rename(kind)
        return ["inspect", kind, "--label-column", "y"], [Path(kind)]
    cli_tools.done("fit", "rows.csv", "--label-column", "y", *PLAIN[:-3], "-o", "fitted")
    if kind == "summary.json":
        return ["report", "fitted", "--overwrite", "-q"], [Path("fitted/summary.json")]
    pd.read_csv("rows.csv").drop(columns=["y"]).to_csv("new.csv", index=False)
    if kind == "new.parquet":
        pd.read_csv("new.csv").to_parquet(kind)
    words = ["predict", "fitted/model.biglp", kind, "-o", "new", "--overwrite", "-q"]
    return words, [Path(kind)]
