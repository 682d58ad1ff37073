"""A table beside shards: found, counted, and its columns used as labels."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.errors import BadRowsError, ParameterError
from biglp._labels.reading import check_table_beside
from biglp._rows import InputFiles
from cli_tools import done, failed
from helpers import blobs

BOUNDS = (0, 90, 100, 400)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Shards of rows, and tables of metadata beside them."""
    monkeypatch.chdir(tmp_path)
    X, y, _ = blobs(n=400, features=4, dtype=np.float32)
    table = pa.table({"id": np.arange(400), "kind": [None if c < 0 else "abc"[c] for c in y]})
    for folder in ("emb", "meta", "csv"):
        Path(folder).mkdir()
    for number, start in zip((1, 2, 10), BOUNDS[:-1], strict=True):
        part = slice(start, BOUNDS[BOUNDS.index(start) + 1])
        np.save(f"emb/emb_{number}.npy", X[part])
        lines = table.slice(part.start, part.stop - part.start)
        pq.write_table(lines, f"meta/meta_{number}.parquet", row_group_size=37)
        pyarrow.csv.write_csv(lines, f"csv/meta_{number}.csv")
    pq.write_table(table, "all.parquet")
    return X, y


@cache
def expected_labels():
    X, y, _ = blobs(n=400, features=4, dtype=np.float32)
    names = np.array(["a", "b", "c", ""])
    model = LowRankLabelPropagation(random_state=0).fit(X, np.where(y < 0, None, names[y]))
    return model.transduction_


@pytest.mark.parametrize("metadata", ["meta/*.parquet", "meta", "csv/*.csv", "all.parquet"])
def test_labels_come_from_its_column(data, metadata):
    given = ("--metadata", metadata, "--label-column", "kind", "-o", "out")
    done("fit", "emb", *given, "-q")
    np.testing.assert_array_equal(np.load("out/labels.npy"), expected_labels())
    if metadata != "meta":
        return
    looked = json.loads(done("inspect", "emb/*.npy", *given[:-2], "--json").output)
    assert (looked["rows"], looked["features"], sum(looked["labels"].values())) == (400, 4, 24)
    # What belongs to the fit is found again from its folder.
    assert "400 rows" in done("fit", "emb", *given[:-1], "new", "--dry-run").output
    found = json.loads(done("suggest", "out", "-n", "3", "--json").output)
    assert found["labelled_rows"] == 24
    assert json.loads(done("check", "out", "--json").output)["labelled_rows"] == 24


@pytest.mark.parametrize("metadata", ["meta/*.parquet", "all.parquet"])
def test_labels_come_from_its_column_in_python(data, metadata):
    X, y = data
    for rows in ("emb", X):
        model = LowRankLabelPropagation(random_state=0, metadata=metadata, label_column="kind")
        np.testing.assert_array_equal(model.fit(rows).transduction_, expected_labels())
    assert model.n_features_in_ == 4
    # Labels by the IDs of its rows.
    Path("labels.csv").write_text("id,label\n3,p\n350,q\n")
    by_id = LowRankLabelPropagation(metadata=metadata, id_column="id").fit("emb", "labels.csv")
    assert (by_id.classes_.tolist(), by_id._problem.labels.rows.tolist()) == (["p", "q"], [3, 350])
    with pytest.raises(ValueError, match=r"399|400"):
        LowRankLabelPropagation(metadata=metadata, label_column="kind").fit(X[:-1])
    with pytest.raises(ParameterError, match="nothing says which of its columns"):
        LowRankLabelPropagation(metadata=metadata).fit(X, y)


def test_resume_notices_a_change(data):
    fit = ("fit", "emb", "--metadata", "meta", "--label-column", "kind", "-o", "out", "-q")
    done(*fit)
    done(*fit, "--resume")
    shard = np.load("emb/emb_2.npy")
    np.save("emb/emb_2.npy", shard + 1)
    assert "emb_2.npy" in failed(5, *fit, "--resume")


def test_each_shard_is_compared_with_its_own(data):
    np.save("emb/emb_2.npy", np.zeros((11, 4), np.float32))
    np.save("emb/emb_10.npy", np.zeros((299, 4), np.float32))  # 400 rows in all, as before
    for metadata in ("meta", "csv"):
        with pytest.raises(BadRowsError, match=r"2 of 3 shards .*emb_2.npy has 11 and .* 10;"):
            check_table_beside(InputFiles("emb"), InputFiles(metadata))
    check_table_beside(InputFiles("emb"), InputFiles("all.parquet"))


def test_all_rows_are_counted_elsewhere(data):
    np.save("emb/emb_10.npy", np.zeros((301, 4), np.float32))
    fit = ("fit", "emb", "--metadata", "all.parquet", "--label-column", "kind", "-o", "out")
    message = " ".join(failed(3, *fit).split())
    assert "(all.parquet) has 400 rows, and emb/emb_1.npy and 2 more has 401" in message


def test_what_it_must_be(data):
    with pytest.raises(ParameterError, match=r"must be a table.*--labels"):
        check_table_beside(InputFiles("emb"), InputFiles("emb/emb_1.npy"))
    fit = ("fit", "emb", "--metadata", "meta", "-o", "out", "--label-column", "colour")
    assert "has no column 'colour'; it has 'id', 'kind'" in " ".join(failed(2, *fit).split())
