"""Options: declared once, with the defaults of the estimator."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from biglp._core.parameters import (
    LABELS,
    METHOD,
    PARAMETERS,
    READING,
    Parameter,
    column_names,
    named_values,
)
from biglp.cli import app
from biglp.cli.fit import fit
from biglp.cli.options import Options, with_options
from biglp.cli.running import reading_arguments
from cli_tools import done, run


def test_defaults_are_those_of_the_table():
    taken = inspect.signature(fit).parameters
    shared = set(taken) & set(PARAMETERS)
    assert set(LABELS) | set(READING) | set(METHOD) - {"max_iter", "tol"} <= shared
    assert {name: taken[name].default for name in shared} == {
        name: PARAMETERS[name].default for name in shared
    }


def options(command):
    for inner in getattr(command, "commands", {}).values():
        yield from options(inner)
    yield from (param for param in command.params if param.param_type_name == "option")


def test_docs_name_options_that_there_are():
    known = {flag for option in options(typer.main.get_command(app)) for flag in option.opts}
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert len(named) > 40
    assert named - known == {"--help"}


def test_options_have_names_in_small_letters():
    """typer 0.27 took the metavar for the name of an option where both are the same word."""
    found = [*options(typer.main.get_command(app))]
    assert len(found) > 100
    assert [option.opts for option in found if option.opts[0] != option.opts[0].lower()] == []


def test_a_list_of_columns_may_hold_a_name_with_a_comma():
    assert column_names('a, b,"c, d"') == ("a", "b", "c, d")


def test_settings_of_a_factor_are_numbers_switches_or_words():
    found = named_values("max_iter=2000, tol=1e-4,shift=false,start=uniform")
    assert found == {"max_iter": 2000, "tol": 1e-4, "shift": False, "start": "uniform"}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--alpha", "x", "'x' is neither 'auto' nor a number"),
        ("-k", "2.5", "'2.5' is neither 'auto' nor a whole number"),
        ("--class-balance", "0.9,y", "not shares such as 0.9,0.1"),
        ("--factor-params", "max_iter", "'max_iter' is not NAME=VALUE"),
        ("--factor-params", "depth=3", "'depth', which factor='anchors' does not know"),
    ],
)
def test_values_that_cannot_be_read(here, option, value, message):
    result = run("fit", "rows.npy", "-o", "out", option, value)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_only_options_that_were_given_reach_the_reader():
    assert reading_arguments(Options(missing="auto", drop=None, columns=None)) == {}
    given = Options(drop=("a",), missing="mean", cache="never")
    assert reading_arguments(given) == {"drop": ("a",), "missing": "mean"}


def test_probabilities_of_all_classes_or_of_the_likeliest(here):
    assert run("fit", "sim:1Kx3", "-o", "out", "--probabilities", "--top", "1").exit_code == 2
    done("fit", "sim:1Kx3", "-o", "out", "--top", "1", "--confidence", "-q")
    names = {"labels", "confidence", "top_classes", "top_probabilities"}
    assert {path.stem for path in Path("out").glob("*.npy")} == names


@with_options
def paint(
    name: str,
    *,
    method: Annotated[Options, ("clamp", "n_landmarks", "max_iter")],
    loud: Annotated[bool, Parameter(False, "In large letters.")],
) -> None:
    typer.echo(f"{name} {vars(method)} {method.max_iter} {method.solver} {loud}")


class TestGroups:
    """typer sees options one by one, the command gets them together."""

    def output_of(self, *arguments):
        app = typer.Typer()
        app.command()(paint)
        return CliRunner().invoke(app, arguments)

    def test_names_of_the_table_are_options(self):
        assert list(inspect.signature(paint).parameters) == ["name", "clamp", "n_landmarks", "loud"]
        shown = self.output_of("--help").output
        assert "Number of landmarks." in shown
        assert "In large letters." in shown
        shown = self.output_of("wall", "--clamp", "hard", "-k", "7").output
        assert shown.startswith("wall {'clamp': 'hard', 'n_landmarks': 7}")
        assert "'n_landmarks': 'auto'" in self.output_of("wall", "--loud").output

    def test_options_that_are_not_taken_keep_their_defaults(self):
        assert self.output_of("wall").output.endswith("10000 closed_form False\n")
        assert self.output_of("wall", "--solver", "iterative").exit_code == 2
        with pytest.raises(AttributeError):
            Options().colour  # noqa: B018
