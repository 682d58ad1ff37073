"""The same rows come out of every format, and get the same labels, however they are cut."""

import gzip
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from array_files import KINDS, write
from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, InputWarning, MissingExtraError, ParameterError
from biglp._rows import InputFiles, PreparedRows, Source, as_source
from biglp._transforms import Chain, Project
from cli_tools import failed
from helpers import blobs

N_ROWS, N_FEATURES = 97, 5
FORMATS = (
    "array", "csr", "pandas", "arrow table", "npy by columns", "filled npy", "parquet",
    "parquet direct", "feather", "feather packed", "csv", "csv.gz", "tsv", "libsvm", "libsvm.gz",
    *KINDS,
)  # fmt: skip


def make_rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.integers(-8, 8, size=(N_ROWS, N_FEATURES)) / 4.0
    rows[rng.random(rows.shape) < 0.3] = 0.0  # so that sparse formats have something to leave out
    rows[:, -1] = np.round(rng.standard_normal(N_ROWS) * 1024) / 1024  # exact as text
    return rows


ROWS = make_rows()


def table() -> pa.Table:
    return pa.table({f"c{j}": ROWS[:, j] for j in range(N_FEATURES)})


def make(kind: str, folder) -> Source:
    if kind in KINDS:
        return as_source(write(kind, ROWS, folder / kind, [3, 3, 40, 96], chunk=17))
    path, named = folder / f"x.{kind.split()[0]}", table()
    if kind in ("array", "csr", "pandas", "arrow table"):
        rows = {"array": ROWS, "csr": sparse.csr_matrix(ROWS), "pandas": named.to_pandas()}
        return as_source(rows.get(kind, named))
    if "npy" in kind:
        np.save(folder / "x.npy", np.asfortranarray(ROWS) if "columns" in kind else ROWS)
        return as_source(folder / "x.npy", missing="mean" if "filled" in kind else "error")
    if kind.startswith("parquet"):
        pq.write_table(named, path, row_group_size=10)
        return as_source(path, cache="never" if "direct" in kind else "auto")
    if kind.startswith("feather"):
        packing = "lz4" if "packed" in kind else "uncompressed"
        pyarrow.feather.write_feather(named, path, chunksize=16, compression=packing)
    elif kind.startswith(("csv", "tsv")):
        text = named.to_pandas().to_csv(index=False, sep="\t" if kind == "tsv" else ",").encode()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    else:
        with (gzip.open if kind.endswith("gz") else open)(path, "wb") as file:
            dump_svmlight_file(ROWS, np.zeros(N_ROWS), file, zero_based=False)
    return as_source(path)


@pytest.fixture(scope="module", params=FORMATS)
def source(request, tmp_path_factory) -> Source:
    return make(request.param, tmp_path_factory.mktemp("rows"))


def dense(rows) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def test_what_is_declared_and_sent_and_read_by_threads(source):
    assert (source.n_rows, source.n_features) == ROWS.shape
    assert source.dtype == np.float64
    assert source.is_sparse == sparse.issparse(source.read(0, 1))
    assert source.device == "cpu"
    assert "97 rows" in repr(source)
    source.check_unchanged()
    packed = pickle.dumps(source)  # files are open now, and must stay behind
    np.testing.assert_array_equal(dense(pickle.loads(packed).read(3, 50)), ROWS[3:50])
    assert not source.stamps or len(packed) < 4000
    first = source.read(0, 7)
    before = dense(first).copy()
    with ThreadPoolExecutor(4) as pool:
        blocks = pool.map(lambda i: dense(source.read(i, min(i + 7, N_ROWS))), range(0, 97, 7))
        np.testing.assert_array_equal(np.concatenate(list(blocks)), ROWS)
    np.testing.assert_array_equal(dense(first), before)  # a block that is kept does not change
    chain = Chain([Project(directions=np.ones((N_FEATURES, 1)))])
    prepared = PreparedRows(source, np.dtype(np.float64), chain)
    assert (prepared.n_features, prepared.is_sparse) == (1, False)
    for name in ("name", "stamps", "encoding", "part_bytes", "decoding_bytes"):
        assert getattr(prepared, name) == getattr(source, name)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cuts=st.lists(st.integers(1, N_ROWS - 1), max_size=12),
    chosen=st.sets(st.integers(0, N_ROWS - 1)),
)
def test_any_cut_and_choice_gives_the_same_rows(source, cuts, chosen):
    bounds = [0, *sorted(set(cuts)), N_ROWS]
    blocks = [dense(source.read(a, b)) for a, b in pairwise(bounds)]
    np.testing.assert_array_equal(np.concatenate(blocks), ROWS)
    indices = np.array(sorted(chosen), dtype=np.int64)
    np.testing.assert_array_equal(dense(source.take(indices)), ROWS[indices])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_the_same_labels(tmp_path, dtype):
    """Also where a model of one kind of file reads the others."""
    X, y, _ = blobs(n=300, features=6, dtype=dtype)
    expected = None
    for kind in KINDS:
        if kind.startswith("jsonl") and dtype == np.float16:
            continue  # text is float64, and so is the arithmetic
        name = write(kind, X, tmp_path / kind, [40, 41, 250], chunk=77)
        model = LowRankLabelPropagation(random_state=0, memory="300MB").fit(name, y)
        found = model.predict_proba(name)
        expected = expected or (model, found)
        np.testing.assert_array_equal(model.transduction_, expected[0].transduction_, err_msg=kind)
        assert found.tobytes() == expected[1].tobytes(), kind
        if kind in ("list", "zarr"):
            assert expected[0].predict_proba(name).tobytes() == found.tobytes()


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", ">f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
)
def test_npy_and_parquet_hold_any_real_type(tmp_path, dtype):
    rows = np.arange(60).reshape(12, 5).astype(dtype)
    for order in "CF":
        np.save(tmp_path / "x.npy", np.asarray(rows, order=order))
        source = as_source(tmp_path / "x.npy")
        assert source.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(source.read(2, 9), rows[2:9])
        np.testing.assert_array_equal(source.take(np.array([0, 5, 11])), rows[[0, 5, 11]])
    if dtype != ">f4":
        pq.write_table(pa.table({f"c{j}": rows[:, j] for j in range(5)}), tmp_path / "x.parquet")
        source = as_source(tmp_path / "x.parquet")
        assert source.dtype == (np.dtype(np.uint8) if dtype == "?" else np.dtype(dtype))
        np.testing.assert_array_equal(source.read(0, 12), rows)


@pytest.mark.parametrize("kind", ["npy", "parquet", "parquet direct", "feather", "csv", "libsvm"])
def test_a_file_that_changes_between_sweeps_is_named(tmp_path, kind):
    source = make(kind, tmp_path)
    source.read(0, 10)
    path = source.stamps[0].path
    os.utime(path, ns=(1, 1))
    with pytest.raises(BadRowsError, match=r"x\.\w+ changed while it was being worked on"):
        source.check_unchanged()
    os.unlink(path)
    with pytest.raises(BadRowsError, match=r"x\.\w+ was there when the work began"):
        source.check_unchanged()


@pytest.mark.parametrize("kind", ["npy", "parquet", "feather", "libsvm.gz", "csv.gz"])
def test_a_file_that_was_cut_short_is_named(tmp_path, kind):
    make(kind, tmp_path)
    (path,) = tmp_path.rglob(f"x.{kind}")
    data = path.read_bytes()
    # Nothing that could be unpacked is an empty file.
    for keep in (0.5, 0.98) if kind.endswith("gz") else (0.0, 0.1, 0.5, 0.98):
        path.write_bytes(data[: int(keep * len(data))])
        with pytest.raises(BadRowsError, match=rf"x\.{kind} cannot be read"):
            as_source(path)


@pytest.mark.parametrize("cache", ["auto", "never"])
def test_bad_row_group_is_named(tmp_path, cache):
    path = tmp_path / "x.parquet"
    pq.write_table(table(), path, row_group_size=20, write_page_checksum=True, use_dictionary=False)
    first = pq.ParquetFile(path).metadata.row_group(2).column(4)
    data = bytearray(path.read_bytes())
    middle = first.data_page_offset + first.total_compressed_size // 2
    data[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(bytes(data))
    with pytest.raises(BadRowsError, match=r"x\.parquet, row group 2 cannot be read"):
        as_source(path, cache=cache).read(0, N_ROWS)


def test_paths_that_are_no_tables(tmp_path, monkeypatch):
    for named, message in (
        ("x.npy", "there is no file"),
        ("*.parquet", "no file fits the pattern"),
        ("", "holds no file that is a table"),
    ):
        with pytest.raises(BadRowsError, match=message):
            as_source(f"{tmp_path}/{named}")
    (tmp_path / "x.xyz").touch()
    with pytest.raises(BadRowsError, match=r"files ending in '\.xyz' cannot be read.*\.parquet"):
        as_source(tmp_path / "x.xyz")
    path = tmp_path / "x.npy"
    np.save(path, np.arange(5))
    with pytest.raises(BadRowsError, match="two-dimensional"):
        as_source(path)
    np.save(path, ROWS)
    for options in ({"missing": "zero"}, {"dtype": "int8"}):
        with pytest.raises(ParameterError, match=r"=\S+ is not known; use one of"):
            as_source(path, **options)
    source = as_source(path)
    assert as_source(source) is source
    with pytest.raises(ParameterError, match="missing: these options say how to read"):
        as_source(source, missing="mean")
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(BadRowsError, match=r"x\.npy may not be read by this user"):
        as_source(path)


def test_lists_and_patterns_keep_the_order_of_names(tmp_path):
    for number, start in enumerate(range(0, N_ROWS, 20)):
        part = table().slice(start, 20)
        pq.write_table(part, tmp_path / f"p{number}.parquet")
        pyarrow.csv.write_csv(part, tmp_path / f"p{number}.csv")
    listed = [tmp_path / f"p{number}.parquet" for number in range(5)]
    for paths in (listed, str(tmp_path / "p*.parquet"), str(tmp_path / "p?.csv")):
        np.testing.assert_array_equal(as_source(paths).read(0, N_ROWS), ROWS)
    with pytest.raises(BadRowsError, match="must have one format"):
        as_source(tmp_path)


def test_files_of_one_table_need_the_same_columns(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1.0], "c": [2.0]}), tmp_path / "2.parquet")
    with pytest.raises(BadRowsError, match=r"2\.parquet has no column 'b'"):
        as_source(tmp_path)
    pq.write_table(pa.table({"b": ["x"], "a": [2.0]}), tmp_path / "2.parquet")
    with pytest.raises(BadRowsError, match=r"2\.parquet: column 'b' holds string and double in"):
        as_source(tmp_path)
    pq.write_table(pa.table({"b": [4], "a": [3.0]}), tmp_path / "2.parquet")
    np.testing.assert_array_equal(as_source(tmp_path).read(0, 2), [[1, 2], [3, 4]])


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import numpy as np
from biglp import LowRankLabelPropagation
from biglp._core import MissingExtraError
from biglp._rows import as_source
np.save("x.npy", np.random.default_rng(0).normal(size=(60, 2)))
open("x.svm", "w").write("1 1:2\\n")
assert as_source("x.svm").read(0, 1).toarray().tolist() == [[2]]
y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
assert LowRankLabelPropagation().fit("x.npy", y).transduction_.shape == (60,)
open("x.csv", "w").write("1\\n")
try:
    as_source("x.csv")
except MissingExtraError as error:
    print(error)
"""


def test_pyarrow_is_needed_for_tables_only(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_PYARROW]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "x.csv is read through pyarrow, which cannot be loaded here" in done.stdout


def test_a_look_at_files_converts_nothing(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    pq.write_table(table(), tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("a,b\n" + "1.5,x\n" * 200_000)
    (tmp_path / "x.svm").write_text("1 1:2\n" * 50)
    names = ("x.parquet", "x.csv", "x.svm")
    parquet, csv, svm = (InputFiles(tmp_path / name).peek() for name in names)
    assert (parquet.kind, parquet.n_rows, parquet.exact) == ("Parquet", 97, True)
    assert parquet.columns == {f"c{j}": "double" for j in range(5)}
    assert (csv.exact, csv.columns) == (False, {"a": "double", "b": "string"})
    assert abs(csv.n_rows - 200_000) < 2000
    assert (svm.n_rows, InputFiles("sim:1e9x30").peek().n_rows) == (50, 10**9)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A workbook, as python-calamine gives it: empty cells are texts, numbers are floats."""
    day = date(2024, 5, 1)
    sheets = {
        "main": [
            ["n", "price", "day", "kind", "", "mixed"],
            [1.0, 0.5, day, "a", "", 3.0],
            ["", "", "", "", "", ""],
            [2.0, "", datetime(2024, 5, 2, 12), "b", "", "x"],
        ],
        "more": [["n"], [7.0], [8.0]],
        "empty": [["n"]],
    }
    made = SimpleNamespace(
        sheet_names=[*sheets],
        get_sheet_by_name=lambda name: SimpleNamespace(to_python=lambda: sheets[name]),
    )
    opened = SimpleNamespace(CalamineWorkbook=SimpleNamespace(from_path=lambda file: made))
    monkeypatch.setitem(sys.modules, "python_calamine", opened)
    path = tmp_path / "book.xlsx"
    path.write_bytes(b"")
    return path


def test_a_workbook_has_columns_of_one_type_each(book):
    with pytest.warns(InputWarning, match=r"first of 3 sheets .*book.xlsx::more"):
        rows = as_source(book, categorical="onehot", missing="mean")
    assert rows.input_names == ("n", "price", "day", "kind", "mixed")
    expected = [[1, 0.5, 19844, 1, 0, 1, 0], [2, 0.5, 19845.5, 0, 1, 0, 1]]
    np.testing.assert_allclose(rows.read(0, 2), expected)
    np.testing.assert_array_equal(as_source(f"{book}::more", drop=()).read(0, 2), [[7], [8]])
    for sheet, message in (("empty", "has no rows below"), ("no", "it has main, more, empty")):
        with pytest.raises(BadRowsError, match=message):
            as_source(f"{book}::{sheet}")


def test_a_workbook_without_a_reader_says_what_to_install(book, monkeypatch):
    for reader in ("python_calamine", "pandas"):
        monkeypatch.setitem(sys.modules, reader, None)
    with pytest.raises(MissingExtraError, match=r"install python-calamine. Or save .* as CSV"):
        as_source(book)


@pytest.mark.parametrize(
    ("name", "said"), [("a.png", "a row a picture"), ("a.txt", "--text"), ("a.docx", "--text")]
)
def test_pictures_and_documents_are_told_what_to_make_of_them(name, said, tmp_path):
    (tmp_path / name).write_text("a")
    for rows in (tmp_path / name, tmp_path):
        assert said in failed(3, "fit", rows, "--label-column", "y", "-o", tmp_path / "out")
