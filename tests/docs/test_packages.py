"""A function of a package must not bear the name of one of its modules, which hides it."""

import ast
from pathlib import Path

import biglp


def test_no_function_is_hidden_by_a_module_of_its_name():
    for door in Path(biglp.__file__).parent.rglob("__init__.py"):
        modules = {path.stem for path in door.parent.glob("*.py")}
        modules |= {path.parent.name for path in door.parent.glob("*/__init__.py")}
        defined = {
            node.name
            for node in ast.parse(door.read_text()).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert not modules & defined, f"in {door.parent.name}"
