"""Figures that are told in several places are those of the page that programs write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNTS = ("1 a class", "5 a class", "20 a class", "100 a class")
NAMES = {
    "biglp": "biglp",
    "biglp, nothing set": "biglp",
    "logistic regression": "logistic regression",
    "random forest": "forest",
    "random forest, 300 trees": "forest",
    "scikit-learn label spreading": "LabelSpreading(knn)",
    'scikit-learn `LabelSpreading(kernel="knn")`': "LabelSpreading(knn)",
}


def lines(text: str) -> list[list[str]]:
    """Cells of all lines of tables, without the marks of bold type."""
    found = [line for line in text.splitlines() if line.startswith("|")]
    return [
        [cell.replace("**", "").strip() for cell in line.strip("|").split("|")] for line in found
    ]


def measured() -> dict[str, list[str]]:
    """Accuracy of each method by labels a class, as benchmarks/accuracy_page.py writes it."""
    page = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    table = lines(page.split("## Labels of each class")[1].split("![")[0])
    places = [table[0].index(count) for count in COUNTS]
    return {line[0]: [line[place] for place in places] for line in table}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_front_page_tells_the_accuracy_that_was_measured(page):
    told = lines((ROOT / page).read_text(encoding="utf-8"))
    told = {line[0]: line[1:] for line in told if line[0] in NAMES}
    assert len(told) == 4
    assert told == {name: measured()[NAMES[name]] for name in told}


def test_the_short_table_of_accuracy_tells_what_the_long_ones_do():
    page = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    short, _, rest = page.partition("## What was compared")
    table = lines(short)[2:]
    assert len(table) == 7
    for what, own, other, link in table:
        place = re.search(r"#([\w-]+)", link)[1]
        title = next(
            line
            for line in rest.splitlines()
            if re.sub(r"\W+", "-", line.strip("# ").lower()).strip("-") == place
        )
        part = rest.split(f"\n{title}\n")[1].split("\n## ")[0]
        numbers = re.findall(r"\d+(?:\.\d+)?", own) + re.findall(r"\d+\.\d+", other)
        assert [each for each in numbers if each not in part] == [], what
