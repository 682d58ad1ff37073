"""The command line as a whole: help, version, quiet."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from biglp.cli import main
from cli_tools import done, run


def test_help_is_quick_and_lists_exit_codes():
    for command in ([], ["fit"], ["predict"], ["simulate"], ["inspect"], ["demo"]):
        text = done(*command, "--help").stdout
        assert "Exit codes" in text
    check = (
        "import sys, biglp.cli; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'pandas'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_quiet_and_versions(here):
    result = done("fit", "sim:2Kx5", "-o", "out", "--factor", "linear", "--quiet")
    assert result.output == ""
    assert done("--version").stdout.startswith("biglp ")


def test_no_command_shows_the_help():
    shown = run().output
    assert "Label millions of rows" in shown
    for command in ("fit", "predict", "suggest", "inspect", "simulate", "demo"):
        assert f"│ {command} " in shown


def test_the_version_is_told_before_anything_is_loaded():
    code = """if True:
        import sys
        sys.argv = ["biglp", "--version"]
        from biglp.__main__ import main
        main()
        assert not {"typer", "numpy", "rich"} & set(sys.modules)
    """
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.startswith("biglp ")


def test_letters_that_an_encoding_does_not_have_are_escaped(monkeypatch):
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "argv", ["biglp", "--version"])
    with pytest.raises(SystemExit):
        main()
    print("é → ok", file=stream, flush=True)
    assert printed.getvalue().split()[2:] == [b"\xe9", rb"\u2192", b"ok"]
