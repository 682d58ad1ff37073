"""Equations as MathML, which browsers draw by themselves: no script, nothing to fetch."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def inline(translator: Any, node: nodes.math) -> None:
    """An equation within a line."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """An equation on a line of its own, with its number where it has a label."""
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    equation = convert(node.astext(), display="block")
    translator.body.append(f'<div class="math">{equation}{number}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
