"""Text of the outside world: encodings, decimal commas, quotes; LIBSVM; files that are damaged."""

import gzip
import json

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


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_that_are_certain(charset, tmp_path):
    source = as_source(write(tmp_path / "x.csv", german(), charset), categorical="onehot")
    assert source.feature_names == ("größe", "wert", "ort=Köln", "ort=Málaga", "ort=Tromsø")
    np.testing.assert_array_equal(source.read(0, N)[:, :2], NUMBERS)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(german().encode(charset)))
    source = as_source(tmp_path / "x.csv.gz", drop=["ort"])
    np.testing.assert_array_equal(source.read(0, N), NUMBERS)


def test_western_encodings_are_a_guess_that_is_told(tmp_path):
    path = write(tmp_path / "x.csv", german(), "cp1252")
    with pytest.warns(InputWarning, match=r"is read as cp1252 .*--encoding"):
        source = as_source(path, categorical="onehot")
    assert source.feature_names[2] == "ort=Köln"
    given = as_source(path, categorical="onehot", text_encoding="latin-1")  # no warning
    np.testing.assert_array_equal(given.read(0, N), source.read(0, N))
    assert InputFiles(path).peek().kind == "CSV (semicolons, decimal comma, cp1252)"
    with pytest.raises(ParameterError, match="'klingon' is no encoding that Python knows"):
        as_source(path, text_encoding="klingon")
    path.write_bytes(("n,t\n" + "1,abc\n" * 100_000).encode() + "2,Köln\n".encode("latin-1"))
    with pytest.raises(BadRowsError, match=r"line 100002, byte 0xf6: .* not UTF-8.*--encoding"):
        as_source(path, categorical="onehot")
    assert as_source(path, categorical="onehot", text_encoding="latin-1").n_rows == 100_001


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_decimal_commas_are_found_by_looking(mark, tmp_path):
    for header in ("a;b\n", ""):
        text = header + "".join(f"{a};{b}\n" for a, b in NUMBERS).replace(".", ",")
        source = as_source(write(tmp_path / "x.csv", text.replace(";", mark)))
        np.testing.assert_array_equal(source.read(0, source.n_rows), NUMBERS)


def test_nothing_is_guessed_where_a_comma_may_be_something_else(tmp_path):
    path = tmp_path / "x.csv"
    for cells in (["1,234", "2,500"], ["1.5", "2,5"], ["x,y", "1,2"]):
        write(path, "a;b\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells)))
        assert "decimal comma" not in InputFiles(path).peek().kind
    write(path, "a;b\n1,234;1\n2,500;2\n")
    with pytest.raises(BadRowsError, match=r"'1,234' in line 2, a number with decimal=','"):
        as_source(path, categorical="error")
    with pytest.warns(InputWarning, match=r"'1,234'.*--decimal ,"):
        as_source(path)
    np.testing.assert_array_equal(as_source(path, decimal=",").read(0, 2)[:, 0], [1.234, 2.5])


@pytest.mark.parametrize("n", [N, 60_000])  # in one piece of the file and in several
def test_newlines_in_quotes(n, tmp_path):
    rows = [f'{i},"line {i}\nand ""more"", of it\r\n",{i % 7}\n' for i in range(n)]
    path = write(tmp_path / "x.csv", 'a,"long\nname",b\n' + "".join(rows))
    source = as_source(path, columns=["a", "b"])
    np.testing.assert_array_equal(source.read(0, n)[:, 0], np.arange(n))
    labels = read_labels(path, n, column="long\nname")
    assert labels[5].startswith('line 5\nand "more", of it')


@pytest.mark.parametrize("broken", [0, 5, N - 1])
def test_a_quote_that_is_not_closed_names_its_line(broken, tmp_path):
    for good in ('{0},{0}.5,"x{0}"\n', "{0},{0}.5,x{0}\n"):  # others quoted, or only this one
        lines = ['{0},1,"x{0}\n' if i == broken else good for i in range(N)]
        text = "a,b,c\n" + "".join(line.format(i) for i, line in enumerate(lines))
        path = write(tmp_path / "x.csv", text)
        if broken == N - 1:  # nothing comes after it, and nothing is lost
            assert as_source(path, drop=["c"]).n_rows == N
            continue
        with pytest.raises(BadRowsError, match=f"line {broken + 2}: a quote is opened"):
            as_source(path, drop=["c"])
        with pytest.raises(BadRowsError, match=f"line {broken + 2}: a quote is opened"):
            read_labels(path, N, column="a")


def test_quotes_that_swallow_lines_and_inches(tmp_path):
    path = tmp_path / "x.csv"
    write(path, "a,b\n1,x\n" + '2,"x\n' + "3,yyyyyyyyyyyyyyyyyyyyyyy\n" * 100_000)
    with pytest.raises(BadRowsError, match="line 3: a quote is opened"):
        as_source(path, drop=["b"])
    write(path, 'a,b\n1,"x\n2,y\n3,z"\n4,w\n')
    with pytest.warns(InputWarning, match="line 2: text in quotes runs up to line 4"):
        assert as_source(path, drop=["b"]).n_rows == 2
    write(path, 'a,b\n1,5" pipe\n2,7" pipe\n\n3,x\n')
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


def test_a_row_that_is_too_long_for_the_parser(tmp_path):
    path = tmp_path / "x.csv"
    rows = [f"{i},{'word ' * (500_000 if i == 3 else 1)}" for i in range(9)]
    write(path, "a,b\n" + "\n".join(rows) + "\n")
    message = r"line 5: the row has 2\.\d+ MB.*may have 1 MB"
    with pytest.raises(BadRowsError, match=message) as error:
        as_source(path)
    assert "damaged" not in str(error.value)
    assert "Parquet" in str(error.value)


# LIBSVM -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("bad", ["1 2:x", "1 2", "1 3:1 2:1", "cat 1:1"])
def test_bad_line_is_named(tmp_path, chunk_bytes, bad):
    path = write(tmp_path / "x.svm", "1 1:1 2:2\n" * 30 + bad + "\n" + "1 1:1\n" * 30)
    with pytest.raises(BadRowsError, match=r"x\.svm, line 31: .*Repair or delete"):
        as_source(path)


def test_nothing_to_use_and_nothing_too_much(tmp_path):
    path = tmp_path / "x.svm"
    for text, message in (("# nothing\n", "has no rows"), ("1\n2\n", "has no features at all")):
        with pytest.raises(BadRowsError, match=message):
            as_source(write(path, text))
    with pytest.raises(ParameterError, match="label_column='y' means nothing"):
        as_source(write(path, "1 1:1\n"), label_column="y")
    given = as_source(write(path, "1 2:1\n"), n_features=4)
    np.testing.assert_array_equal(given.read(0, 1).toarray(), [[0, 1, 0, 0]])
    source = as_source(write(path, "1 1:1\n2 2:1\n"), cache=tmp_path / "kept")
    written = {path.name for path in source.folder.iterdir()}
    arrays = {"data.npy", "indices.npy", "indptr.npy", "width.npy"}
    assert written == {*arrays, *(f"{name}.sums" for name in arrays), "meta.json"}


# Files that are damaged ---------------------------------------------------------------------------


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


def test_json_lines_that_are_damaged(tmp_path):
    path = tmp_path / "x.jsonl"
    good = [json.dumps({"a": i % 7, "y": "first"}).encode() for i in range(50)]
    # The last ones would end the process: types nested without end, and null as the first line.
    for place, line, message in (
        (20, b'{"a": 1, "\xff": 2}', ""),
        (20, b'{"a": 1, "y": "fi\xf2st"}', r", line 21: .*fi.*st.* is not JSON"),
        (0, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "line 1: values are nested more th"),
        (0, b"null", ", line 1: .*null.* is not"),
        (0, b' null": 1}', ", line 1: .*null.* is not"),
        (0, b'null {"a": 2}', ", line 1: .*null.* is not"),
    ):
        path.write_bytes(b"\n".join([*good[:place], line, *good[place + 1 :]]))
        with pytest.raises(BadRowsError, match=rf"x\.jsonl.*{message}"):
            as_source(path).read(0, 1)
        with pytest.raises(BadRowsError, match=r"x\.jsonl"):
            InputFiles(path).tables(ReadOptions())
    text = '"' + "[{" * 300 + '"'  # brackets in a text are no levels
    lines = [f'{{"a": {i % 9}, "t": {text}}}' for i in range(50)]
    assert as_source(write(path, "\n".join(lines))).n_rows == 50


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
