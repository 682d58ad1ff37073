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

from biglp._core.errors import ParameterError
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

    It gives a result for each row, a small CSV table, several files or nothing.
    """

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command)
        shown = [*signature.parameters.values(), option("input_format", INPUT_FORMAT)]

        @functools.wraps(command)
        def run(*, input_format: str | None, **given: Any) -> Any:
            n_inputs, writes = given["inputs"].count(STREAM), str(given.get("output")) == STREAM
            if writes and gives == "folder":
                raise ParameterError(
                    "-o - cannot be used: the command writes several files; name a folder."
                )
            if n_inputs > 1:
                raise ParameterError("standard input (-) can be read once only; name it once.")
            if (n_inputs or writes) and given.get("resume"):
                raise ParameterError(
                    "--resume needs files: what went through standard input or output is gone."
                )
            if (n_inputs or writes) and given.get("engine") == "mpi":
                raise ParameterError(
                    "- cannot be used with --engine mpi, whose processes share files only."
                )
            if input_format is not None and not n_inputs:
                raise ParameterError(
                    "--input-format is for rows from standard input (-); leave it out."
                )
            with ExitStack() as stack:
                if n_inputs:
                    path = stack.enter_context(_standard_input(input_format))
                    given["inputs"] = [path if x == STREAM else x for x in given["inputs"]]
                if writes:
                    named = given.get("output_format", "csv")
                    ending = "csv" if named == "auto" else named
                    given["output"] = stack.enter_context(_standard_output(ending))
                return command(**given)

        return signed(run, shown)  # type: ignore[return-value]

    return decorate


@contextmanager
def _standard_input(input_format: str | None) -> Iterator[str]:
    """Put standard input into a temporary file, whose ending says what it is."""
    import tempfile

    from biglp._files.local import explained_writing
    from biglp._jobs.job import STDIN_FOLDER
    from biglp._rows.textfiles import ending_for

    with tempfile.TemporaryDirectory(prefix=STDIN_FOLDER) as folder:
        source = sys.stdin.buffer
        first = source.read(1 << 16)
        if not first:
            raise ParameterError("standard input (-) is empty; pipe rows into the command.")
        ending = input_format or ending_for(first)
        if ending is None:
            raise ParameterError(
                "standard input (-) is in no format that is known; name it: --input-format."
            )
        path = Path(folder) / f"stdin.{ending}"
        with explained_writing(path), open(path, "wb") as file:
            file.write(first)
            shutil.copyfileobj(source, file, 1 << 20)
        yield str(path)


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
