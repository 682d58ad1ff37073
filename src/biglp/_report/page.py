"""From facts to HTML: one template for a file and, shortened, for a notebook.

Jinja2 escapes all that it writes; names of classes, IDs and columns come from files of unknown
origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from biglp._core.memory import format_bytes
from biglp._report import charts, words
from biglp._report.charts import OTHERS, class_colours, draw_map
from biglp._report.rows import Content, shown_rows

MOST_CLASSES, MOST_SHORT = 100, 12
"""Classes in the table of a file and of a notebook, the largest where there are more."""
MOST_NOTICES = 20
LONGEST = 300
"""Letters of a fact that are shown."""


def report_html(content: Content) -> str:
    """A whole page."""
    return _render("report.html.j2", _view(content))


def short_html(content: Content) -> str:
    """The first part of it, for the cell of a notebook."""
    return _render("short.html.j2", _view(content, short=True))


def _render(template: str, view: Mapping[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # takes a while to load

    environment = Environment(
        loader=PackageLoader("biglp._report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["percent"] = percent
    return environment.get_template(template).render(view)


def percent(share: float | None, digits: int = 0) -> str:
    """A share in percent; a dash where it is not known."""
    return "–" if share is None else f"{share:.{digits}%}"


def _view(content: Content, *, short: bool = False) -> dict[str, Any]:
    """All that the templates show."""
    facts, settings = content.facts, content.settings
    memory = facts.get("peak_memory")
    figures = [
        (facts.get("rows", settings.get("rows")), "rows", "{:,}"),
        (facts.get("features"), "features", "{:,}"),
        (facts.get("labelled_rows", settings.get("labelled_rows")), "labels given", "{:,}"),
        (len(content.classes) or None, "classes", "{:,}"),
        (facts.get("seconds"), "seconds", "{:,.3g}"),
        (format_bytes(memory) if memory else None, "of memory", "{}"),
    ]
    sizes = facts.get("found") or {}
    colours = class_colours(np.array([sizes.get(name, 0) for name in content.classes]))
    estimate = settings.get("estimated_accuracy")
    view: dict[str, Any] = {
        "title": content.title,
        "figures": [
            {"value": text.format(value), "what": what}
            for value, what, text in figures
            if value is not None
        ],
        "estimate": estimate,
        "interval": estimate and charts.interval(estimate),
        "about_estimate": words.about_estimate(settings),
        "story": words.story(settings),
        "classes": _classes(content, colours, MOST_SHORT if short else MOST_CLASSES),
        "n_classes": len(content.classes),
        "short": short,
    }
    if short:
        return view
    evidence, groups = content.evidence, settings.get("reliability")
    view |= dict.fromkeys(("confidence", "reliability", "values", "map", "others"))
    if evidence is not None and len(evidence.confidence):
        view["confidence"] = charts.histogram(evidence.confidence)
        view["about_confidence"] = words.about_confidence(evidence.confidence)
        view["map"] = draw_map(evidence, list(content.classes), colours)
        view["others"] = OTHERS if OTHERS in colours else None
    if content.values is not None:
        values = np.asarray(content.values, dtype=np.float64)
        view["values"] = charts.histogram(values, float(values.min()), float(values.max()))
    if groups:
        view["reliability"] = charts.reliability(groups)
        view["about_reliability"] = words.about_reliability(groups)
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for key, value in settings.items()
    }
    return view | {
        "members": charts.members(settings),
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


def _classes(content: Content, colours: list[str], most: int) -> dict[str, Any]:
    """Lines of the table of classes, and what is left out of it."""
    given, found = content.facts.get("given") or {}, content.facts.get("found") or {}
    recall = (content.settings.get("estimated_accuracy") or {}).get("recall", {})
    rows = sum(found.values()) or 1
    codes = list(range(len(content.classes)))
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
    return {
        "lines": lines,
        "largest": max((line["share"] for line in lines), default=0.0) or 1.0,
        "more": max(len(codes) - most, 0),
        "has_given": bool(given),
        "has_found": bool(found),
        "has_recall": bool(recall),
    }
