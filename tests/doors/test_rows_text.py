"""Text of the outside world: encodings, decimal commas, quotes; LIBSVM; files that are damaged."""

from __future__ import annotations

import bz2
import gzip
import json
import warnings

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from biglp._core import BadRowsError, InputWarning, ParameterError
from biglp._rows import InputFiles, ReadOptions, as_source
from label_files import read_labels

N = 300


NUMBERS = np.round(np.random.default_rng(0).standard_normal((N, 2)), 3)


CITIES = ["Köln", "Málaga", "Tromsø"]


def german(n: int = N) -> str:
    lines = [f"{a};{b};{CITIES[i % 3]}" for i, (a, b) in enumerate(NUMBERS[:n])]
    return "größe;wert;ort\r\n" + "\r\n".join(lines).replace(".", ",") + "\r\n"


def write(path, text: str, charset: str = "utf-8"):
    path.write_bytes(text.encode(charset))
    return path


class TestEncodings:
    @pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
    def test_found_for_certain(self, charset, tmp_path):
        source = as_source(write(tmp_path / "x.csv", german(), charset), categorical="onehot")
        assert source.feature_names == ("größe", "wert", "ort=Köln", "ort=Málaga", "ort=Tromsø")
        np.testing.assert_array_equal(source.read(0, N)[:, :2], NUMBERS)

    def test_western_ones_are_a_guess_that_is_told(self, tmp_path):
        path = write(tmp_path / "x.csv", german(), "cp1252")
        with pytest.warns(InputWarning, match=r"is read as cp1252 .*--encoding"):
            source = as_source(path, categorical="onehot")
        assert source.feature_names[2] == "ort=Köln"
        given = as_source(path, categorical="onehot", text_encoding="latin-1")  # no warning
        np.testing.assert_array_equal(given.read(0, N), source.read(0, N))
        assert InputFiles(path).peek().kind == "CSV (semicolons, decimal comma, cp1252)"

    def test_packed(self, tmp_path):
        (tmp_path / "x.csv.gz").write_bytes(gzip.compress(german().encode("utf-16")))
        source = as_source(tmp_path / "x.csv.gz", drop=["ort"])
        np.testing.assert_array_equal(source.read(0, N), NUMBERS)

    def test_letters_far_down(self, tmp_path):
        text = "n,t\n" + "1,abc\n" * 100_000
        path = tmp_path / "x.csv"
        path.write_bytes(text.encode() + "2,Köln\n".encode("latin-1"))
        with pytest.raises(BadRowsError, match=r"line 100002, byte 0xf6: .* not UTF-8.*--encoding"):
            as_source(path, categorical="onehot")
        assert as_source(path, categorical="onehot", text_encoding="latin-1").n_rows == 100_001

    def test_an_unknown_one_is_refused(self, tmp_path):
        with pytest.raises(ParameterError, match="'klingon' is no encoding that Python knows"):
            as_source(write(tmp_path / "x.csv", german()), text_encoding="klingon")

    @pytest.mark.parametrize("charset", ["utf-8", "utf-16", "cp1252"])
    @pytest.mark.parametrize("name", ["y.txt", "y.csv", "pairs.csv"])
    def test_labels(self, name, charset, tmp_path):
        lines = [f"{i},{city}" if "pairs" in name else city for i, city in enumerate(CITIES)]
        header = ["row,label"] if "pairs" in name else []
        path = write(tmp_path / name, "\n".join([*header, *lines, ""]), charset)
        assert read_labels(path, 3).tolist() == CITIES


class TestDecimalCommas:
    @pytest.mark.parametrize("mark", [";", "\t", "|"])
    @pytest.mark.parametrize("header", ["a;b\n", ""])
    def test_found_by_looking(self, mark, header, tmp_path):
        text = header + "".join(f"{a};{b}\n" for a, b in NUMBERS).replace(".", ",")
        source = as_source(write(tmp_path / "x.csv", text.replace(";", mark)))
        np.testing.assert_array_equal(source.read(0, source.n_rows), NUMBERS)

    @pytest.mark.parametrize("cells", [["1,234", "2,500"], ["1.5", "2,5"], ["x,y", "1,2"]])
    def test_nothing_is_guessed_where_it_may_be_something_else(self, cells, tmp_path):
        text = "a;b\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells))
        assert "decimal comma" not in InputFiles(write(tmp_path / "x.csv", text)).peek().kind

    def test_the_error_names_the_option(self, tmp_path):
        path = write(tmp_path / "x.csv", "a;b\n1,234;1\n2,500;2\n")
        with pytest.raises(BadRowsError, match=r"'1,234' in line 2, a number with decimal=','"):
            as_source(path, categorical="error")
        with pytest.warns(InputWarning, match=r"'1,234'.*--decimal ,"):
            as_source(path)
        np.testing.assert_array_equal(as_source(path, decimal=",").read(0, 2)[:, 0], [1.234, 2.5])


class TestQuotes:
    @pytest.mark.parametrize("n", [N, 60_000])  # in one piece of the file and in several
    def test_newlines_in_quotes(self, n, tmp_path):
        rows = [f'{i},"line {i}\nand ""more"", of it\r\n",{i % 7}\n' for i in range(n)]
        path = write(tmp_path / "x.csv", 'a,"long\nname",b\n' + "".join(rows))
        source = as_source(path, columns=["a", "b"])
        np.testing.assert_array_equal(source.read(0, n)[:, 0], np.arange(n))
        labels = read_labels(path, n, column="long\nname")
        assert labels[5].startswith('line 5\nand "more", of it')

    @pytest.mark.parametrize("quoted", [True, False], ids=["others quoted", "only this quote"])
    @pytest.mark.parametrize("broken", [0, 5, N - 1])
    def test_one_that_is_not_closed_names_its_line(self, quoted, broken, tmp_path):
        good = '{0},{0}.5,"x{0}"\n' if quoted else "{0},{0}.5,x{0}\n"
        lines = ['{0},1,"x{0}\n' if i == broken else good for i in range(N)]
        text = "a,b,c\n" + "".join(line.format(i) for i, line in enumerate(lines))
        path = write(tmp_path / "x.csv", text)
        if broken == N - 1:  # nothing comes after it, and nothing is lost
            assert as_source(path, drop=["c"]).n_rows == N
            return
        with pytest.raises(BadRowsError, match=f"line {broken + 2}: a quote is opened"):
            as_source(path, drop=["c"])
        with pytest.raises(BadRowsError, match=f"line {broken + 2}: a quote is opened"):
            read_labels(path, N, column="a")

    def test_one_that_swallows_megabytes(self, tmp_path):
        text = "a,b\n1,x\n" + '2,"x\n' + "3,yyyyyyyyyyyyyyyyyyyyyyy\n" * 100_000
        with pytest.raises(BadRowsError, match="line 3: a quote is opened"):
            as_source(write(tmp_path / "x.csv", text), drop=["b"])

    def test_lines_that_look_like_rows_are_told(self, tmp_path):
        path = write(tmp_path / "x.csv", 'a,b\n1,"x\n2,y\n3,z"\n4,w\n')
        with pytest.warns(InputWarning, match="line 2: text in quotes runs up to line 4"):
            assert as_source(path, drop=["b"]).n_rows == 2

    def test_inches_are_no_quotes(self, tmp_path):
        path = write(tmp_path / "x.csv", 'a,b\n1,5" pipe\n2,7" pipe\n\n3,x\n')
        assert as_source(path, drop=["b"]).n_rows == 3


def test_extra_columns_of_later_files_are_told(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,2\n")
    write(tmp_path / "2.csv", "b,a,c\n2,1,7\n")
    write(tmp_path / "3.csv", "a,b,d\n1,2,7\n")
    with pytest.warns(InputWarning, match=r"2.csv has 'c', which .*1.csv has not, and 1 more file"):
        source = as_source(tmp_path)
    np.testing.assert_array_equal(source.read(0, 3), [[1, 2]] * 3)
    assert as_source(tmp_path, columns=["a", "b"]).n_features == 2  # chosen: no warning
    write(tmp_path / "4.csv", "a,c\n1,2\n")
    with pytest.raises(BadRowsError, match=r"4.csv has no column 'b'"):
        as_source(tmp_path)


def test_a_header_longer_than_the_first_look(tmp_path):
    names = [f"a_rather_long_name_of_a_column_{i}" for i in range(12_000)]
    rows = "\n".join(",".join(["1.5"] * len(names)) for _ in range(2))
    path = write(tmp_path / "x.csv", ",".join(names) + "\n" + rows + "\n")
    assert tuple(InputFiles(path).peek().columns) == tuple(names)


def test_a_row_that_is_too_long_for_the_parser(tmp_path):
    rows = [f"{i},{'word ' * (500_000 if i == 3 else 1)}" for i in range(9)]
    path = write(tmp_path / "x.csv", "a,b\n" + "\n".join(rows) + "\n")
    with pytest.raises(
        BadRowsError, match=r"line 5: the row has 2\.\d+ MB.*may have 1 MB"
    ) as error:
        as_source(path)
    assert "damaged" not in str(error.value)
    assert "Parquet" in str(error.value)


@pytest.fixture(params=[20, 300, 8 << 20])
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr("biglp._rows.libsvm.CHUNK_BYTES", request.param)
    return request.param


@pytest.mark.parametrize("zero_based", [True, False])
def test_base_is_found(tmp_path, chunk_bytes, zero_based):
    rows = sparse.random(60, 9, 0.4, random_state=0, format="csr")
    rows.data = np.round(rows.data * 64)
    rows = rows.tolil()
    rows[0, 0] = 1.0
    rows = rows.tocsr()
    dump_svmlight_file(rows, np.arange(60), str(tmp_path / "x.svm"), zero_based=zero_based)
    source = as_source(tmp_path / "x.svm")
    assert source.is_sparse
    assert source.encoding.zero_based == zero_based
    read = source.read(0, 60)
    assert sparse.issparse(read)
    np.testing.assert_array_equal(read.toarray()[:, :9], rows.toarray())


def test_model_says_how_features_are_counted(tmp_path, chunk_bytes):
    train = as_source(write(tmp_path / "a.libsvm", "1 0:1 4:2\n-1 1:3\n"))
    # Feature 0 does not occur here: alone, this file would look as if counted from 1.
    path = write(tmp_path / "b.libsvm", "1 1:5 2:6\n")
    np.testing.assert_array_equal(as_source(path).read(0, 1).toarray(), [[5, 6]])
    new = as_source(path, encoding=train.encoding)
    np.testing.assert_array_equal(new.read(0, 1).toarray(), [[0, 5, 6, 0, 0]])
    with pytest.raises(BadRowsError, match="has 8 features where 5 are expected"):
        as_source(write(tmp_path / "c.libsvm", "1 7:5\n"), encoding=train.encoding)
    one_based = as_source(path).encoding
    with pytest.raises(BadRowsError, match="has a feature 0, but its features were to be counted"):
        as_source(tmp_path / "a.libsvm", encoding=one_based)


def test_comments_empty_rows_and_packing(tmp_path, chunk_bytes):
    text = b"# made by hand\n1 1:2 3:4 # a comment\n\n2\n3 2:0.5\n4 3:1"
    (tmp_path / "x.svmlight.bz2").write_bytes(bz2.compress(text))
    source = as_source(tmp_path / "x.svmlight.bz2", dtype="float32")
    assert source.dtype == np.float32
    expected = [[2, 0, 4], [0, 0, 0], [0, 0.5, 0], [0, 0, 1]]
    np.testing.assert_array_equal(source.read(0, 4).toarray(), expected)
    np.testing.assert_array_equal(source.take(np.array([1, 3])).toarray(), [[0, 0, 0], [0, 0, 1]])


def test_given_width(tmp_path):
    source = as_source(write(tmp_path / "x.svm", "1 2:1\n"), n_features=4)
    np.testing.assert_array_equal(source.read(0, 1).toarray(), [[0, 1, 0, 0]])


@pytest.mark.parametrize("bad", ["1 2:x", "1 2", "1 3:1 2:1", "cat 1:1"])
def test_bad_line_is_named(tmp_path, chunk_bytes, bad):
    path = write(tmp_path / "x.svm", "1 1:1 2:2\n" * 30 + bad + "\n" + "1 1:1\n" * 30)
    with pytest.raises(BadRowsError, match=r"x\.svm, line 31: .*Repair or delete"):
        as_source(path)


def test_nothing_to_use(tmp_path):
    with pytest.raises(BadRowsError, match="has no rows"):
        as_source(write(tmp_path / "x.svm", "# nothing\n"))
    with pytest.raises(BadRowsError, match="has no features at all"):
        as_source(write(tmp_path / "x.svm", "1\n2\n"))
    with pytest.raises(ParameterError, match="label_column='y' means nothing"):
        as_source(write(tmp_path / "x.svm", "1 1:1\n"), label_column="y")


def test_conversion_writes_nothing_that_is_not_read(tmp_path):
    source = as_source(write(tmp_path / "x.svm", "1 1:1\n2 2:1\n"), cache=tmp_path / "kept")
    written = {path.name for path in source.folder.iterdir()}
    arrays = {"data.npy", "indices.npy", "indptr.npy", "width.npy"}
    assert written == {*arrays, *(f"{name}.sums" for name in arrays), "meta.json"}


def test_text_that_is_no_text(tmp_path):
    lines = [json.dumps({"a": i, "b": i % 7}).encode() for i in range(50)]
    lines[20] = b'{"a": 1, "\xff": 2}'
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(BadRowsError, match=r"x\.jsonl"):
        as_source(tmp_path / "x.jsonl").read(0, 1)
    with pytest.raises(BadRowsError, match=r"x\.jsonl"):
        InputFiles(tmp_path / "x.jsonl").tables(ReadOptions())


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_text_that_is_no_text(tmp_path, kind):
    """pyarrow hands the bytes over; whoever looked at them ended with an error of its own."""
    names = pa.array(["first", "other"] * 20).cast(kind)
    pq.write_table(pa.table({"a": np.arange(40) % 7, "name": names}), tmp_path / "x.parquet")
    found = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(found.replace(b"other", b"oth\xf7r"))
    with pytest.raises(BadRowsError, match=r"x\.parquet, row group 0 .* Invalid UTF8"):
        as_source(tmp_path / "x.parquet")
    with pytest.raises(BadRowsError, match=r"x\.parquet, row group 0 .* Invalid UTF8"):
        read_labels(tmp_path / "x.parquet", 40, column="name")


def test_json_values_that_are_no_text(tmp_path):
    lines = [json.dumps({"a": i % 7, "y": "first"}).encode() for i in range(50)]
    lines[20] = lines[20].replace(b"first", b"fi\xf2st")
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(BadRowsError, match=r"x\.jsonl, line 21: .*fi.*st.* is not JSON"):
        as_source(tmp_path / "x.jsonl")


def test_values_that_are_nested_without_end(tmp_path):
    """Finding their types would end the process."""
    (tmp_path / "x.jsonl").write_text('{"a":' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(BadRowsError, match=r"line 1: values are nested more than 100 levels deep"):
        as_source(tmp_path / "x.jsonl")
    text = '"' + "[{" * 300 + '"'  # brackets in a text are no levels
    (tmp_path / "y.jsonl").write_text(
        "\n".join(f'{{"a": {i % 9}, "t": {text}}}' for i in range(50))
    )
    assert as_source(tmp_path / "y.jsonl").n_rows == 50


@pytest.mark.parametrize("line", ["null", ' null": 1}', 'null {"a": 2}'])
def test_a_line_that_begins_with_null(tmp_path, line):
    """As the first it would end the process."""
    (tmp_path / "x.jsonl").write_text(f'{line}\n{{"a": 1}}\n')
    with pytest.raises(BadRowsError, match=r"x\.jsonl, line 1: .*null.* is not"):
        as_source(tmp_path / "x.jsonl")


def test_an_archive_whose_packed_bytes_were_changed(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", X=np.random.default_rng(0).normal(size=(300, 4)))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    for place in range(60, 400, 7):
        content[place] ^= 0x55
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(BadRowsError, match=r"x\.npz"):
        as_source(tmp_path / "x.npz").read(0, 1)


def test_hdf5_with_addresses_beyond_its_end(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_group("g")["x"] = np.ones((50, 3))
    content = bytearray((tmp_path / "x.h5").read_bytes())
    place = content.index(b"TREE") + 24
    content[place : place + 8] = b"\x48" * 8
    (tmp_path / "x.h5").write_bytes(content)
    with pytest.raises(BadRowsError, match=r"x\.h5"):
        as_source(f"{tmp_path}/x.h5::g/x").read(0, 1)


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("x.csv", b"", 1),
        ("x.csv", b"a,b\n1,2\n" * 2, 5),
        ("x.jsonl", b'{"a": 1}\n', 2),
        ("x.libsvm", b"1 1:2\n", 2),
    ],
)
def test_a_line_without_end_is_refused_before_it_is_in_memory(tmp_path, name, head, line):
    path = tmp_path / name
    path.write_bytes(head + b"1.5," * (17 << 20))
    with pytest.raises(BadRowsError, match=rf"line {line}: (longer than 6\d|.*fields)"):
        as_source(path, cache=str(tmp_path / "cache"))


def test_a_header_of_numpy_that_its_parser_warns_of(tmp_path):
    """Its text is parsed as Python, which has an opinion on backslashes."""
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    content = (tmp_path / "x.npy").read_bytes().replace(b"'descr'", b"'de\\cr'")
    (tmp_path / "x.npy").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BadRowsError, match=r"cannot be read as a \.npy array"):
            as_source(tmp_path / "x.npy")
