"""Columns in the names of folders."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from biglp._core.errors import BadRowsError
from biglp._rows import InputFiles, as_source
from label_files import read_labels

FOLDERS = ("year=2023/lang=de", "year=2023/lang=en", "year=2024/lang=a%20b")


def write_json(table, path):
    path.write_text("".join(f'{{"a": {row["a"]}}}\n' for row in table.to_pylist()))


def write_arrow(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    ".parquet": pq.write_table,
    ".csv": pyarrow.csv.write_csv,
    ".arrow": write_arrow,
    ".jsonl": write_json,
}


@pytest.fixture(params=WRITERS)
def folder(request, tmp_path):
    """Two rows in each folder."""
    for number, name in enumerate(FOLDERS):
        place = tmp_path / "t" / name
        place.mkdir(parents=True)
        path = place / f"part{request.param}"
        WRITERS[request.param](pa.table({"a": [number + 0.5, number + 0.75]}), path)
    return tmp_path / "t"


def test_they_are_columns(folder):
    columns = InputFiles(folder).peek().columns
    assert (columns["year"], columns["lang"]) == ("int64", "string")
    source = as_source(folder, label_column="lang")
    expected = [[0.5, 2023], [0.75, 2023], [1.5, 2023], [1.75, 2023], [2.5, 2024], [2.75, 2024]]
    assert source.feature_names == ("a", "year")
    np.testing.assert_array_equal(source.read(0, 6), expected)
    np.testing.assert_array_equal(source.take(np.array([1, 4])), [expected[1], expected[4]])
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(1, 5), expected[1:5])
    assert as_source(folder, drop=["lang", "year"]).feature_names == ("a",)
    assert as_source(folder, columns=["year"]).read(0, 6)[:, 0].tolist() == [2023] * 4 + [2024] * 2


def test_they_are_labels(folder):
    labels = read_labels(folder, 6, column="lang")
    assert labels.tolist() == ["de", "de", "en", "en", "a b", "a b"]
    np.testing.assert_array_equal(read_labels(folder, 6, column="year"), [2023] * 4 + [2024] * 2)


def test_they_are_categories(folder):
    source = as_source(folder, drop=["a", "year"], categorical="onehot")
    assert source.feature_names == ("lang=a b", "lang=de", "lang=en")
    np.testing.assert_array_equal(source.read(0, 6).argmax(axis=1), [1, 1, 2, 2, 0, 0])


def test_one_folder_of_several(folder):
    """A key with one value says nothing, but a model may know it."""
    part = folder / "year=2023"
    assert as_source(part, drop=["lang"]).feature_names == ("a",)
    known = as_source(folder, drop=["lang"]).encoding
    np.testing.assert_array_equal(as_source(part, encoding=known).read(0, 4)[:, 1], [2023] * 4)
    file = next(part.rglob("part*"))
    assert as_source(file).feature_names == ("a",)


def test_text_is_told_with_its_folder(folder):
    with pytest.raises(BadRowsError, match=r"'lang' \(string, in the folder lang=de\) hold text"):
        as_source(folder, categorical="error")
    assert as_source(folder).feature_names[-3:] == ("lang=a b", "lang=de", "lang=en")


def test_missing_and_mixed_values(tmp_path):
    for name in ("n=1", "n=2.5", "n=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / name / "x.parquet")
    with pytest.raises(BadRowsError, match=r"1 missing values, in 'n' \(1\); first in rows 2"):
        as_source(tmp_path, missing="error")
    assert as_source(tmp_path, missing="mean").read(0, 3)[:, 1].tolist() == [1, 2.5, 1.75]


def test_a_column_of_the_file_itself_is_kept(tmp_path):
    for number in (1, 2):
        (tmp_path / f"a={number}").mkdir()
        pq.write_table(pa.table({"a": [7.0]}), tmp_path / f"a={number}" / "x.parquet")
    assert as_source(tmp_path).read(0, 2).tolist() == [[7], [7]]


def test_a_file_in_no_such_folder(tmp_path):
    (tmp_path / "n=1").mkdir()
    for name in ("n=1/x.parquet", "y.parquet"):
        pq.write_table(pa.table({"a": [1.0]}), tmp_path / name)
    with pytest.raises(BadRowsError, match=r"is in a folder n=….*y.parquet is not"):
        as_source(tmp_path)
