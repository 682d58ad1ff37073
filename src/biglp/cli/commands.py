"""How commands show their help: no types that say nothing, also into pipes that close early."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options and arguments."""
        return _without_types(super().get_params(ctx))

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the options, which prints the help where that is asked for."""
        with _reader_may_leave():
            return super().make_context(*args, **more)


class Group(TyperGroup):
    """A command that has commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options and arguments."""
        return _without_types(super().get_params(ctx))

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the options, which prints the help where that is asked for."""
        with _reader_may_leave():
            return super().make_context(*args, **more)


def _without_types(params: list[Any]) -> list[Any]:
    """Keep typer from writing <bool> beside a switch, and <Any> beside an argument."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
        if param.param_type_name == "argument":  # what it is says its name
            param.display_type_rich = lambda ctx: None
    return params


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Take it for success that ``head`` or a pager has read as much of the help as it wants."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # rich ends the process by itself, with exit code 1.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        from biglp.cli.console import nothing_more_to_print  # rich takes a while to load

        nothing_more_to_print()
        raise typer.Exit(0) from None
