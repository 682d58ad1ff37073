"""Options of commands, from the table of parameters.

A command names the options it takes in groups, and gets each group as one object; an option of its
own stands where the command is::

    @with_options
    def predict(
        *,
        reading: Annotated[Options, ("drop", "cache")],
        machine: Annotated[Options, MACHINE],
        dry_run: Annotated[bool, Parameter(False, help="Write nothing.")],
    ) -> None: ...

typer sees the options one by one. A parameter with a help text in a group of the table is an option
of every command that takes the whole group.

``-`` as input and output (:func:`piped`): rows are read more than once, so those from standard
input are put into a temporary file first. Answers go to a temporary file too and from there to
standard output when the run has succeeded, so that a program that reads them sees all or nothing;
what people read then goes to standard error.
"""

from __future__ import annotations

import functools
import inspect
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer

from biglp._core.errors import ParameterError
from biglp._core.parameters import OUTPUT, PARAMETERS, REQUIRED, ROWS, Parameter, flags_of
from biglp._files.uri import as_place

Command = TypeVar("Command", bound=Callable[..., Any])
Gives = Literal["answers", "table", "folder", "nothing"]
STREAM = "-"
INPUT_FORMAT = Parameter(
    None,
    "Format of rows from standard input; found by looking by default.",
    "csv|jsonl|npy|...",
    panel=ROWS,
)


def argument(metavar: str, help: str, read: Callable[[str], Any] | None = None) -> Any:
    """What typer is told of an argument that must be given."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, parser=read)


Inputs = Annotated[
    list[str],
    argument(
        "INPUT",
        "Rows: .npy, .npz, .parquet, .csv, .jsonl, .arrow, .libsvm, .h5::NAME files or .zarr "
        "folders; a folder or pattern of tables or shards; a Delta or Iceberg table; URIs of these "
        "(s3://…); - for standard input; or sim:ROWSxFEATURES for made-up rows.",
    ),
]


class Options(SimpleNamespace):
    """Values of options by name; those that a command does not take have their defaults."""

    def __getattr__(self, name: str) -> Any:
        if name not in PARAMETERS:
            raise AttributeError(name)
        return PARAMETERS[name].default


def output_to(help: str, metavar: str, default: Any = REQUIRED, **more: Any) -> Parameter:
    """``--output``, which every command that writes has, with a help text of its own."""
    return Parameter(default, flag="--output -o", metavar=metavar, help=help, panel=OUTPUT, **more)


def local_path(text: str) -> Path:
    """Read the name of a local file or folder."""
    path = as_place(text)
    if not isinstance(path, Path):
        raise typer.BadParameter(
            f"{text} is in a store; this command writes to local folders only."
        )
    return path


def option(name: str, parameter: Parameter, kind: Any = None) -> inspect.Parameter:
    """What typer sees of a parameter; ``kind`` is its type, by default that of the default."""
    default, read = parameter.default, parameter.read

    def parse(text: str) -> Any:
        """Read a value, and let typer print what is wrong with it."""
        assert read is not None
        try:
            return read(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    if read in (int, float, bool):
        kind, read = read, None
    elif kind is None:
        kind = str if default is None else type(default)
    kind = list[str] if parameter.many else Any if read else kind
    metavar = parameter.metavar or "|".join(parameter.words)
    # A shell completes words; N and FILE stand for others.
    words = [word for word in metavar.split("|") if word.islower()] if "|" in metavar else []
    about = typer.Option(
        *flags_of(name, parameter),
        metavar=metavar or None,
        help=parameter.help,
        parser=read and parse,
        min=parameter.least,
        max=parameter.most,
        autocompletion=(lambda: words) if words else None,
        rich_help_panel=parameter.panel,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is REQUIRED else default,
        annotation=Annotated[kind | None if default is None and kind is not Any else kind, about],
    )


def with_options(command: Command, gives: Gives | None = None) -> Command:
    """Let typer see the options of a command's groups as options of the command.

    One that ``gives`` a result for each row, a small CSV table, several files or nothing also takes
    - for standard input, and writes to standard output.
    """
    signature = inspect.signature(command, eval_str=True)
    shown: list[inspect.Parameter] = []
    groups: dict[str, list[str]] = {}
    for argument in signature.parameters.values():
        kind: Any = argument.annotation
        about: Any = None
        if get_origin(kind) is Annotated:
            kind, about = get_args(kind)[:2]
        if kind is Options:
            named = about if isinstance(about, dict) else {name: PARAMETERS[name] for name in about}
            group = {name: parameter for name, parameter in named.items() if parameter.help}
            groups[argument.name] = list(group)
            shown += [option(name, parameter) for name, parameter in group.items()]
        elif isinstance(about, Parameter):
            shown.append(option(argument.name, about, kind))
        else:
            shown.append(argument)
    if gives is not None:
        shown.append(option("input_format", INPUT_FORMAT))

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        with ExitStack() as stack:
            if gives is not None:
                input_format = given.pop("input_format")
                n_inputs = given["inputs"].count(STREAM)
                writes = str(given.get("output")) == STREAM
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
                if n_inputs or writes:
                    from biglp._engines import ENGINES  # takes a while to load

                    engine = given.get("engine", "")
                    if engine in ENGINES and ENGINES[engine].launched:
                        raise ParameterError(
                            f"- cannot be used with --engine {engine}, whose processes share files "
                            "only."
                        )
                if input_format is not None and not n_inputs:
                    raise ParameterError(
                        "--input-format is for rows from standard input (-); leave it out."
                    )
                if n_inputs:
                    path = stack.enter_context(_standard_input(input_format))
                    given["inputs"] = [path if x == STREAM else x for x in given["inputs"]]
                if writes:
                    named = given.get("output_format", "csv")
                    ending = "csv" if named == "auto" else named
                    given["output"] = stack.enter_context(_standard_output(ending))
            grouped = {
                argument: Options(**{name: given.pop(name) for name in group})
                for argument, group in groups.items()
            }
            return command(**given, **grouped)

    run.__signature__ = inspect.signature(run).replace(parameters=shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run  # type: ignore[return-value]


def piped(gives: Gives) -> Callable[[Command], Command]:
    """:func:`with_options` for a command that reads standard input and writes standard output."""
    return functools.partial(with_options, gives=gives)


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
