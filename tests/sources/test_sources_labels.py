"""Labels from a column, a file of one a row, or pairs; features are not touched."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core.errors import LabelError, ParameterError
from biglp._labels.codes import LabelCodes
from biglp._labels.reading import read_labels
from biglp._rows import as_source
from biglp._rows.format import LabelPiece

NUMBERS = np.array([-1, 0, 2, -1, 1, 0])
TEXTS = np.array([None, "cat", "dog", None, "a b", "cat"], dtype=object)


def same(labels: np.ndarray, expected: np.ndarray) -> None:
    assert labels.dtype.kind == np.asarray(expected).dtype.kind
    assert labels.tolist() == expected.tolist()


@pytest.fixture(params=[2, 1 << 20])
def _pieces(request, monkeypatch):
    monkeypatch.setattr("biglp._rows.format.PIECE_ROWS", request.param)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("dtype", ["i1", "i8", "f4", "f8", ">i4"])
def test_npy_of_numbers(tmp_path, dtype):
    np.save(tmp_path / "y.npy", NUMBERS.astype(dtype))
    labels = read_labels(tmp_path / "y.npy", 6)
    same(labels, NUMBERS)
    assert labels.itemsize == 1


@pytest.mark.usefixtures("_pieces")
def test_npy_of_texts_nan_and_truth(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["" if t is None else t for t in TEXTS]))
    same(read_labels(tmp_path / "y.npy", 6), TEXTS)
    np.save(tmp_path / "y.npy", np.where(NUMBERS < 0, np.nan, NUMBERS))
    same(read_labels(tmp_path / "y.npy", 6), NUMBERS)
    np.save(tmp_path / "y.npy", np.array([True, False]))
    same(read_labels(tmp_path / "y.npy", 2), np.array([1, 0]))
    np.save(tmp_path / "y.npy", np.array([300, -1, 100_000]))
    labels = read_labels(tmp_path / "y.npy", 3)
    same(labels, np.array([300, -1, 100_000]))
    assert labels.dtype == np.int32


@pytest.mark.parametrize("name", ["y.txt", "y.csv"])
@pytest.mark.parametrize("header", ["", "label\n"])
def test_one_a_line(tmp_path, name, header):
    (tmp_path / name).write_text(header + "-1\n0\n2\n\n1\n0\n")
    same(read_labels(tmp_path / name, 6), NUMBERS)
    (tmp_path / name).write_text(header + '\ncat\ndog\n\n"a b"\ncat')
    same(read_labels(tmp_path / name, 6), TEXTS)
    if not header:
        with pytest.raises(LabelError, match="has 6 labels, but there are 9 rows"):
            read_labels(tmp_path / name, 9)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_column_of_a_table(tmp_path, ending):
    frame = pd.DataFrame({"x": np.arange(6.0), "t": TEXTS, "n": NUMBERS, "m": NUMBERS * 1.0})
    frame.loc[frame.m < 0, "m"] = np.nan
    path = tmp_path / f"x.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        getattr(frame, f"to_{ending}")(path)
    same(read_labels(path, 6, column="n"), NUMBERS)
    same(read_labels(path, column="m"), NUMBERS)
    same(read_labels(path, column="t"), TEXTS)
    rows, values = read_labels(path, 6, column="t", sparse=True)
    assert rows.tolist() == [1, 2, 4, 5]
    assert values.tolist() == ["cat", "dog", "a b", "cat"]
    with pytest.raises(ParameterError, match=r"has no column 'z'; it has 'x', 't'"):
        read_labels(path, 6, column="z")
    with pytest.raises(LabelError, match="has columns 'x', 't', 'n', 'm'; say which"):
        read_labels(path, 6)
    with pytest.raises(LabelError, match="has 6 labels, but there are 7 rows"):
        read_labels(path, 7, column="n")
    features = as_source(path, label_column="n", drop=["t", "m"])
    assert features.feature_names == ("x",)


def test_only_the_label_column_is_read(tmp_path):
    path = tmp_path / "x.parquet"
    frame = pa.table({"x": np.arange(6.0), "y": NUMBERS})
    pq.write_table(frame, path, write_page_checksum=True, use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    data = bytearray(path.read_bytes())
    end = chunk.data_page_offset + chunk.total_compressed_size
    data[end - 4 : end] = b"\xff" * 4  # x can no longer be read
    path.write_bytes(bytes(data))
    same(read_labels(path, 6, column="y"), NUMBERS)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_pairs(tmp_path, ending):
    path = tmp_path / f"y.{ending}"

    def write(rows, labels, names=("row", "label")):
        frame = pd.DataFrame(dict(zip(names, (rows, labels), strict=True)))
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)

    write([4, 1, 2, 5, 3], [1, 0, 2, 0, -1])
    same(read_labels(path, 6), NUMBERS)
    rows, values = read_labels(path, 6, sparse=True)
    assert rows.tolist() == [1, 2, 4, 5]
    assert values.tolist() == [0, 2, 1, 0]
    write([4, 1, 2, 5, 5], ["a b", "cat", "dog", "cat", "cat"])
    same(read_labels(path, 6), TEXTS)
    write([1, 6], [0, 1])
    with pytest.raises(LabelError, match="a label for row 6, but the rows are 0 to 5"):
        read_labels(path, 6)
    write([1, -2], [0, 1])
    with pytest.raises(LabelError, match="a label for row -2"):
        read_labels(path, 6)
    write([3, 1, 3], ["cat", "cat", "dog"])
    with pytest.raises(LabelError, match="gives row 3 two labels, cat and dog"):
        read_labels(path, 6)
    write([0.5, 1], [0, 1])
    with pytest.raises(LabelError, match="row numbers must be whole numbers"):
        read_labels(path, 6)
    write([0, 1], [0, 1])
    with pytest.raises(LabelError, match="the number of rows is needed"):
        read_labels(path)


def test_pairs_without_header(tmp_path):
    (tmp_path / "y.csv").write_text("1,cat\n2,dog\n")
    assert read_labels(tmp_path / "y.csv", 4).tolist() == [None, "cat", "dog", None]


def test_libsvm(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("2 1:1\n-1 2:3\n0 1:1 # comment\n\n# nothing\n1\n")
    same(read_labels(path, 4), np.array([2, -1, 0, 1]))
    path.write_text("+1 1:1\n-1 2:3\n0 1:1\n")
    same(read_labels(path, 3, unlabelled=0), np.array(["1", "-1", None], dtype=object))
    path.write_text("+1 1:1\n-1 2:3\n")
    with pytest.raises(LabelError, match=r"has the labels -1 and 1 only.*unlabelled=0"):
        read_labels(path, 2)


def test_simulated():
    source = as_source("sim:5000x3,labels=7")
    np.testing.assert_array_equal(read_labels("sim:5000x3,labels=7", 5000), source.labels(0, 5000))


def test_what_are_no_labels(tmp_path):
    np.save(tmp_path / "y.npy", np.array([0.5, 1.0]))
    with pytest.raises(LabelError, match=r"0\.5, a measurement and not a class"):
        read_labels(tmp_path / "y.npy", 2)
    np.save(tmp_path / "y.npy", np.zeros((2, 2)))
    with pytest.raises(LabelError, match="labels need one dimension"):
        read_labels(tmp_path / "y.npy", 2)
    np.save(tmp_path / "y.npy", np.arange(200_001))
    with pytest.raises(LabelError, match="more than 100,000 different labels"):
        read_labels(tmp_path / "y.npy", 200_001)
    (tmp_path / "y.doc").touch()
    with pytest.raises(LabelError, match=r"labels cannot be read from files ending in '\.doc'"):
        read_labels(tmp_path / "y.doc", 2)


def test_classes_are_counted_over_all_pieces(monkeypatch):
    monkeypatch.setattr("biglp._labels.codes.MAX_CLASSES", 10)
    codes = LabelCodes(None, "y")
    codes.append(LabelPiece(np.arange(6)))
    codes.append(LabelPiece(np.arange(4, 10)))
    with pytest.raises(LabelError, match=r"y has more than 10 different labels .* measurements"):
        codes.append(LabelPiece(np.arange(9, 12)))
