"""Pages of the site: each is reached from another one, links of the front page lead to an answer,
and figures told in several places are those of the page that programs write."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
COUNTS = ("1 a class", "5 a class", "20 a class", "100 a class")
NAMES = {
    "biglp": "biglp",
    "logistic regression": "logistic regression",
    "random forest": "forest",
    "random forest, 300 trees": "forest",
    "scikit-learn label spreading": "LabelSpreading(knn)",
    'scikit-learn `LabelSpreading(kernel="knn")`': "LabelSpreading(knn)",
}


def test_every_page_is_in_a_list_of_pages():
    """Sphinx builds no site with a page that no list names."""
    lists = [
        each for text in PAGES.values() for each in re.findall(r"```{toctree}(.*?)```", text, re.S)
    ]
    named = {line.strip() for found in lists for line in found.splitlines()}
    assert sorted(set(PAGES) - named - {"index"}) == []


def test_cards_of_the_front_page_lead_to_an_answer():
    cards = re.findall(r"\{grid-item-card\} .*\n:link: (\S+)\n", PAGES["index"])
    assert len(cards) >= 6
    for link in cards:
        page, _, place = link.partition("#")
        text = PAGES[page.removesuffix(".html")]
        titles = re.findall(r"^## (.*)", text, re.M)
        places = {re.sub(r"\W+", "-", title.lower()).strip("-") for title in titles}
        assert not place or place in places, link
        assert f"(docs/{page.removesuffix('.html')}.md)" in (ROOT / "README.md").read_text("utf-8")


def cells(text: str) -> list[list[str]]:
    found = [line for line in text.splitlines() if line.startswith("|")]
    return [
        [cell.replace("**", "").strip() for cell in line.strip("|").split("|")] for line in found
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_front_page_tells_the_accuracy_that_was_measured(page):
    table = cells(PAGES["accuracy"].split("## Labels of each class")[1].split("![")[0])
    places = [table[0].index(count) for count in COUNTS]
    measured = {line[0]: [line[place] for place in places] for line in table}
    told = cells((ROOT / page).read_text(encoding="utf-8"))
    told = {line[0]: line[1:] for line in told if line[0] in NAMES}
    assert len(told) == 4
    assert told == {name: measured[NAMES[name]] for name in told}
