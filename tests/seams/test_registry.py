"""Tables of things by name: names at once, modules when they are asked for."""

import sys

import pytest

from biglp._core import Registry
from biglp._graph import FACTORS
from biglp._learn import ANSWERS, MEMBERS, METHODS
from cli_tools import run_python


def test_a_module_is_loaded_when_its_name_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "registered_thing.py").write_text("VALUE = object()\n")
    monkeypatch.syspath_prepend(tmp_path)
    table = Registry({"thing": "registered_thing:VALUE", "other": "no_such_module:X"})
    table["made"] = 2
    assert list(table) == ["thing", "other", "made"]
    assert "registered_thing" not in sys.modules
    found = table["thing"]
    assert found is sys.modules.pop("registered_thing").VALUE
    assert table["thing"] is found  # it is not loaded again
    with pytest.raises(ModuleNotFoundError):
        table["other"]
    del table["made"]
    with pytest.raises(KeyError):
        table["made"]
    code = (
        "import sys; from biglp._graph import FACTORS; names = list(FACTORS);"
        "assert 'biglp._graph.glnp.factor' not in sys.modules; print(','.join(names))"
    )
    assert run_python(code).stdout.strip() == ",".join(FACTORS)


def test_every_line_leads_somewhere_and_names_of_model_files_are_found_again():
    for table in (FACTORS, METHODS, ANSWERS, MEMBERS):
        assert all(isinstance(table[name], type) for name in table)
    for name in FACTORS:
        if not FACTORS[name].pairwise:  # a given graph makes no features of new rows
            again = FACTORS[FACTORS[name].kind]
            assert again.from_state.__func__ is FACTORS[name].from_state.__func__
    assert all(ANSWERS[name].kind == name for name in ANSWERS)
