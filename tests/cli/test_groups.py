"""Options in groups: typer sees them one by one, the command gets them together."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from biglp.cli.groups import grouped, only


@dataclass(frozen=True)
class Colours:
    front: Annotated[str, typer.Option(help="Colour of the text.")] = "black"
    back: Annotated[str, typer.Option("--back", "-b", help="Colour behind it.")] = "white"


@grouped
def paint(name: str, *, colours: Colours, loud: bool = False) -> None:
    typer.echo(f"{name} {colours} {loud}")


@grouped
def frame(*, colours: Annotated[Colours, only("back")]) -> None:
    typer.echo(str(colours))


def output_of(command, *arguments):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, arguments)


def test_fields_are_options():
    assert list(inspect.signature(paint).parameters) == ["name", "front", "back", "loud"]
    assert "Colour of the text." in output_of(paint, "--help").output
    shown = output_of(paint, "wall", "--front", "red", "-b", "blue").output
    assert shown == "wall Colours(front='red', back='blue') False\n"
    assert "front='black'" in output_of(paint, "wall", "--loud").output


def test_options_that_are_not_taken_keep_their_defaults():
    assert output_of(frame, "-b", "blue").output == "Colours(front='black', back='blue')\n"
    assert output_of(frame, "--front", "red").exit_code == 2
