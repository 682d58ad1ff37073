"""Delta and Iceberg tables: what was deleted or overwritten does not come back."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pyarrow as pa
import pytest

from biglp._core import BadRowsError, MissingExtraError
from biglp._rows import InputFiles, as_source

TABLE = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [10.0, 20.0, 30.0, 40.0]})
LIVE = [[1.0, 10.0], [1.0, 10.0], [3.0, 30.0], [3.0, 30.0], [4.0, 40.0], [4.0, 40.0]]


def find_files(paths):
    return list(InputFiles(paths).names)


def rows_of(path) -> list[list[float]]:
    source = as_source(path)
    return sorted(source.read(0, source.n_rows).tolist())


@pytest.fixture
def delta(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    folder = str(tmp_path / "delta")
    deltalake.write_deltalake(folder, TABLE)
    deltalake.write_deltalake(folder, TABLE, mode="append")
    deltalake.DeltaTable(folder).delete("a = 2")
    return folder


@pytest.fixture
def iceberg(tmp_path):
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog(
        "test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri()
    )
    catalog.create_namespace("here")
    table = catalog.create_table("here.rows", schema=TABLE.schema)
    table.append(TABLE)
    table.append(TABLE)
    table.delete("a == 2.0")
    yield table
    catalog.engine.dispose()


class TestDelta:
    def test_deleted_rows_do_not_come_back(self, delta):
        assert len(find_files(delta)) == 1
        assert rows_of(delta) == LIVE
        assert list(InputFiles(delta).facts.values()) == ["Delta table, version 2"]

    def test_overwritten_rows_do_not_come_back(self, delta):
        import deltalake

        deltalake.write_deltalake(delta, TABLE.slice(0, 1), mode="overwrite")
        assert rows_of(delta) == [[1.0, 10.0]]

    def test_files_of_a_table_are_refused_one_by_one(self, delta, tmp_path):
        for named in (f"{delta}/*.parquet", find_files(delta), str(tmp_path)):
            with pytest.raises(BadRowsError, match="Give the folder of the table itself"):
                find_files(named)

    def test_a_table_in_a_store(self, delta, store, tmp_path):
        for path in (tmp_path / "delta").rglob("*"):
            if path.is_file():
                store.put(f"lake/{path.relative_to(tmp_path)}", path.read_bytes())
        assert rows_of(store.uri("lake/delta")) == LIVE
        with pytest.raises(BadRowsError, match="Give the folder of the table itself"):
            find_files(store.uri("lake/delta/*.parquet"))

    def test_column_mapping_is_refused(self, tmp_path):
        deltalake = pytest.importorskip("deltalake")
        folder = tmp_path / "mapped"
        deltalake.write_deltalake(str(folder), TABLE)
        log = folder / "_delta_log" / f"{0:020}.json"
        text = log.read_text()
        assert '"configuration":{}' in text
        log.write_text(
            text.replace(
                '"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}'
            )
        )
        with pytest.raises(BadRowsError, match=r"column mapping|columnMapping"):
            find_files(folder)

    def test_deletion_vectors_are_refused(self, delta, monkeypatch):
        """No package on PyPI writes them."""
        import deltalake

        class Protocol:
            reader_features = ("deletionVectors",)

        monkeypatch.setattr(deltalake.DeltaTable, "protocol", lambda self: Protocol())
        monkeypatch.setattr(deltalake.DeltaTable, "deletion_vectors", lambda self: [[1, 2]])
        with pytest.raises(BadRowsError, match="2 strike out rows"):
            find_files(delta)
        monkeypatch.setattr(deltalake.DeltaTable, "deletion_vectors", lambda self: [])
        assert rows_of(delta) == LIVE

    def test_a_damaged_log(self, delta, tmp_path):
        for log in (tmp_path / "delta" / "_delta_log").iterdir():
            log.write_text("nonsense")
        with pytest.raises(BadRowsError, match="cannot be read as a Delta table"):
            find_files(delta)


class TestIceberg:
    def test_deleted_rows_do_not_come_back(self, iceberg, tmp_path):
        folder = tmp_path / "here" / "rows"
        assert rows_of(folder) == LIVE
        assert rows_of(iceberg.metadata_location) == LIVE
        version = f"Iceberg table, snapshot {iceberg.current_snapshot().snapshot_id}"
        assert list(InputFiles(folder).facts.values()) == [version]

    def test_a_table_in_a_store(self, store, tmp_path):
        sql = pytest.importorskip("pyiceberg.catalog.sql")
        catalog = sql.SqlCatalog(
            "test",
            **{
                "uri": f"sqlite:///{tmp_path}/catalog.db",
                "warehouse": store.uri("lake"),
                "s3.endpoint": store.environment["AWS_ENDPOINT_URL"],
                "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            },
        )
        catalog.create_namespace("here")
        table = catalog.create_table("here.rows", schema=TABLE.schema)
        table.append(TABLE)
        table.overwrite(TABLE.slice(0, 1))
        catalog.engine.dispose()
        assert rows_of(store.uri("lake/here/rows")) == [[1.0, 10.0]]

    def test_files_of_a_table_are_refused_one_by_one(self, iceberg, tmp_path):
        with pytest.raises(BadRowsError, match="Give the folder of the table itself"):
            find_files(str(tmp_path / "here" / "rows" / "data" / "*.parquet"))

    def test_renamed_columns_are_refused(self, iceberg, tmp_path):
        with iceberg.update_schema() as change:
            change.rename_column("a", "c")
        with pytest.raises(BadRowsError, match="'c' was renamed"):
            find_files(tmp_path / "here" / "rows")

    def test_two_metadata_files_of_one_version(self, iceberg, tmp_path):
        folder = tmp_path / "here" / "rows"
        newest = max((folder / "metadata").glob("*.metadata.json"))
        shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))
        with pytest.raises(BadRowsError, match="several metadata files of the same version"):
            find_files(folder)

    def test_delete_files_are_refused(self, iceberg, tmp_path, monkeypatch):
        """pyiceberg reads them, and writes none."""
        from pyiceberg.table import DataScan, FileScanTask

        plan = DataScan.plan_files

        def with_deletes(scan):
            return [FileScanTask(task.file, {task.file}) for task in plan(scan)]

        monkeypatch.setattr(DataScan, "plan_files", with_deletes)
        with pytest.raises(BadRowsError, match="delete files"):
            find_files(tmp_path / "here" / "rows")


@pytest.mark.parametrize(("package", "kind"), [("deltalake", "delta"), ("pyiceberg", "iceberg")])
def test_without_the_package(tmp_path, monkeypatch, package, kind):
    marker = {"delta": "_delta_log/0.json", "iceberg": "metadata/v1.metadata.json"}[kind]
    (tmp_path / marker).parent.mkdir()
    (tmp_path / marker).write_text("{}")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*pip install 'biglp\[lake\]'"):
        find_files(tmp_path)


def test_live_rows_are_those_of_a_plain_file(delta, tmp_path):
    import pyarrow.parquet as pq

    (live,) = find_files(delta)
    shutil.copy(live, tmp_path / "plain.parquet")
    plain, table = as_source(tmp_path / "plain.parquet"), as_source(delta)
    assert pq.read_metadata(live).num_rows == table.n_rows
    assert np.array_equal(plain.read(0, 6), table.read(0, 6))
