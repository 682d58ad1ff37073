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
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer

from biglp._core.parameters import OUTPUT, PARAMETERS, REQUIRED, Parameter, chosen, flags_of
from biglp._files.uri import as_place

Command = TypeVar("Command", bound=Callable[..., Any])


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

    def chosen(self) -> dict[str, Any]:
        """Options that are not at their defaults."""
        return chosen(vars(self))


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
    if read in (int, float):
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
        parser=read and _explained(read),
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


def _explained(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let typer print what is wrong with a value."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def with_options(command: Command) -> Command:
    """Let typer see the options of a command's groups as options of the command."""
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

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        grouped = {
            argument: Options(**{name: values.pop(name) for name in group})
            for argument, group in groups.items()
        }
        return command(**values, **grouped)

    return signed(run, shown)  # type: ignore[return-value]


def signed(command: Command, shown: list[inspect.Parameter]) -> Command:
    """Let typer see these parameters."""
    signature = inspect.signature(command).replace(parameters=shown)
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return command
