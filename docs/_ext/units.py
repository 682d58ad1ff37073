"""A number and its unit stay on one line, in tables on a phone too: "35 s", "88.2 %", "173 MB"."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

UNITS = "%|s|ms|μs|µs|ns|kB|KB|MB|GB|TB|MiB|GiB|M|GHz|GB/s|min"
BETWEEN = re.compile(rf"(?<=\d) (?=(?:{UNITS})(?!\w))")
AS_THEY_ARE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def keep_together(app: Any, tree: nodes.document, page: str) -> None:
    """Put a space that does not break between them, but not in code."""
    for text in list(tree.findall(nodes.Text)):
        part, inside = text.parent, False
        while part is not None and not inside:
            inside, part = isinstance(part, AS_THEY_ARE), part.parent
        if not inside and BETWEEN.search(text):
            text.parent.replace(text, nodes.Text(BETWEEN.sub("\u00a0", text)))


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("doctree-resolved", keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
