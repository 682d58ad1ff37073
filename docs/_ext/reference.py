"""Write the page of the reference: every public name of every public package that is there."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

PACKAGES = {
    "biglp": "Estimators",
    "biglp.plot": "Plots",
}
INTRODUCTION = """# Reference

Every public name, with an example that the tests run. Everything else begins with an underscore and
may change.
"""


def section(package: str, title: str) -> str:
    """A heading, and a table of the names that leads to a page for each."""
    module = import_module(package)
    names = [name for name in module.__all__ if not name.startswith("__")]
    lines = [f"## {title}", "", "```{eval-rst}", f".. currentmodule:: {package}"]
    for template in ("class", "function"):
        chosen = [
            name
            for name in names
            if inspect.isclass(getattr(module, name)) == (template == "class")
        ]
        if chosen:
            lines += [".. autosummary::", "   :toctree: .", f"   :template: {template}.rst", ""]
            lines += [f"   {name}" for name in chosen] + [""]
    return "\n".join([*lines, "```", ""])


def write(folder: Path) -> None:
    """Write ``index.md`` into a folder; as it is where nothing has changed."""
    parts = [section(name, title) for name, title in PACKAGES.items() if find_spec(name)]
    text = "\n".join([INTRODUCTION, *parts])
    folder.mkdir(exist_ok=True)
    page = folder / "index.md"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
