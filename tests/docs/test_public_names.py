"""Every public name has a docstring with an example, and every example runs."""

from __future__ import annotations

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import biglp

PUBLIC = ["biglp"] + [
    f"biglp.{path.name}"
    for path in sorted(Path(biglp.__file__).parent.iterdir())
    if path.is_dir() and path.name in ("baselines", "datasets", "plot")
]
NAMES = [
    (module, name)
    for module in PUBLIC
    for name in import_module(module).__all__
    if not name.startswith("__")
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


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
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    assert not runner.run(test, out=told.append).failed, "".join(told)
