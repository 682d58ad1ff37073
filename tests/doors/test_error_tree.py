"""The errors: one tree, the one that the module's text draws."""

import re

import pytest

from biglp._core import errors

LINE = r"    [├└│ ─]*(\w+)(?: +\((\w+)\))?"


def drawn():
    """Name, parent and built-in base of each class in the tree that the module's text draws."""
    found, parents = [], []
    for match in filter(None, (re.match(LINE, line) for line in errors.__doc__.splitlines())):
        depth = match.start(1) // 4 - 1
        parents[depth:] = [match[1]]
        found.append((match[1], parents[depth - 1] if depth else None, match[2]))
    return found


@pytest.mark.parametrize(("name", "parent", "builtin"), drawn())
def test_each_class_stands_where_the_tree_draws_it(name, parent, builtin):
    kind = getattr(errors, name)
    bases = {base.__name__ for base in kind.__bases__} - {"ConvergenceWarning"}
    expected = {parent, builtin} - {None} or {"Exception"}
    assert bases == expected


def test_the_tree_leaves_no_class_out():
    errors.StoppedShortWarning  # noqa: B018  made when it is first asked for
    defined = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    assert {name for name, _, _ in drawn()} == defined
