"""Delta and Iceberg tables: what was deleted or overwritten does not come back."""

import shutil
import sys

import pyarrow as pa
import pytest

from biglp._core import BadRowsError, MissingExtraError
from biglp._rows import InputFiles, as_source

TABLE = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [10.0, 20.0, 30.0, 40.0]})
LIVE = [[1.0, 10.0], [1.0, 10.0], [3.0, 30.0], [3.0, 30.0], [4.0, 40.0], [4.0, 40.0]]


def rows_of(path) -> list[list[float]]:
    source = as_source(path)
    return sorted(source.read(0, source.n_rows).tolist())


def refused(path, message):
    with pytest.raises(BadRowsError, match=message):
        InputFiles(path)


ALONE = "Give the folder of the table itself"


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


# Delta --------------------------------------------------------------------------------------------


def test_deleted_and_overwritten_rows_of_delta_do_not_come_back(delta):
    import deltalake

    assert rows_of(delta) == LIVE
    named = InputFiles(delta)
    assert list(named.facts.values()) == ["Delta table, version 2"]
    deltalake.write_deltalake(delta, TABLE.slice(0, 1), mode="overwrite")
    assert rows_of(delta) == [[1.0, 10.0]]


def test_files_of_a_delta_table_are_refused_one_by_one(delta, store, tmp_path):
    for named in (f"{delta}/*.parquet", list(InputFiles(delta).files), str(tmp_path)):
        refused(named, ALONE)
    for path in (tmp_path / "delta").rglob("*"):
        if path.is_file():
            store.put(f"lake/{path.relative_to(tmp_path)}", path.read_bytes())
    assert rows_of(store.uri("lake/delta")) == LIVE
    refused(store.uri("lake/delta/*.parquet"), ALONE)


def test_delta_tables_that_cannot_be_read(delta, tmp_path, monkeypatch):
    import deltalake

    class Protocol:
        reader_features = ("deletionVectors",)

    with monkeypatch.context() as patch:  # no package on PyPI writes them
        patch.setattr(deltalake.DeltaTable, "protocol", lambda self: Protocol())
        patch.setattr(deltalake.DeltaTable, "deletion_vectors", lambda self: [[1, 2]])
        refused(delta, "2 strike out rows")
        patch.setattr(deltalake.DeltaTable, "deletion_vectors", lambda self: [])
        assert rows_of(delta) == LIVE
    deltalake.write_deltalake(str(tmp_path / "mapped"), TABLE)
    log = tmp_path / "mapped" / "_delta_log" / f"{0:020}.json"
    text, empty = log.read_text(), '"configuration":{}'
    assert empty in text
    log.write_text(text.replace(empty, empty[:-1] + '"delta.columnMapping.mode":"name"}'))
    refused(tmp_path / "mapped", r"column mapping|columnMapping")
    for log in (tmp_path / "delta" / "_delta_log").iterdir():
        log.write_text("nonsense")
    refused(delta, "cannot be read as a Delta table")


# Iceberg ------------------------------------------------------------------------------------------


def test_deleted_rows_of_iceberg_do_not_come_back(iceberg, tmp_path):
    folder = tmp_path / "here" / "rows"
    assert rows_of(folder) == LIVE
    assert rows_of(iceberg.metadata_location) == LIVE
    version = f"Iceberg table, snapshot {iceberg.current_snapshot().snapshot_id}"
    assert list(InputFiles(folder).facts.values()) == [version]
    refused(str(folder / "data" / "*.parquet"), ALONE)


def test_iceberg_tables_that_cannot_be_read(iceberg, tmp_path, monkeypatch):
    from pyiceberg.table import DataScan, FileScanTask

    folder, plan = tmp_path / "here" / "rows", DataScan.plan_files

    def with_deletes(scan):  # pyiceberg reads them, and writes none
        return [FileScanTask(task.file, {task.file}) for task in plan(scan)]

    with monkeypatch.context() as patch:
        patch.setattr(DataScan, "plan_files", with_deletes)
        refused(folder, "delete files")
    with iceberg.update_schema() as change:
        change.rename_column("a", "c")
    refused(folder, "'c' was renamed")
    newest = max((folder / "metadata").glob("*.metadata.json"))
    shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))
    refused(folder, "several metadata files of the same version")


@pytest.mark.parametrize(
    ("package", "marker"),
    [("deltalake", "_delta_log/0.json"), ("pyiceberg", "metadata/v1.metadata.json")],
)
def test_without_the_package(tmp_path, monkeypatch, package, marker):
    (tmp_path / marker).parent.mkdir()
    (tmp_path / marker).write_text("{}")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*pip install 'biglp\[lake\]'"):
        InputFiles(tmp_path)
