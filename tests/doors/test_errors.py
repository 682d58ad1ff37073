"""Errors, damaged and odd files: one message with a reason, and an exit code that says so."""

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

from biglp._core import BadRowsError, BigLPError
from biglp._rows import as_source
from biglp.cli.errors import EXIT_CODES, UNEXPECTED, code_of
from cli_tools import done, failed, run

ROWS = np.random.default_rng(0).normal(size=(120, 4))
LABELS = np.where(np.arange(120) < 40, (ROWS[:, 0] > 0).astype(int), -1)
TABLE = pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1], "y": LABELS})
FIT = ("fit", "X.npy", "--labels", "y.npy", "-o", "out", "--engine", "serial")


@pytest.fixture
def folder(here):
    np.save("X.npy", ROWS)
    np.save("y.npy", LABELS)
    return here


def test_missing_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert 'pip install "biglp[mpich]"' in failed(6, *FIT[:-1], "mpi")


def test_unexpected_errors_say_so(folder, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("a bug")

    monkeypatch.setattr("biglp._jobs.fit.Pipeline", broken)
    assert "unexpected RuntimeError: a bug. Please report it" in failed(1, *FIT)
    result = run(*FIT, "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted."), (signal.SIGTERM, 143, "terminated.")],
)
def test_an_error_after_a_signal_is_its_consequence(
    number, code, said, folder, monkeypatch, request
):
    """Compiled code may lose the interruption and raise an error of its own."""

    def interrupted(*args, **options):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        raise ValueError("is not a valid buffer")

    monkeypatch.setattr("biglp._jobs.fit.Pipeline", interrupted)
    # A shell lets commands in the background ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    assert said in failed(code, *FIT)


def test_every_error_of_ours_has_an_exit_code_that_the_help_explains():
    kinds = BigLPError.__subclasses__()
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__module__ != BigLPError.__module__:  # a private kind of one of these
            continue
        code = code_of(kind("x"))
        assert code != UNEXPECTED, kind
        assert f" {code} " in EXIT_CODES, kind
    assert len(kinds) > 8


def test_packed_text_with_a_changed_bit(folder):
    lines = [f"{a},{b},{y}" for a, b, y in zip(ROWS[:, 0], ROWS[:, 1], LABELS, strict=True)]
    packed = gzip.compress("\n".join(["a,b,y", *lines]).encode())
    for place in (12, 14, len(packed) // 2, len(packed) - 6):
        damaged = bytearray(packed)
        damaged[place] ^= 16
        (folder / "rows.csv.gz").write_bytes(damaged)
        failed(3, "fit", "rows.csv.gz", "--label-column", "y", "-o", "out")


@pytest.mark.parametrize(
    ("old", "new"), [(b"(120, 4)", b"(-20, 4)"), (b"(120, 4)", b"(True, 4)"), (b"{", b"(" * 90)]
)
def test_damaged_headers_of_arrays(folder, old, new):
    whole = (folder / "X.npy").read_bytes()
    (folder / "bad.npy").write_bytes(whole.replace(old, new, 1)[: len(whole)])
    for rows, labels in (("bad.npy", "y.npy"), ("X.npy", "bad.npy")):
        message = failed(3, "fit", rows, "--labels", labels, "-o", "out")
        assert "cannot be read as a .npy array" in message


@pytest.mark.parametrize("first", [2**53 + 1, 2**63 - 2, 2**63, 2**64])
def test_labels_of_many_digits_keep_them(folder, first):
    lines = ["" if label < 0 else str(first + label) for label in LABELS.tolist()]
    (folder / "labels.csv").write_text("\n".join(["label", *lines]) + "\n")
    said = done("fit", "X.npy", "--labels", "labels.csv", "-o", "out").stdout
    assert str(first) in said
    assert str(first + 1) in said


def test_labels_padded_with_nul_characters_are_those_without(folder):
    lines = [f"{row},{LABELS[row]}" + "\0" * 5 * (row == 3) for row in range(40)]
    (folder / "y.csv").write_text("\n".join(["row,label", *lines]))
    done("fit", "X.npy", "--labels", "y.csv", "-o", "out")
    assert {*np.load(folder / "out" / "labels.npy").tolist()} == {0, 1}


def test_a_damaged_description_of_a_run(folder):
    (folder / "out" / ".biglp-run").mkdir(parents=True)
    (folder / "out" / ".biglp-run" / "run.json").write_text('{"a": ')
    assert "is damaged" in failed(5, *FIT, "--resume")


def test_parts_of_a_model_that_do_not_fit_each_other_and_a_summary_that_is_not_whole(folder):
    """The model's zip archive is whole, and so is each array."""
    done(*FIT, "--factor", "anchors")
    with zipfile.ZipFile("out/model.biglp") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    buffer, name = io.BytesIO(), "rows.factor.landmarks.npy"
    np.save(buffer, np.load(io.BytesIO(parts[name]))[:, :2])
    with zipfile.ZipFile("bad.biglp", "w") as archive:
        for each, content in (parts | {name: buffer.getvalue()}).items():
            archive.writestr(each, content)
    message = failed(5, "predict", "bad.biglp", "X.npy", "-o", "new")
    assert "bad.biglp cannot be used: its parts do not fit each other" in message
    summary = folder / "out" / "summary.json"
    content = summary.read_bytes()
    for old, new in ((b'"step"', b'"stop"'), (b'"rows"', b'"cows"'), (b'"run"', b'"ran"')):
        summary.write_bytes(content.replace(old, new))
        assert "summary.json" in failed(2, "report", "out", "--overwrite")


def in_a_child(check):
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = check() or 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_rows_in_fortran_order_that_are_cut_short_while_they_are_read(folder, monkeypatch):
    """To touch mapped pages that are gone ends a process."""
    rows, path = np.asfortranarray(np.tile(ROWS, (200, 1))), folder / "fortran.npy"
    np.save(path, rows)
    source = as_source(path)
    np.testing.assert_array_equal(source.read(7, 5000), rows[7:5000])
    np.testing.assert_array_equal(source.take(np.array([0, 3, 11900])), rows[[0, 3, 11900]])

    def check():  # the file was looked at just before
        monkeypatch.setattr("biglp._files.local.FileStamp.check", lambda self: None)
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(BadRowsError, match="cut short"):
            source.read(100, 2000)

    in_a_child(check)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_damaged_arrow_files_do_not_end_the_process(folder, compression):
    words = pa.array(["red", "green", None, "blue"] * 30).dictionary_encode()
    texts = pa.array([f"text {number % 7}" for number in range(120)])
    table = TABLE.append_column("colour", words).append_column("text", texts)
    path = folder / "t.feather"
    feather.write_feather(table, path, compression=compression)
    whole, rng = path.read_bytes(), np.random.default_rng(0)

    def check():
        for number in range(150):
            damaged = bytearray(whole)
            for place in rng.integers(8, len(whole), 1 + number % 4):
                damaged[place] = rng.integers(256)
            path.write_bytes(damaged)
            with suppress(Exception):
                source = as_source(path, drop=("y",))
                source.read(0, source.n_rows)

    in_a_child(check)


DAMAGE_FOOTERS = """
import struct
from contextlib import suppress
from biglp._core import BigLPError
from biglp._rows import InputFiles, ReadOptions
data = open("rows.parquet", "rb").read()
(length,) = struct.unpack("<I", data[-8:-4])
for place in range(len(data) - 8 - length, len(data) - 8):
    for other in (data[place] ^ 2, (data[place] + 2) % 256):
        with open("damaged.parquet", "wb") as file:
            file.write(data[:place] + bytes([other]) + data[place + 1 :])
        with suppress(BigLPError, ArithmeticError, ValueError, KeyError):
            (table,) = InputFiles("damaged.parquet").tables(ReadOptions())
            table.extremes
            for name in table.schema.names:
                for batch in table.batches([name]):
                    pass
"""


def test_no_damaged_footer_of_parquet_ends_the_process(folder):
    """pyarrow aborts when the description of a damaged column is asked for."""
    parquet.write_table(TABLE.slice(0, 40), "rows.parquet")
    command = [sys.executable, "-c", DAMAGE_FOOTERS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
