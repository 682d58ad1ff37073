"""The page that shows a fit: one template for a file and, shortened, for a notebook.

Jinja2 escapes all that it writes; names of classes, IDs and columns come from files of unknown
origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._core.memory import format_bytes
from biglp._fit.evidence import PARTS, Examples, ReportSample
from biglp._report.charts import (
    OTHERS,
    Pictures,
    class_colours,
    draw_map,
    histogram,
    members,
    reliability,
)
from biglp._report.words import about_confidence, about_estimate, about_reliability, story

MOST_CLASSES, MOST_SHORT = 100, 12
"""Classes in the table of a file and of a notebook, the largest where there are more."""
MOST_NOTICES = 20
LONGEST = 300
"""Letters of a fact that are shown."""
TITLES = {
    "typical": ("Typical", "one of each of its clusters"),
    "doubtful": ("Doubtful", "the least sure of the sample"),
    "suspicious": ("Suspicious", "a label that the others contradict"),
}
TOLD = 6
"""Values that are shown of a row."""
TINY = 1e-12


@dataclass(frozen=True)
class Step:
    """A way to go on: what for, and what to type."""

    why: str
    command: str


@dataclass(frozen=True)
class Content:
    """Facts behind a report, as in ``summary.json``; what is not there is not shown."""

    title: str
    facts: Mapping[str, Any]
    classes: Sequence[str] = ()  # in the order of their codes; none for measured targets
    evidence: ReportSample | None = None
    beside: Sequence[Mapping[str, str]] = ()  # of each example its ID, text and columns
    feature_names: Sequence[str] | None = None
    going_on: Sequence[Step] = ()
    missing: Sequence[str] = ()  # sentences on what is not shown, and why
    values: Any = None  # answers of a regression


def report_html(content: Content) -> str:
    """A whole page."""
    return _html(content, short=False)


def short_html(content: Content) -> str:
    """The first part of it, for the cell of a notebook."""
    return _html(content, short=True)


def _html(content: Content, *, short: bool) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # takes a while to load

    facts = content.facts
    settings: Mapping[str, Any] = facts.get("settings", {})
    given, found = facts.get("given") or {}, facts.get("found") or {}
    memory, estimate = facts.get("peak_memory"), settings.get("estimated_accuracy") or {}
    figures = [
        (facts.get("rows", settings.get("rows")), "rows", "{:,}"),
        (facts.get("features"), "features", "{:,}"),
        (facts.get("labelled_rows", settings.get("labelled_rows")), "labels given", "{:,}"),
        (len(content.classes) or None, "classes", "{:,}"),
        (facts.get("seconds"), "seconds", "{:,.3g}"),
        (format_bytes(memory) if memory else None, "of memory", "{}"),
    ]

    # Lines of the table of classes, and what is left out of it.
    colours = class_colours(np.array([found.get(name, 0) for name in content.classes]))
    recall, rows = estimate.get("recall", {}), sum(found.values()) or 1
    codes, most = list(range(len(content.classes))), MOST_SHORT if short else MOST_CLASSES
    if len(codes) > most:
        codes.sort(key=lambda code: -found.get(content.classes[code], 0))
    lines = [
        {
            "name": name,
            "colour": colours[code],
            "given": given.get(name),
            "found": found.get(name),
            "share": found.get(name, 0) / rows,
            "recall": recall.get(name),
        }
        for code in codes[:most]
        for name in [content.classes[code]]
    ]
    view: dict[str, Any] = {
        "title": content.title,
        "figures": [
            {"value": text.format(value), "what": what}
            for value, what, text in figures
            if value is not None
        ],
        "estimate": estimate,
        "about_estimate": about_estimate(settings),
        "story": story(settings),
        "classes": {
            "lines": lines,
            "largest": max((line["share"] for line in lines), default=0.0) or 1.0,
            "more": max(len(codes) - most, 0),
            "has_given": bool(given),
            "has_found": bool(found),
            "has_recall": bool(recall),
        },
        "n_classes": len(content.classes),
    }
    if estimate:  # places, in percent of a line
        low, high = estimate["interval"]
        shares = {"low": low, "width": high - low, "at": estimate["accuracy"]}
        shares["base"] = estimate["base_rate"]
        view["interval"] = {name: round(100 * share, 1) for name, share in shares.items()}
    if not short:
        evidence, groups = content.evidence, settings.get("reliability")
        view |= dict.fromkeys(("confidence", "reliability", "values", "map", "others"))
        if evidence is not None and len(evidence.confidence):
            view["confidence"] = histogram(evidence.confidence)
            view["about_confidence"] = about_confidence(evidence.confidence)
            view["others"] = OTHERS if OTHERS in colours else None
            if len(evidence.places):
                view["map"] = draw_map(
                    evidence.places,
                    evidence.codes,
                    evidence.labelled_places,
                    evidence.labelled_codes,
                    content.classes,
                    colours,
                )
        if content.values is not None:
            values = np.asarray(content.values, dtype=np.float64)
            view["values"] = histogram(values, float(values.min()), float(values.max()))
        if groups:
            view["reliability"] = reliability(groups)
            view["about_reliability"] = about_reliability(groups)
        texts = {
            key: value
            if isinstance(value, str)
            else json.dumps(value, ensure_ascii=False, default=str)
            for key, value in settings.items()
        }
        view |= {
            "members": members(settings),
            "shown": shown_rows(content, colours),
            "warnings": list(facts.get("warnings") or ())[:MOST_NOTICES],
            "told": list(facts.get("told") or ())[:MOST_NOTICES],
            "going_on": content.going_on,
            "missing": content.missing,
            "command": facts.get("command"),
            "steps": facts.get("steps") or [],
            "versions": facts.get("versions") or {},
            "settings": {
                key: text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
                for key, text in texts.items()
            },
        }

    environment = Environment(
        loader=PackageLoader("biglp._report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # A share in percent; a dash where it is not known.
    environment.filters["percent"] = lambda share, digits=0: (
        "–" if share is None else f"{share:.{digits}%}"
    )
    return environment.get_template("short.html.j2" if short else "report.html.j2").render(view)


def shown_rows(content: Content, colours: Sequence[str]) -> list[dict[str, Any]]:
    """Cards of each class that is shown."""
    if content.evidence is None:
        return []
    examples, names = content.evidence.examples, list(content.classes)
    pictures, features = pictures_of(examples), content.feature_names
    chosen = telling(examples)[:TOLD]
    cards: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for index, (part, code) in enumerate(
        zip(examples.parts.tolist(), examples.codes.tolist(), strict=True)
    ):
        other, share = names[examples.others[index]], float(examples.shares[index])
        if PARTS[part] == "suspicious":
            note = f"rather {other}; {share:.0%} likely wrong"
        else:
            note = f"{share:.0%} sure" + (f", else {other}" if PARTS[part] == "doubtful" else "")
        row = int(examples.rows[index])
        card: dict[str, Any] = {"row": row, "note": note, "picture": None, "pairs": []}
        if pictures is not None:
            card["picture"] = pictures.draw(examples.values[index])
            card["about"] = f"row {row}, {names[code]}"
        if index < len(content.beside):
            card["pairs"] = list(content.beside[index].items())
        elif pictures is None and len(examples.values):
            values, columns = examples.values[index], chosen
            if len(examples.columns):  # a sparse row: its largest entries
                known = np.flatnonzero(examples.columns[index] >= 0)[:TOLD]
                values, columns = values[known], examples.columns[index][known]
            else:
                values = values[chosen]
            card["pairs"] = [
                (
                    f"feature {column}"
                    if features is None or column >= len(features)
                    else str(features[column]),
                    f"{value:.4g}",
                )
                for column, value in zip(columns.tolist(), values, strict=True)
            ]
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


def telling(examples: Examples) -> np.ndarray:
    """Features in the order in which typical rows of the classes differ in them."""
    typical = examples.parts == PARTS.index("typical")
    if not typical.any() or not len(examples.values) or len(examples.columns):
        return np.empty(0, dtype=np.int64)
    values, codes = examples.values[typical].astype(np.float64), examples.codes[typical]
    classes = [values[codes == code] for code in np.unique(codes)]
    between = np.array([rows.mean(axis=0) for rows in classes]).var(axis=0)
    within = np.mean([rows.var(axis=0) for rows in classes], axis=0)
    return np.argsort(-between / (within + between.mean() / 100 + TINY), kind="stable")


def pictures_of(examples: Examples) -> Pictures | None:
    """How the rows are pictures; None where they are none."""
    if not len(examples.values) or len(examples.columns):
        return None
    return Pictures.from_rows(examples.values)
