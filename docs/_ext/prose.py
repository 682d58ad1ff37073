"""Count the words of the pages beside their budget, and look at their sentences.

Run with:  python docs/_ext/prose.py words      (or prose)
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
BUDGET = tomllib.loads((DOCS / "budget.toml").read_text(encoding="utf-8"))
NOT_PROSE = re.compile(r"\s*(?:\||#|:|<|!\[|\.\. )|    ")


def text_of(page: str) -> str:
    """A page without code, equations and addresses; a glossary is text."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    text = text.replace("```{glossary}\n", "\n")
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"^:{3,}.*|^:(?:link|link-type|gutter):.*", "", text, flags=re.M)


def words_of(text: str) -> list[str]:
    """Words; a mark alone is none."""
    return [word for word in text.split() if re.search(r"\w", word)]


def sentences_of(text: str) -> list[str]:
    """Sentences of four words and more, without tables and headings."""
    lines = [line for line in text.splitlines() if not NOT_PROSE.match(line)]
    prose = re.sub(r"\n\s*(?:[-*]|\d+\.) ", "\n\n", "\n".join(["", *lines]))
    found = [
        sentence
        for paragraph in re.split(r"\n\s*\n", prose)
        for sentence in re.split(r"(?<=[.!?:])\**\s+", paragraph)
    ]
    return [sentence for sentence in found if len(words_of(sentence)) > 3]


def words() -> list[str]:
    """Print words beside the budget; return which pages have too many."""
    wrong, total = [], 0
    for page, allowed in {**BUDGET["guides"], **BUDGET["others"]}.items():
        count = len(words_of(text_of(page)))
        total += count
        print(f"{page:20} {count:7,} of {allowed:6,}")
        if count > allowed:
            wrong.append(f"{page} has {count:,} words, {allowed:,} are allowed")
    print(f"{'total':20} {total:7,} of {BUDGET['total']:6,}")
    if total > BUDGET["total"]:
        wrong.append(f"the pages have {total:,} words, {BUDGET['total']:,} are allowed")
    return wrong


def prose() -> list[str]:
    """Print how the sentences of each guide are; return what is wrong with them."""
    rule, wrong = BUDGET["prose"], []
    print(f"{'':20} words a sentence, % long, % with a semicolon")
    for page in BUDGET["guides"]:
        text = text_of(page)
        sentences = sentences_of(text)
        lengths = [len(words_of(sentence)) for sentence in sentences]
        if not lengths:
            continue
        mean = sum(lengths) / len(lengths)
        long = [each for each in sentences if len(words_of(each)) > rule["long"]]
        halved = [each for each in sentences if ";" in each]
        shares = [100 * len(each) / len(lengths) for each in (long, halved)]
        print(f"{page:20} {mean:7.1f} {shares[0]:7.1f} {shares[1]:7.1f}")
        if mean > rule["words"]:
            wrong.append(f"{page}: {mean:.1f} words a sentence")
        if len(long) > 1 and shares[0] > rule["long_share"]:
            wrong += [f"{page}: long: {' '.join(each.split())}" for each in long]
        if len(halved) > 1 and shares[1] > rule["semicolons"]:
            wrong += [f"{page}: semicolon: {' '.join(each.split())}" for each in halved]
        if page == "glossary":  # which names both
            continue
        plain = " ".join(re.sub(r"`[^`]*`", "", text).split())
        for own, instead in rule["instead"].items():
            for each in re.finditer(rf"\b(?:{own})\b", plain, re.I):
                wrong.append(f"{page}: {each[0]!r}: write {instead!r}")
    return wrong


if __name__ == "__main__":
    found = {"words": words, "prose": prose}[sys.argv[1]]()
    sys.exit("\n".join(found) or None)
