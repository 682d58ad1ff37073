"""Rows for an empty folder to run in, and digits for estimators."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_digits

from row_files import FEATURES, ROWS


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=ROWS)
    centres = 4.0 * rng.standard_normal((3, FEATURES))
    values = centres[truth] + rng.standard_normal((ROWS, FEATURES))
    shown = np.where(rng.random(ROWS) < 0.02, truth, -1)
    return values, shown, truth


@pytest.fixture
def connections(here) -> Path:
    rng = np.random.default_rng(1)
    n = 2000
    truth = rng.choice(["normal.", "smurf.", "neptune."], n, p=[0.2, 0.6, 0.2])
    service = np.where(truth == "smurf.", "ecr_i", rng.choice(["http", "smtp", "ftp"], n))
    size = np.where(truth == "smurf.", 1032.0, rng.lognormal(6, 2, n).round())
    rate = np.where(truth == "neptune.", 1.0, 0.0)
    size[::97] = np.nan
    shown = np.where(rng.random(n) < 0.03, truth, None)
    columns = {
        "duration": pa.array(rng.integers(0, 50, n)),
        "service": pa.array(service.tolist()),
        "bytes": pa.array(size, from_pandas=True),
        "error_rate": pa.array(rate),
        "class": pa.array(shown.tolist(), pa.string()),
    }
    pq.write_table(pa.table(columns), "connections.parquet")
    Path("truth.txt").write_text("\n".join(truth))
    return Path("connections.parquet")


@pytest.fixture(scope="session")
def digits():
    X, truth = load_digits(return_X_y=True)
    y = np.full(len(truth), -1)
    rows = np.random.default_rng(0).choice(len(truth), 100, replace=False)
    y[rows] = truth[rows]
    return X.astype(np.float32), y, truth
