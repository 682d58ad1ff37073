"""Tables of things by name: names at once, modules when they are asked for."""

import sys

import pytest

from biglp._core import Registry
from biglp._graph import FACTORS
from biglp._learn import ANSWERS, METHODS
from biglp._learn.committee import MEMBERS
from cli_tools import run_python


def test_a_module_is_loaded_when_its_name_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "registered_thing.py").write_text("VALUE = object()\n")
    monkeypatch.syspath_prepend(tmp_path)
    table = Registry({"thing": "registered_thing:VALUE", "other": "no_such_module:X"})
    assert list(table) == ["thing", "other"]
    assert "thing" in table
    assert "registered_thing" not in sys.modules
    found = table["thing"]
    assert found is sys.modules.pop("registered_thing").VALUE
    assert table["thing"] is found  # it is not loaded again
    with pytest.raises(ModuleNotFoundError):
        table["other"]


def test_things_are_added_replaced_and_removed():
    table = Registry({"a": "math:pi"})
    table["b"] = 2
    table["c"] = "math:e"
    table["a"] = 1
    assert [table[name] for name in table] == [1, 2, pytest.approx(2.71828, abs=1e-5)]
    del table["b"]
    assert list(table) == ["a", "c"]
    for name in ("b", "z"):
        assert name not in table
        with pytest.raises(KeyError):
            table[name]


def test_every_line_leads_somewhere():
    for table in (FACTORS, METHODS, ANSWERS, MEMBERS):
        assert all(isinstance(table[name], type) for name in table)


def test_factors_and_answers_are_found_again_by_the_names_in_model_files():
    for name in FACTORS:
        if FACTORS[name].pairwise:  # a graph that was given makes no features of new rows
            continue
        assert FACTORS[FACTORS[name].kind].from_state.__func__ is FACTORS[name].from_state.__func__
    for name in ANSWERS:
        assert ANSWERS[name].kind == name


def test_names_are_there_without_their_modules():
    code = (
        "import sys; from biglp._graph import FACTORS; names = list(FACTORS);"
        "assert 'biglp._graph.glnp.factor' not in sys.modules; print(','.join(names))"
    )
    assert run_python(code).stdout.strip() == ",".join(FACTORS)
