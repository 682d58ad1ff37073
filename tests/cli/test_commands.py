"""How commands show their help."""

import os
import subprocess
import sys

import pytest

from cli_tools import done

COMMANDS = ([], ["fit"], ["predict"], ["suggest"], ["datasets"], ["datasets", "fetch"], ["bench"])


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
