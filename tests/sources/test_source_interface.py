"""Every source, and every source around another one, answers everything that is asked of one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from biglp._rows import PreparedRows, as_source, fingerprint
from biglp._rows.source import SPARSE_BYTES, table_bytes
from biglp._transforms import Chain, Project

ROWS = np.array([[1.0, 2.0], [np.nan, 3.0], [5.0, 6.0]])


@pytest.fixture(params=["array", "npy", "filled npy", "csv", "parquet", "direct", "svm", "sim"])
def source(request, tmp_path):
    kind = request.param
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).fillna(0.0)
    if kind == "array":
        return as_source(np.nan_to_num(ROWS))
    if kind == "sim":
        return as_source("sim:100x3")
    if kind.endswith("npy"):
        np.save(tmp_path / "x.npy", ROWS)
        return as_source(tmp_path / "x.npy", missing="mean" if "filled" in kind else "error")
    if kind == "csv":
        frame.to_csv(tmp_path / "x.csv", index=False)
        return as_source(tmp_path / "x.csv")
    if kind == "svm":
        (tmp_path / "x.svm").write_text("1 1:2 2:3\n0 1:1\n")
        return as_source(tmp_path / "x.svm")
    frame.to_parquet(tmp_path / "x.parquet")
    return as_source(tmp_path / "x.parquet", cache="never" if kind == "direct" else "auto")


def test_what_is_declared(source):
    assert source.from_files == bool(source.stamps)
    assert source.from_files == ("sim:" not in source.name and source.name != "array")
    assert source.device == "cpu"
    assert source.n_input_features == source.n_features
    assert source.part_bytes >= 0
    assert source.fingerprint() == fingerprint(source)
    source.check_unchanged()
    if source.is_sparse:
        assert source.decoding_bytes == SPARSE_BYTES
    elif source.feature_names is not None:
        assert source.feature_names == ("a", "b") == source.encoding.feature_names
        pages = source.decoding_bytes - table_bytes(3, 2)
        assert 0 <= pages <= 2 * 1.5 * 3 * 8
    else:
        assert source.decoding_bytes == 0


def test_prepared_rows_pass_it_on(source):
    projection = np.ones((source.n_features, 1))
    chain = Chain([Project(directions=projection)])
    prepared = PreparedRows(source, np.dtype(np.float64), chain)
    assert prepared.n_features == 1
    assert prepared.n_input_features == (1 if source.is_sparse else source.n_features)
    assert not prepared.is_sparse
    for name in ("name", "stamps", "from_files", "encoding", "part_bytes", "decoding_bytes"):
        assert getattr(prepared, name) == getattr(source, name)
    assert fingerprint(prepared) == fingerprint(source)


def test_filled_rows_say_where_they_come_from(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    plain, filled = as_source(tmp_path / "x.npy"), as_source(tmp_path / "x.npy", missing="mean")
    assert filled.stamps[0].path == plain.stamps[0].path
    assert filled.encoding.means == (3.0, 11 / 3)
    assert fingerprint(filled) == {
        **fingerprint(plain),
        "encoding": filled.encoding.to_json(),
    }
    in_memory = fingerprint(as_source(ROWS, missing="mean"))
    assert in_memory["kind"] == "memory"
    assert in_memory != fingerprint(as_source(ROWS * 2, missing="mean"))
