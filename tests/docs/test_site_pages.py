"""Pages of the site: each is reached from another one."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_is_in_a_list_of_pages():
    """Sphinx builds no site with a page that no list names."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    lists = [
        found
        for text in pages.values()
        for found in re.findall(r"```{toctree}(.*?)```", text, re.S)
    ]
    named = {line.strip() for found in lists for line in found.splitlines()}
    assert sorted(set(pages) - named - {"index"}) == []
