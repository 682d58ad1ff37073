"""Errors, damaged and odd files: one message with a reason, and an exit code that says so."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from typer.testing import CliRunner

from biglp._core import BadRowsError, errors
from biglp._files.local import FileStamp
from biglp._rows import as_source
from biglp.cli import app
from biglp.cli.errors import EXIT_CODES, UNEXPECTED, code_of
from cli_tools import failed, run
from row_files import write


def test_missing_extra(here, rows, monkeypatch):
    values, shown, _ = rows
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    message = failed(6, "fit", *write("npy", values, shown), "-o", "out", "--engine", "mpi")
    assert 'pip install "biglp[mpich]"' in message


def test_unexpected_errors_say_so(here, rows, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("a bug")

    values, shown, _ = rows
    arguments = write("npy", values, shown)
    monkeypatch.setattr("biglp._jobs.fit.Pipeline", broken)
    message = failed(1, "fit", *arguments, "-o", "out")
    assert "unexpected RuntimeError: a bug. Please report it" in message
    result = run("fit", *arguments, "-o", "out", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted."), (signal.SIGTERM, 143, "terminated.")],
)
def test_an_error_after_a_signal_is_its_consequence(
    number, code, said, here, rows, monkeypatch, request
):
    """Compiled code may lose the interruption and raise an error of its own."""

    def interrupted(*args, **options):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        raise ValueError("is not a valid buffer")

    values, shown, _ = rows
    monkeypatch.setattr("biglp._jobs.fit.Pipeline", interrupted)
    # A shell lets commands in the background ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    assert said in failed(code, "fit", *write("npy", values, shown), "-o", "out")


def _is_error(kind):
    ours = isinstance(kind, type) and issubclass(kind, errors.BigLPError)
    return ours and kind is not errors.BigLPError


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(errors).values() if _is_error(kind)],
    ids=lambda kind: kind.__name__,
)
def test_every_error_of_ours_has_an_exit_code_that_the_help_explains(kind):
    code = code_of(kind("x"))
    assert code != UNEXPECTED
    assert f" {code} " in EXIT_CODES


ROWS = np.random.default_rng(0).normal(size=(120, 4))
LABELS = np.where(np.arange(120) < 40, (ROWS[:, 0] > 0).astype(int), -1)
TABLE = pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1], "y": LABELS})


def fit(folder, *arguments):
    """Run a fit; return its exit code and what it printed, in one line."""
    asked = ["fit", *map(str, arguments), "-o", str(folder / "out"), "--engine", "serial"]
    result = CliRunner().invoke(app, asked)
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "X.npy", ROWS)
    np.save(tmp_path / "y.npy", LABELS)
    return tmp_path


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_a_table_without_rows(folder, ending):
    path = folder / f"empty.{ending}"
    if ending == "parquet":
        parquet.write_table(TABLE.slice(0, 0), path)
    elif ending == "feather":
        feather.write_feather(TABLE.slice(0, 0), path)
    else:
        path.write_text("a,b,y\n")
    code, said = fit(folder, path, "--label-column", "y")
    assert code == 3
    assert "no rows" in said


def test_packed_text_with_a_changed_bit(folder):
    lines = [f"{a},{b},{y}" for a, b, y in zip(ROWS[:, 0], ROWS[:, 1], LABELS, strict=True)]
    packed = gzip.compress("\n".join(["a,b,y", *lines]).encode())
    for place in (12, 14, len(packed) // 2, len(packed) - 6):
        damaged = bytearray(packed)
        damaged[place] ^= 16
        (folder / "rows.csv.gz").write_bytes(damaged)
        code, said = fit(folder, folder / "rows.csv.gz", "--label-column", "y")
        assert code == 3, said


@pytest.mark.parametrize(
    ("old", "new"), [(b"(120, 4)", b"(-20, 4)"), (b"(120, 4)", b"(True, 4)"), (b"{", b"(" * 90)]
)
def test_damaged_headers_of_arrays(folder, old, new):
    whole = (folder / "X.npy").read_bytes()
    damaged = whole.replace(old, new, 1)
    (folder / "bad.npy").write_bytes(damaged[: len(whole)])
    for rows, labels in (("bad.npy", "y.npy"), ("X.npy", "bad.npy")):
        code, said = fit(folder, folder / rows, "--labels", folder / labels)
        assert code == 3
        assert "cannot be read as a .npy array" in said


def test_infinity_is_no_label(folder):
    labels = np.where(LABELS < 0, np.nan, LABELS)
    labels[3] = np.inf
    np.save(folder / "inf.npy", labels)
    code, said = fit(folder, folder / "X.npy", "--labels", folder / "inf.npy")
    assert code == 3
    assert "inf, a measurement and not a class" in said


@pytest.mark.parametrize("first", [2**53 + 1, 2**63 - 2, 2**63, 2**64])
def test_labels_of_many_digits_keep_them(folder, first):
    lines = ["" if label < 0 else str(first + label) for label in LABELS.tolist()]
    (folder / "labels.csv").write_text("\n".join(["label", *lines]) + "\n")
    code, said = fit(folder, folder / "X.npy", "--labels", folder / "labels.csv")
    assert code == 0, said
    assert str(first) in said
    assert str(first + 1) in said


@pytest.mark.parametrize("column", [[[1], [2]] * 60, [{"a": 1}, {"a": 2}] * 60])
def test_lists_are_no_labels(folder, column):
    parquet.write_table(TABLE.set_column(2, "y", pa.array(column)), folder / "t.parquet")
    code, said = fit(folder, folder / "t.parquet", "--label-column", "y")
    assert code == 3
    assert "labels are integers or text" in said


def test_a_damaged_description_of_a_run(folder):
    (folder / "out" / ".biglp-run").mkdir(parents=True)
    (folder / "out" / ".biglp-run" / "run.json").write_text('{"a": ')
    code, said = fit(folder, folder / "X.npy", "--labels", folder / "y.npy", "--resume")
    assert code == 5
    assert "is damaged" in said


def test_rows_in_fortran_order_that_are_cut_short_while_they_are_read(folder, monkeypatch):
    """In a process of its own: to touch mapped pages that are gone ends the process."""
    rows, path = np.asfortranarray(np.tile(ROWS, (200, 1))), folder / "fortran.npy"
    np.save(path, rows)
    source = as_source(path)
    np.testing.assert_array_equal(source.read(7, 5000), rows[7:5000])
    np.testing.assert_array_equal(source.take(np.array([0, 3, 11900])), rows[[0, 3, 11900]])
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(FileStamp, "check", lambda self: None)  # it was looked at just before
        os.truncate(path, path.stat().st_size // 2)
        try:
            source.read(100, 2000)
        except BadRowsError as error:
            os._exit(0 if "cut short" in str(error) else 2)
        os._exit(3)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_damaged_arrow_files_do_not_end_the_process(folder, compression):
    """In a process of its own: a mistake here is a segmentation fault."""
    words = pa.array(["red", "green", None, "blue"] * 30).dictionary_encode()
    texts = pa.array([f"text {number % 7}" for number in range(120)])
    table = TABLE.append_column("colour", words).append_column("text", texts)
    path = folder / "t.feather"
    feather.write_feather(table, path, compression=compression)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    child = os.fork()
    if child == 0:
        for number in range(150):
            damaged = bytearray(whole)
            for place in rng.integers(8, len(whole), 1 + number % 4):
                damaged[place] = rng.integers(256)
            path.write_bytes(damaged)
            try:
                source = as_source(path, drop=("y",))
                source.read(0, source.n_rows)
            except Exception:
                continue
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_model_whose_parts_do_not_fit_each_other(folder):
    """Its zip archive is whole, and so is each array."""
    code, _ = fit(folder, folder / "X.npy", "--labels", folder / "y.npy", "--factor", "anchors")
    assert code == 0
    with zipfile.ZipFile(folder / "out" / "model.biglp") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    np.save(buffer, np.load(io.BytesIO(parts["rows.factor.landmarks.npy"]))[:, :2])
    with zipfile.ZipFile(folder / "bad.biglp", "w") as archive:
        for name, content in (parts | {"rows.factor.landmarks.npy": buffer.getvalue()}).items():
            archive.writestr(name, content)
    asked = ["predict", str(folder / "bad.biglp"), str(folder / "X.npy"), "-o", str(folder / "n")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 5, result.output
    assert "bad.biglp cannot be used: its parts do not fit each other" in " ".join(
        result.output.split()
    )


def test_a_summary_that_is_not_whole(folder):
    code, said = fit(folder, folder / "X.npy", "--labels", folder / "y.npy", "--factor", "linear")
    assert code == 0, said
    summary = folder / "out" / "summary.json"
    for old, new in ((b'"step"', b'"stop"'), (b'"rows"', b'"cows"'), (b'"run"', b'"ran"')):
        content = summary.read_bytes()
        summary.write_bytes(content.replace(old, new))
        result = CliRunner().invoke(app, ["report", str(folder / "out"), "--overwrite"])
        assert result.exit_code == 2, (old, result.output)
        assert "summary.json" in result.stderr
        summary.write_bytes(content)


def test_metadata_that_end_before_the_rows(folder):
    (folder / "about.csv").write_text("name,z\n" + "".join(f"id-{i},1\n" for i in range(15)))
    named = ["--metadata", folder / "about.csv", "--id-column", "name", "-n", "20"]
    result = CliRunner().invoke(app, ["suggest", str(folder / "X.npy"), *map(str, named)])
    assert result.exit_code == 3, result.output
    assert "ends after 15 rows, before the rows do" in " ".join(result.stderr.split())


def test_a_class_of_the_least_integer_keeps_its_name(folder):
    least = np.iinfo(np.int64).min
    np.save(folder / "y.npy", np.where(LABELS == 0, least, LABELS))
    code, said = fit(folder, folder / "X.npy", "--labels", folder / "y.npy")
    assert code == 0, said
    assert {*np.load(folder / "out" / "labels.npy").tolist()} == {least, 1}


def test_labels_padded_with_nul_characters_are_those_without(folder):
    lines = [f"{row},{LABELS[row]}" for row in range(40)]
    lines[3] += "\0" * 5
    (folder / "y.csv").write_text("\n".join(["row,label", *lines]))
    code, said = fit(folder, folder / "X.npy", "--labels", folder / "y.csv")
    assert code == 0, said
    assert {*np.load(folder / "out" / "labels.npy").tolist()} == {0, 1}


DAMAGE_FOOTERS = """
import struct
from contextlib import suppress
from biglp._core.errors import BigLPError
from biglp._tables.parquet import ParquetTable
from biglp._rows.options import ReadOptions
data = open("rows.parquet", "rb").read()
(length,) = struct.unpack("<I", data[-8:-4])
for place in range(len(data) - 8 - length, len(data) - 8):
    for other in (data[place] ^ 2, (data[place] + 2) % 256):
        with open("damaged.parquet", "wb") as file:
            file.write(data[:place] + bytes([other]) + data[place + 1 :])
        with suppress(BigLPError, ArithmeticError, ValueError, KeyError):
            table = ParquetTable("damaged.parquet", ReadOptions())
            assert isinstance(table.extremes, dict)
            for name in table.schema.names:
                for batch in table.batches([name]):
                    pass
"""


def test_no_damaged_footer_of_parquet_ends_the_process(folder):
    """pyarrow aborts when the description of a damaged column is asked for."""
    parquet.write_table(TABLE.slice(0, 40), folder / "rows.parquet", row_group_size=20)
    command = [sys.executable, "-c", DAMAGE_FOOTERS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
