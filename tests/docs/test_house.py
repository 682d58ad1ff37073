"""Rules of the house, read off the sources: sizes, and who may know a factor by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from biglp._lowrank import FACTORS

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "biglp"
MOST_ENTRIES, MOST_LINES, MOST_PARAMETERS = 20, 300, 6
COMMANDS, KERNELS = "explained", "jit"
"""The decorators of a command, whose parameters are the options that it declares, and of a kernel
for a GPU, whose parameters are addresses and sizes."""
OTHER_NAMES = {
    "baselines/propagation.py": "its kernels, of which one is linear, are not factors",
}
"""Files in which a factor's name is that of something else."""


OF_ONE_SYSTEM = {"fcntl", "grp", "msvcrt", "pwd", "resource", "termios", "winreg"}
"""Modules of Python that Windows, or every other system, does not have."""


def files() -> list[Path]:
    """All modules."""
    return sorted(SOURCES.rglob("*.py"))


def place(path: Path, node: ast.AST) -> str:
    """Where something is, for a message."""
    return f"{path.relative_to(SOURCES)}:{node.lineno}"  # type: ignore[attr-defined]


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """All functions of a module, also inside classes and functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names of the parameters that a caller gives."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def declares_options(function: ast.FunctionDef) -> bool:
    """Whether a function is a command, or a kernel."""
    names = {getattr(each, "id", getattr(each, "attr", "")) for each in function.decorator_list}
    return bool({COMMANDS, KERNELS} & names)


def compared_strings(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Text that something is compared with: ==, in, or a case of a match."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        else:
            continue
        for part in parts:
            for leaf in ast.walk(part):
                if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                    yield node, leaf.value


def test_the_top_level_is_short():
    entries = sorted(path.name for path in SOURCES.iterdir() if path.name != "__pycache__")
    assert len(entries) <= MOST_ENTRIES, entries


def test_no_file_is_long():
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files()}
    long = {str(path.relative_to(SOURCES)): n for path, n in sizes.items() if n > MOST_LINES}
    assert not long


def test_functions_have_few_parameters():
    many = {
        f"{place(path, function)} {function.name}": len(parameters(function))
        for path in files()
        for function in functions(path)
        if function.name != "__init__"
        and not declares_options(function)
        and len(parameters(function)) > MOST_PARAMETERS
    }
    assert not many


def test_a_factor_is_known_by_its_name_where_factors_are_and_nowhere_else():
    elsewhere = [path for path in files() if "_lowrank" not in path.parts]
    found = [
        f"{place(path, node)} compares with {text!r}"
        for path in elsewhere
        if str(path.relative_to(SOURCES)) not in OTHER_NAMES
        for node, text in compared_strings(ast.parse(path.read_text(encoding="utf-8")))
        if text in tuple(FACTORS)
    ]
    assert not found


class TestTheRulesSeeWhatTheyShould:
    """The rules themselves, on a few lines that break them."""

    @pytest.mark.parametrize(
        "line",
        [
            "settings.factor == 'glnp'",
            "'linear' != kind",
            "kind in ('anchors', 'nystrom')",
            "match kind:\n    case 'anchors':\n        pass",
        ],
    )
    def test_comparisons(self, line):
        assert {text for _, text in compared_strings(ast.parse(line))} & set(FACTORS)

    def test_names_that_are_only_handed_on(self):
        tree = ast.parse("fit(factor='glnp', methods={'linear': 1})['anchors']")
        assert not list(compared_strings(tree))

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("def f(a, /, b, *, c=1): pass", ["a", "b", "c"]),
            ("def f(self, a, *args, **options): pass", ["a"]),
            ("@classmethod\ndef f(cls): pass", []),
        ],
    )
    def test_parameters(self, text, names):
        (function,) = ast.parse(text).body
        assert parameters(function) == names

    def test_commands(self):
        (command,) = ast.parse("@explained\ndef fit(a, b): pass").body
        assert declares_options(command)


def test_every_module_can_be_imported_on_every_system():
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "campaign" not in path.parts]
    found = set()
    for path in [*files(), *tests]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = {each.name for each in getattr(node, "names", ())}
            names.add(getattr(node, "module", None) or "")
            found |= {(path.name, name) for name in names & OF_ONE_SYSTEM}
    assert found == set()
