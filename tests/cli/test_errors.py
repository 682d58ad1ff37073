"""From errors to messages and exit codes."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

import pytest

from biglp._core import errors
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
