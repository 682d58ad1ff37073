"""Whatever a library makes of a damaged file, the message names the file."""

import json
import warnings

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core.errors import BadRowsError
from biglp._rows import InputFiles, as_source
from biglp._rows.options import ReadOptions
from biglp._rows.source import explained_reading
from biglp._tables.jsonlines import JsonLinesTable
from biglp._tables.parquet import ParquetTable


def test_errors_of_libraries_name_the_file_and_others_stay():
    with (
        pytest.raises(
            BadRowsError, match=r"x\.h5 cannot be read \(RuntimeError: bad\)\. It is dam"
        ),
        explained_reading("x.h5"),
    ):
        raise RuntimeError("bad\nworse")
    for meant in (BadRowsError("ours"), OSError("system"), MemoryError(), AssertionError()):
        with pytest.raises(type(meant)), explained_reading("x"):
            raise meant


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
    table = ParquetTable(str(tmp_path / "x.parquet"), ReadOptions())
    with pytest.raises(BadRowsError, match=r"x\.parquet, row group 0 .* Invalid UTF8"):
        table.read_part(0, ["a", "name"])
    with pytest.raises(BadRowsError, match=r"x\.parquet, row group 0 .* Invalid UTF8"):
        list(table.batches(["name"]))


def test_json_values_that_are_no_text(tmp_path):
    lines = [json.dumps({"a": i % 7, "y": "first"}).encode() for i in range(50)]
    lines[20] = lines[20].replace(b"first", b"fi\xf2st")
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(BadRowsError, match=r"x\.jsonl, line 21: .*fi.*st.* is not JSON"):
        JsonLinesTable(str(tmp_path / "x.jsonl"), ReadOptions())


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
def test_a_line_without_end_is_refused_before_it_is_in_memory(
    tmp_path, monkeypatch, name, head, line
):
    for module in ("_rows.textfiles", "_tables.jsonlines", "_rows.libsvm"):
        monkeypatch.setattr(f"biglp.{module}.LONGEST_LINE", 1 << 21)
    path = tmp_path / name
    path.write_bytes(head + b"1.5," * (5 << 20))
    with pytest.raises(BadRowsError, match=rf"line {line}: (longer than 2 MB|.*fields)"):
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


def test_names_without_rows_need_no_parser(tmp_path, monkeypatch):
    """It would take some KB for each column."""

    def made(*given):
        raise AssertionError("a parser was made")

    monkeypatch.setattr("biglp._tables.delimited.open_reader", made)
    (tmp_path / "x.csv").write_text(",".join(f"c{i}" for i in range(2000)) + "\n")
    with pytest.raises(BadRowsError, match="column names but no rows"):
        as_source(tmp_path / "x.csv")
