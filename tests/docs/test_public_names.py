"""Every public name has a docstring with an example, and every example runs."""

from __future__ import annotations

import doctest
import inspect
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import biglp

OTHERS = {
    "biglp.cli",  # commands: tests/doors runs those of their page
    "biglp.estimators",  # the same names as biglp, below
}
PUBLIC = [
    "biglp",
    *sorted(
        f"biglp.{path.stem}"
        for path in Path(biglp.__file__).parent.iterdir()
        if path.suffix in ("", ".py") and not path.stem.startswith("_")
        if f"biglp.{path.stem}" not in OTHERS
    ),
]
NAMES = [
    (module, name)
    for module in PUBLIC
    for name in import_module(module).__all__
    if not name.startswith("__")
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_no_public_package_is_forgotten():
    """Neither here nor in the reference, and estimators have one public place."""
    there = Path(__file__).parents[2] / "docs" / "_ext" / "reference.py"
    assert sorted(runpy.run_path(str(there))["PACKAGES"]) == PUBLIC
    assert {*import_module("biglp.estimators").__all__, "__version__"} == set(biglp.__all__)


@pytest.mark.parametrize("module", PUBLIC)
def test_what_a_package_shows_is_public(module):
    """A name without an underscore is in ``__all__``, or is a part of the package."""
    package = import_module(module)
    shown = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("biglp")
    }
    assert shown <= set(package.__all__)


def methods(public: type) -> dict[str, object]:
    """Public methods of a class that are biglp's own."""
    every = inspect.getmembers(public, callable)
    return {
        name: method
        for name, method in every
        if not name.startswith("_") and getattr(method, "__module__", "").startswith("biglp")
    }


def examples(public: object) -> str:
    """Docstrings that may hold examples of a public name: its own, and those of its methods."""
    own = inspect.getdoc(public) or ""
    parts = methods(public).values() if inspect.isclass(public) else ()
    return "\n".join([own, *(inspect.getdoc(part) or "" for part in parts)])


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_has_an_example(module, name):
    public = getattr(import_module(module), name)
    assert ">>>" in (inspect.getdoc(public) or ""), f"{module}.{name} has no example"
    if inspect.isclass(public) and module != "biglp.plot":  # plots are made by their constructor
        code = "\n".join(re.findall(r"(?:>>>|\.\.\.) (.*)", examples(public)))
        unused = [method for method in methods(public) if f".{method}(" not in code]
        assert unused == [], f"no example of {name} or of its methods calls these"


def documented() -> list[doctest.DocTest]:
    """All examples of public names, each once although classes share methods."""
    finder, found = doctest.DocTestFinder(recurse=False), {}
    for module, name in NAMES:
        public = getattr(import_module(module), name)
        parts = [public, *(methods(public).values() if inspect.isclass(public) else ())]
        for part in parts:
            part = inspect.unwrap(getattr(part, "__func__", part))
            for test in finder.find(part, f"{module}.{part.__qualname__}"):
                if test.examples:
                    found[test.filename, test.lineno] = test
    return list(found.values())


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("test", documented(), ids=lambda test: test.name)
def test_the_example_runs(test):
    assert not [each for each in test.examples if each.options.get(doctest.SKIP)]
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    assert not runner.run(test, out=told.append).failed, "".join(told)
