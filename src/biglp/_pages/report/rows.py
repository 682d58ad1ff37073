"""The rows that a report shows: as pictures, as text, or as their most telling values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from biglp._fit.evidence import PARTS, Examples
from biglp._pages.report.content import Content
from biglp._pages.report.pictures import Pictures

TITLES = {
    "typical": ("Typical", "one of each of its clusters"),
    "doubtful": ("Doubtful", "the least sure of the sample"),
    "suspicious": ("Suspicious", "a label that the others contradict"),
}
TOLD = 6
"""Values that are shown of a row."""
TINY = 1e-12


def shown_rows(content: Content, colours: Sequence[str]) -> list[dict[str, Any]]:
    """Cards of each class that is shown."""
    if content.evidence is None:
        return []
    examples, names = content.evidence.examples, list(content.classes)
    pictures = pictures_of(examples)
    chosen = telling(examples)[:TOLD]
    cards: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for place, (part, code) in enumerate(
        zip(examples.parts.tolist(), examples.codes.tolist(), strict=True)
    ):
        other, share = names[examples.others[place]], float(examples.shares[place])
        card: dict[str, Any] = {
            "row": int(examples.rows[place]),
            "note": _note(PARTS[part], share, other),
            "picture": None,
            "pairs": [],
        }
        if pictures is not None:
            card["picture"] = pictures.draw(examples.values[place])
            card["about"] = f"row {card['row']}, {names[code]}"
        if place < len(content.beside):
            card["pairs"] = list(content.beside[place].items())
        elif pictures is None:
            card["pairs"] = _values(examples, place, chosen, content.feature_names)
        cards.setdefault(code, {}).setdefault(part, []).append(card)
    return [
        {
            "name": names[code],
            "colour": colours[code],
            "parts": [
                {"title": TITLES[PARTS[part]][0], "what": TITLES[PARTS[part]][1], "rows": rows}
                for part, rows in sorted(parts.items())
            ],
        }
        for code, parts in sorted(cards.items())
    ]


def pictures_of(examples: Examples) -> Pictures | None:
    """How the rows are pictures; None where they are none."""
    if not len(examples.values) or len(examples.columns):
        return None
    return Pictures.of(examples.values)


def telling(examples: Examples) -> np.ndarray:
    """Features in the order in which typical rows of the classes differ in them."""
    typical = examples.parts == PARTS.index("typical")
    if not typical.any() or not len(examples.values) or len(examples.columns):
        return np.empty(0, dtype=np.int64)
    values, codes = examples.values[typical].astype(np.float64), examples.codes[typical]
    each = [values[codes == code] for code in np.unique(codes)]
    between = np.array([rows.mean(axis=0) for rows in each]).var(axis=0)
    within = np.mean([rows.var(axis=0) for rows in each], axis=0)
    return np.argsort(-between / (within + between.mean() / 100 + TINY), kind="stable")


def _values(
    examples: Examples, place: int, chosen: np.ndarray, names: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Names and values of the most telling features; of a sparse row its largest entries."""
    if not len(examples.values):
        return []
    values = examples.values[place]
    if len(examples.columns):
        at = np.flatnonzero(examples.columns[place] >= 0)[:TOLD]
        features, numbers = examples.columns[place][at], values[at]
    else:
        features, numbers = chosen, values[chosen]
    return [
        (_name(int(feature), names), f"{number:.4g}")
        for feature, number in zip(features, numbers, strict=True)
    ]


def _name(feature: int, names: Sequence[str] | None) -> str:
    return f"feature {feature}" if names is None or feature >= len(names) else str(names[feature])


def _note(part: str, share: float, other: str) -> str:
    """What is said below a row."""
    if part == "suspicious":
        return f"rather {other}; {share:.0%} likely wrong"
    return f"{share:.0%} sure" + (f", else {other}" if part == "doubtful" else "")
