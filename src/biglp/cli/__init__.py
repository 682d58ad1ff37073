"""The command line: ``biglp fit``, ``predict``, ``suggest``, ``check``, ``inspect`` and more.

One module a command. What a command needs is loaded when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from biglp._version import __version__
from biglp.cli.check import check
from biglp.cli.clean import clean
from biglp.cli.demo import demo
from biglp.cli.errors import EXIT_CODES
from biglp.cli.fit import fit
from biglp.cli.inspect import inspect
from biglp.cli.label import label
from biglp.cli.predict import predict
from biglp.cli.report import report
from biglp.cli.simulate import simulate
from biglp.cli.suggest import suggest


class _Helpful:
    """How commands show their help: no types that say nothing, also into pipes that close early."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Keep typer from writing <bool> beside a switch, and <Any> beside an argument."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
            if param.param_type_name == "argument":  # what it is says its name
                param.display_type_rich = lambda ctx: None
        return params

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the options, which prints the help where that is asked for.

        That ``head`` or a pager has read as much of the help as it wants is taken for success.
        """
        try:
            try:
                return super().make_context(*args, **more)  # type: ignore[misc]
            finally:
                sys.stdout.flush()
        except (BrokenPipeError, SystemExit) as error:
            # rich ends the process by itself, with exit code 1.
            if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
                raise
            from biglp.cli.console import nothing_more_to_print  # rich takes a while to load

            nothing_more_to_print()
            raise typer.Exit(0) from None


class Command(_Helpful, TyperCommand):
    """A command."""


class Group(_Helpful, TyperGroup):
    """A command that has commands."""


app = typer.Typer(
    name="biglp",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (fit, predict, suggest, label, check, report, inspect, simulate, clean, demo):
    app.command(cls=Command, epilog=EXIT_CODES)(command)


@app.callback(epilog=EXIT_CODES, invoke_without_command=True)
def biglp(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="With --version: also loops, libraries and extras."),
    ] = False,
) -> None:
    """Label millions of rows from a handful of labels.

    Start with [bold]biglp demo[/bold], then try your own file:

    [bold]biglp inspect[/bold] data.parquet --label-column y
    [bold]biglp fit[/bold] data.parquet --label-column y -o out/
    """
    if version or verbose:
        from biglp.cli import versions

        typer.echo(versions.in_words() if verbose else f"biglp {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


def main() -> None:
    """Run the command line; of several processes of a launcher, the first prints wrong usage."""
    # Output that goes to a file or another program is in cp1252 on most Windows machines, and names
    # of classes and columns are in any language: what it lacks is an escape, not an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not any(name.endswith(("_RANK", "_PROCID")) for name in os.environ):
        app()  # by far the usual case, and engines take a while to load
    from biglp._engines import speaks_to_user

    if speaks_to_user():
        app()
    try:
        sys.exit(app(standalone_mode=False))
    except Exception as error:
        sys.exit(getattr(error, "exit_code", 1))  # typer's own; ours have been printed
