"""What a new user asks first is answered one click from the front page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ANSWERS = {
    "Install it": ("ten-minutes.html#install", "pip install"),
    "Label my CSV": ("ten-minutes.html#your-own-file", "biglp fit customers.csv --label-column"),
    "I have no labels yet": ("ten-minutes.html#from-zero-labels", "biglp label"),
    "Why did it call my rows so?": ("why.html", 'report_["members"]'),
    "Run it on two machines": ("clusters.html#two-machines", "mpiexec -f hosts -n 2"),
    "Which method should I use?": ("which-method.html", "| situation | use | measured reason |"),
}
"""Where each card leads, and what the reader must find there."""


def cards() -> dict[str, str]:
    """Titles and links of the front page's cards."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    found = re.findall(r"\{grid-item-card\} (.*)\n:link: (\S+)\n:link-type: (\w+)", text)
    return {title: link if kind == "url" else f"{link}.html" for title, link, kind in found}


def part_of(page: str, place: str) -> str:
    """A page, or the part of it that a link leads to."""
    text = (DOCS / page).with_suffix(".md").read_text(encoding="utf-8")
    if not place:
        return text
    parts = {
        re.sub(r"\W+", "-", part.split("\n")[0].lower()).strip("-"): part
        for part in re.split(r"^## ", text, flags=re.M)
    }
    return parts[place]


def test_the_front_page_asks_these_questions():
    assert cards() == {title: link for title, (link, _) in ANSWERS.items()}


@pytest.mark.parametrize("title", ANSWERS)
def test_a_card_leads_to_its_answer(title):
    link, answer = ANSWERS[title]
    page, _, place = link.partition("#")
    assert answer in part_of(page, place)


def test_the_readme_names_the_same_pages():
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    for link, _ in ANSWERS.values():
        page = link.partition("#")[0].removesuffix(".html")
        assert f"(docs/{page}.md)" in text
