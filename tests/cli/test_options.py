"""Options: declared once, with the defaults of the estimator."""

from __future__ import annotations

import pytest
import typer

from biglp.cli import app
from biglp.cli.options import Reading, Results
from biglp.cli.values import named_values, names
from cli_tools import run


def test_defaults_are_the_estimators():
    import inspect

    from biglp import LowRankLabelPropagation
    from biglp._jobs.fit import DEFAULTS
    from biglp.cli.fit import fit

    parameters = LowRankLabelPropagation().get_params()
    assert DEFAULTS.items() <= parameters.items()
    places = {
        "label_column",
        "id_column",
        "metadata",
    }  # where labels are
    reading = {"columns", "drop", "categorical", "missing", "text"}
    assert set(parameters) - set(DEFAULTS) == {"engine", "verbose"} | places | reading
    options = inspect.signature(fit).parameters
    # --seed is fixed: same answers
    for name in (set(DEFAULTS) | reading) & set(options) - {"random_state"}:
        assert options[name].default == parameters[name]


def test_options_have_names_in_small_letters():
    """typer 0.27 took the metavar for the name of an option where both are the same word."""

    def options(command):
        for inner in getattr(command, "commands", {}).values():
            yield from options(inner)
        yield from (param for param in command.params if param.param_type_name == "option")

    found = [*options(typer.main.get_command(app))]
    assert len(found) > 100
    assert [option.opts for option in found if option.opts[0] != option.opts[0].lower()] == []


def test_a_list_of_columns_may_hold_a_name_with_a_comma():
    assert names('a, b,"c, d"') == ("a", "b", "c, d")


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
    assert Reading().given() == {}
    given = Reading(drop=("a",), missing="mean", cache="never").given()
    assert given == {"drop": ("a",), "missing": "mean"}


def test_probabilities_of_all_classes_or_of_the_likeliest():
    assert Results(confidence=True, top=3).outputs == ("label", "confidence", "probabilities")
    with pytest.raises(typer.BadParameter, match="--top K"):
        _ = Results(probabilities=True, top=3).outputs
