"""Every public name has a docstring with an example, and every example runs."""

import doctest
import inspect
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import biglp

# Commands: tests/doors runs those of their page. Estimators: the same names as biglp.
OTHERS = {"biglp.cli", "biglp.estimators"}
FOUND = {
    f"biglp.{path.stem}"
    for path in Path(biglp.__file__).parent.iterdir()
    if path.suffix in ("", ".py") and not path.stem.startswith("_")
}
PUBLIC = ["biglp", *sorted(FOUND - OTHERS)]
NAMES = [
    (module, name)
    for module in PUBLIC
    for name in import_module(module).__all__
    if not name.startswith("__")
]


def is_own(name: str, value: object) -> bool:
    return not name.startswith("_") and getattr(value, "__module__", "").startswith("biglp")


def methods(public: object) -> dict[str, object]:
    every = inspect.getmembers(public, callable) if inspect.isclass(public) else ()
    return {name: method for name, method in every if is_own(name, method)}


def test_no_public_package_or_name_is_forgotten():
    """Neither here nor in the reference; what has no underscore is in ``__all__``."""
    there = Path(__file__).parents[2] / "docs" / "_ext" / "reference.py"
    assert sorted(runpy.run_path(str(there))["PACKAGES"]) == PUBLIC
    assert {*import_module("biglp.estimators").__all__, "__version__"} == set(biglp.__all__)
    for module in PUBLIC:
        package = import_module(module)
        shown = {name for name, value in vars(package).items() if is_own(name, value)}
        assert shown <= set(package.__all__)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_has_an_example(module, name):
    public = getattr(import_module(module), name)
    own = inspect.getdoc(public) or ""
    assert ">>>" in own, f"{module}.{name} has no example"
    if module != "biglp.plot":  # plots are made by their constructor
        texts = [own, *(inspect.getdoc(part) or "" for part in methods(public).values())]
        code = "\n".join(re.findall(r"(?:>>>|\.\.\.) (.*)", "\n".join(texts)))
        assert [method for method in methods(public) if f".{method}(" not in code] == []


def documented() -> list[doctest.DocTest]:
    finder, found = doctest.DocTestFinder(recurse=False), {}
    for module, name in NAMES:
        public = getattr(import_module(module), name)
        for part in [public, *methods(public).values()]:
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
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not runner.run(test, out=told.append).failed, "".join(told)
