"""How commands show their help."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from biglp._graph import FACTORS
from biglp.cli import app
from cli_tools import done

COMMANDS = ([], ["fit"], ["predict"], ["suggest"], ["label"], ["inspect"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_first_hour_11_switches_have_no_type(command):
    shown = done(*command, "--help").stdout
    assert "--help" in shown
    assert "bool" not in shown.lower()


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["inspect", "sim:200x3"]])
def test_first_hour_5_a_reader_that_leaves_early_is_no_failure(arguments):
    reading, writing = os.pipe()
    os.close(reading)  # as head does when it has its lines
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "biglp", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["predict", "report"])
def test_first_hour_11_arguments_have_no_type(command):
    shown = done(command, "--help").stdout
    assert "<Any>" not in shown
    assert "<list" not in shown


def completed(*words):
    """What a shell offers after some words, the last of which is not finished."""
    asked = {
        "_BIGLP_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("biglp", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return CliRunner().invoke(app, [], prog_name="biglp", env=asked).stdout.split()


def test_first_hour_11_a_shell_completes_values():
    assert completed("fit", "--factor", "") == ["auto", *FACTORS]
    assert completed("fit", "--factor", "gl") == ["glnp", "glnp-mu"]
    assert completed("fit", "--class-balance", "") == ["auto", "mass", "share", "centre", "none"]
    assert completed("suggest", "--format", "l") == ["label-studio"]
    assert completed("predict", "--engine", "m") == ["mpi"]
    assert completed("fit", "--alpha", "") == []
