"""The house in numbers: what a row passes, how deep imports go, how much code there is.

Six yardsticks have a limit, and the exit code is 1 where one is missed: the walks of an array fit
and of a Parquet fit, what is opened, checked and read on the way (all of ``walk.py``), the depth of
imports, the size of the wheel, and the share of imports in tests that reach past a room's door. The
others are printed beside them without a limit, so that nobody stuffs what was shredded.

Run with:  python benchmarks/house.py [--no-walk]
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PACKAGE = "biglp"
BRANCHES = (
    ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.match_case,
    ast.BoolOp,
)  # fmt: skip


@dataclass
class Lines:
    """Lines of some files by what they are, and their functions."""

    code: int = 0
    comments: int = 0
    docstrings: int = 0
    files: dict[str, int] = field(default_factory=dict)
    bodies: list[int] = field(default_factory=list)
    complexities: list[int] = field(default_factory=list)


def module_name(file: Path) -> str:
    """Name of a module by its file."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def docstring_of(node: ast.AST) -> ast.expr | None:
    """Docstring of a module, class or function."""
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
        value = body[0].value
        return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
    return None


def count_lines(files: list[Path]) -> Lines:
    """Count the lines of files, and look at the bodies of their functions."""
    total = Lines()
    for file in files:
        text = file.read_text(encoding="utf-8")
        lines, tree = text.splitlines(), ast.parse(text)
        # A string that stands alone explains something, below a constant as well as in a function.
        strings: set[int] = set()
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                strings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if docstring_of(node) else node.body
                last = body[-1].end_lineno or 0 if body else 0
                total.bodies.append(last - body[0].lineno + 1 if body else 0)
                total.complexities.append(1 + sum(isinstance(x, BRANCHES) for x in ast.walk(node)))
        comments = {
            token.start[0]
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip()[:1] == "#"
        }
        filled = {number for number, line in enumerate(lines, 1) if line.strip()}
        total.files[str(file.relative_to(ROOT))] = len(lines)
        total.docstrings += len(filled & strings)
        total.comments += len(filled & comments - strings)
        total.code += len(filled - strings - comments)
    return total


def imports_of(file: Path, modules: set[str]) -> set[str]:
    """Modules of biglp that a file imports, at the top or in a function."""
    found: set[str] = set()

    def known(name: str) -> None:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        if name:
            found.add(name)

    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                known(f"{node.module}.{alias.name}")
    return found


def import_depth(graph: dict[str, set[str]]) -> tuple[int, list[list[str]]]:
    """Longest chain of imports, where modules that import each other count as one, and these."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circle: dict[str, int] = {}
    circles: list[list[str]] = []

    def visit(name: str) -> None:  # Tarjan's algorithm
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other not in circle:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            members = []
            while not members or members[-1] != name:
                members.append(stack.pop())
                circle[members[-1]] = len(circles)
            circles.append(members)

    sys.setrecursionlimit(10_000)
    for name in sorted(graph):
        if name not in index:
            visit(name)

    @cache
    def depth(number: int) -> int:
        below = {circle[x] for name in circles[number] for x in graph[name]} - {number}
        return 1 + max(map(depth, below), default=0)

    return max(map(depth, range(len(circles)))), [sorted(x) for x in circles if len(x) > 1]


def private_imports(files: list[Path], modules: set[str]) -> tuple[int, int, int]:
    """Imports of tests: of deep private modules, of the doors of rooms, of public names."""
    deep = doors = public = 0
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                # "from biglp._graph import anchors" reaches a module, as its full name would.
                full = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in modules else node.module for name in full]
            else:
                continue
            names = [name for name in names if name.partition(".")[0] == PACKAGE]
            if not names:
                continue
            deepest = max(names, key=lambda name: name.count("."))
            parts = deepest.split(".")[1:]
            private = any(part.startswith("_") for part in parts)
            deep += private and len(parts) > 1
            doors += private and len(parts) == 1
            public += not private
    return deep, doors, public


def used_once(files: list[Path]) -> int:
    """Private functions that are named once beside their definition."""
    defined: set[str] = set()
    named: Counter[str] = Counter()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                defined.add(node.name)
            elif isinstance(node, ast.Name):
                named[node.id] += 1
            elif isinstance(node, ast.Attribute):
                named[node.attr] += 1
    return sum(named[name] == 1 for name in defined)


def main() -> None:
    """Print the yardsticks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--no-walk", action="store_true", help="leave out the two fits")
    options = parser.parse_args()
    files = sorted((SOURCE / PACKAGE).rglob("*.py"))
    tests = sorted((ROOT / "tests").rglob("*.py"))
    modules = {module_name(file): file for file in files}
    graph = defaultdict(set, {n: imports_of(f, {*modules}) - {n} for n, f in modules.items()})
    lines, test_lines = count_lines(files), count_lines(tests)
    depth, circles = import_depth(graph)
    deep, doors, public = private_imports(tests, {*modules})
    bodies = sorted(lines.bodies)
    missed = []

    def show(what: str, value: float, limit: float | None = None) -> None:
        held = limit is None or value <= limit
        beside = "" if limit is None else f"   (limit {limit:,})" + ("" if held else "  MISSED")
        print(
            f"{what:<58}{value:>10,.4g}{beside}"
            if value < 1e4
            else f"{what:<58}{value:>10,.0f}{beside}"
        )
        if not held:
            missed.append(what)

    if not options.no_walk:
        import walk

        for what, value, limit in walk.yardsticks():
            show(what, value, limit)
    show("depth of imports", depth, 25)
    show("Python files in the wheel", len(files), 185)
    show("lines of code in the wheel", lines.code, 26_500)
    show("imports in tests that reach past a door, %", 100 * deep / (deep + doors + public), 10)
    print("\nwithout a limit")
    show("circles of imports", len(circles))
    scripts = [
        f for f in (SOURCE / PACKAGE).rglob("*") if f.suffix in (".js", ".css", ".html", ".j2")
    ]
    show("scripts, styles and templates of the pages", len(scripts))
    total = lines.code + lines.comments + lines.docstrings
    show("comments, % of filled lines", 100 * lines.comments / total)
    show("docstrings, % of filled lines", 100 * lines.docstrings / total)
    show("functions", len(bodies))
    show("body of a function: median", statistics.median(bodies))
    show("body of a function: 99 of 100 are shorter", bodies[int(0.99 * len(bodies))])
    show("bodies over 60 lines", sum(x > 60 for x in bodies))
    show("mean complexity", statistics.mean(lines.complexities))
    show("private functions used once", used_once(files))
    show("median file", statistics.median(lines.files.values()))
    longest = max(lines.files, key=lambda name: lines.files[name])
    show(f"longest file ({longest})", lines.files[longest])
    show("lines of tests", sum(test_lines.files.values()))
    for members in circles:
        print("  circle:", ", ".join(members))
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
