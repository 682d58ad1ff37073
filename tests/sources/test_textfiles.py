"""Text tables of the outside world: encodings, decimal commas, quotes that are not closed."""

from __future__ import annotations

import codecs
import gzip

import numpy as np
import pytest

from biglp._core.errors import BadRowsError, InputWarning, ParameterError
from biglp._rows import InputFiles, as_source
from biglp._rows.options import ReadOptions
from biglp._rows.textfiles import find_charset, look_at
from biglp._tables import delimited as csvparser
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

    def test_what_only_latin_1_has(self):
        assert find_charset(b"caf\xe9 \x81").name == "latin-1"
        assert find_charset("größe".encode()[:3]).name == "utf-8"  # cut within a letter
        assert find_charset(codecs.BOM_UTF32_LE + "a".encode("utf-32-le")).name == "utf-32"

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
        assert look_at(str(write(tmp_path / "x.csv", text))).decimal == "."

    def test_the_error_names_the_option(self, tmp_path):
        path = write(tmp_path / "x.csv", "a;b\n1,234;1\n2,500;2\n")
        with pytest.raises(BadRowsError, match=r"'1,234' in line 2, a number with decimal=','"):
            as_source(path, categorical="error")
        with pytest.warns(InputWarning, match=r"'1,234'.*--decimal ,"):
            as_source(path)
        np.testing.assert_array_equal(as_source(path, decimal=",").read(0, 2)[:, 0], [1.234, 2.5])

    def test_a_comma_table_with_lists_stays_one(self, tmp_path):
        path = write(tmp_path / "x.csv", "1,2,x;y\n3,4,z;w\n")
        assert look_at(str(path)).delimiter == ","

    def test_delimiter_and_decimal_mark_differ(self):
        with pytest.raises(ParameterError, match="is the delimiter too"):
            ReadOptions(delimiter=",", decimal=",")


class TestQuotes:
    @pytest.mark.parametrize("block", [1 << 20, 128])
    def test_newlines_in_quotes(self, block, tmp_path, monkeypatch):
        monkeypatch.setattr(csvparser, "BLOCK_BYTES", block)
        rows = [f'{i},"line {i}\nand ""more"", of it\r\n",{i % 7}\n' for i in range(N)]
        path = write(tmp_path / "x.csv", 'a,"long\nname",b\n' + "".join(rows))
        source = as_source(path, columns=["a", "b"])
        np.testing.assert_array_equal(source.read(0, N)[:, 0], np.arange(N))
        labels = read_labels(path, N, column="long\nname")
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
    assert look_at(str(path)).names == tuple(names)


def test_a_row_that_is_too_long_for_the_parser(tmp_path):
    rows = [f"{i},{'word ' * (500_000 if i == 3 else 1)}" for i in range(9)]
    path = write(tmp_path / "x.csv", "a,b\n" + "\n".join(rows) + "\n")
    with pytest.raises(
        BadRowsError, match=r"line 5: the row has 2\.\d+ MB.*may have 1 MB"
    ) as error:
        as_source(path)
    assert "damaged" not in str(error.value)
    assert "Parquet" in str(error.value)
