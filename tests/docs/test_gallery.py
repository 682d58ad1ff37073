"""The gallery: every example has what a reader expects, and all but the longest run, on less."""

import ast
import re
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
HELPERS = {"customers"}  # makes a table for others, and draws nothing
LONG = {
    *("same_bits", "larger_than_memory"),  # start other programs; engines have tests of their own
    "digits_few_labels",  # forty fits of five methods
}
SMALL = {
    "ROWS": 400, "LABELS": 60, "TEXTS": 60, "PEOPLE": 300, "DRAWS": 1, "ROUNDS": 1,
    "ITERATIONS": 3, "WRONG": 5,
}  # fmt: skip
"""What the sizes of an example become."""
LARGER = {"imbalanced_700k": {"ROWS": 20_000}}  # its smaller class has 2 % of the labels


def smaller(text: str, sizes: dict[str, int]) -> ast.Module:
    tree = ast.parse(text)
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        for name, number in zip(names, values, strict=False):
            small = sizes.get(getattr(name, "id", ""))
            if small and isinstance(number, ast.Constant) and number.value > small:
                number.value = small
    return ast.fix_missing_locations(tree)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_explains_itself_and_draws(path):
    text = path.read_text(encoding="utf-8")
    compile(text, str(path), "exec")
    if path.stem in HELPERS:
        return
    title, line, *_ = ast.get_docstring(ast.parse(text)).splitlines()
    assert re.fullmatch(r"=+", line)
    assert len(line) >= len(title)
    assert "plt.show()" in text
    assert "fetch_" not in text, "examples use data that is there"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "path",
    [path for path in EXAMPLES if path.stem not in HELPERS | LONG],
    ids=lambda path: path.stem,
)
def test_an_example_runs_on_less(path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf()))
    monkeypatch.syspath_prepend(str(path.parent))
    tree = smaller(path.read_text(encoding="utf-8"), SMALL | LARGER.get(path.stem, {}))
    exec(compile(tree, str(path), "exec"), {"__name__": "example"})
    pyplot.close("all")
    assert shown, "it draws nothing"
    assert shown[0].axes
