"""``-`` as input and output: rows from standard input, answers to standard output.

Rows are read more than once, so those from standard input are put into a temporary file first.
Answers go to a temporary file too and from there to standard output when the run has succeeded, so
that a program that reads them sees all or nothing; what people read then goes to standard error.
"""

from __future__ import annotations

import functools
import inspect
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Literal, TypeVar

from biglp._core.parameters import ROWS, Parameter
from biglp.cli.options import option, signed

Command = TypeVar("Command", bound=Callable[..., Any])
Gives = Literal["answers", "table", "folder", "nothing"]
INPUT_FORMAT = Parameter(
    None,
    "Format of rows from standard input; found by looking by default.",
    "csv|jsonl|npy|...",
    panel=ROWS,
)
STREAM = "-"


def piped(gives: Gives) -> Callable[[Command], Command]:
    """Let a command read rows from standard input and write to standard output.

    Parameters
    ----------
    gives : {"answers", "table", "folder", "nothing"}
        What the command writes: a result for each row, a small CSV table, several files, nothing.
    """

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command)
        shown = [*signature.parameters.values(), option("input_format", INPUT_FORMAT)]

        @functools.wraps(command)
        def run(*, input_format: str | None, **given: Any) -> Any:
            _refuse(gives, given)
            with ExitStack() as stack:
                if STREAM in given["inputs"]:
                    spooled = stack.enter_context(_standard_input(input_format))
                    given["inputs"] = [spooled if x == STREAM else x for x in given["inputs"]]
                elif input_format is not None:
                    raise _wrong(
                        "--input-format is for rows from standard input (-); leave it out."
                    )
                if str(given.get("output")) == STREAM:
                    named = given.get("output_format", "csv")
                    ending = "csv" if named == "auto" else named
                    given["output"] = stack.enter_context(_standard_output(ending))
                return command(**given)

        return signed(run, shown)  # type: ignore[return-value]

    return decorate


def _refuse(gives: Gives, given: dict[str, Any]) -> None:
    """Refuse streams where they cannot work."""
    reads = given["inputs"].count(STREAM)
    writes = str(given.get("output")) == STREAM
    if writes and gives == "folder":
        raise _wrong("-o - cannot be used: the command writes several files; name a folder.")
    if reads > 1:
        raise _wrong("standard input (-) can be read once only; name it once.")
    if (reads or writes) and given.get("resume"):
        raise _wrong("--resume needs files: what went through standard input or output is gone.")
    if (reads or writes) and given.get("engine") == "mpi":
        raise _wrong("- cannot be used with --engine mpi, whose processes share files only.")


@contextmanager
def _standard_input(input_format: str | None) -> Iterator[str]:
    """Put standard input into a temporary file, whose ending says what it is."""
    import tempfile

    from biglp._files.local import explained_writing
    from biglp._jobs.job import STDIN_FOLDER

    with tempfile.TemporaryDirectory(prefix=STDIN_FOLDER) as folder:
        source = sys.stdin.buffer
        first = source.read(1 << 16)
        if not first:
            raise _wrong("standard input (-) is empty; pipe rows into the command.")
        path = Path(folder) / f"stdin.{input_format or _format_of(first)}"
        with explained_writing(path), open(path, "wb") as file:
            file.write(first)
            shutil.copyfileobj(source, file, 1 << 20)
        yield str(path)


def _format_of(first: bytes) -> str:
    """The ending that fits the first bytes of a file."""
    from biglp._rows.textfiles import ending_for

    ending = ending_for(first)
    if ending is None:
        raise _wrong("standard input (-) is in no format that is known; name it: --input-format.")
    return ending


@contextmanager
def _standard_output(ending: str) -> Iterator[Path]:
    """Yield the name of a temporary file, which goes to standard output if all went well."""
    import tempfile

    from biglp._jobs.job import STDOUT_FOLDER

    with tempfile.TemporaryDirectory(prefix=STDOUT_FOLDER) as folder:
        path = Path(folder) / f"labels.{ending}"
        with redirect_stdout(sys.stderr):
            yield path
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()


def _wrong(message: str) -> Exception:
    from biglp._core.errors import ParameterError

    return ParameterError(message)
