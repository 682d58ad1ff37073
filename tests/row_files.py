"""Rows and labels in files of every format, and the labels that a run wrote."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.datasets import dump_svmlight_file

ROWS, FEATURES = 3000, 6


def write(kind: str, values: np.ndarray, shown: np.ndarray) -> tuple[str, ...]:
    if kind == "npy":
        np.save("rows.npy", values)
        np.save("labels.npy", shown)
        return "rows.npy", "--labels", "labels.npy"
    if kind == "libsvm":
        dump_svmlight_file(values, shown, "rows.libsvm", zero_based=False)
        return ("rows.libsvm",)
    columns = {f"x{i}": pa.array(values[:, i]) for i in range(values.shape[1])}
    table = pa.table(columns | {"y": pa.array(shown, mask=shown < 0)})
    if kind == "parquet":
        pq.write_table(table, "rows.parquet", row_group_size=700)
        return "rows.parquet", "--label-column", "y"
    if kind == "folder":
        Path("rows").mkdir()
        for part, start in enumerate(range(0, ROWS, 1000)):
            pq.write_table(table.slice(start, 1000), f"rows/part-{part}.parquet")
        return "rows", "--label-column", "y"
    if kind == "csv":
        pyarrow.csv.write_csv(table, "rows.csv")
        return "rows.csv", "--label-column", "y"
    raise AssertionError(kind)


def found_labels(folder: str) -> np.ndarray:
    if Path(folder, "labels.npy").exists():
        return np.load(Path(folder, "labels.npy"))
    return pq.read_table(Path(folder, "labels.parquet"))["label"].to_numpy()
