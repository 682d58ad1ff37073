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
from biglp._fit.report import HELPED
from biglp._report.charts import (
    OTHERS,
    Pictures,
    class_colours,
    draw_map,
    histogram,
    members,
    reliability,
)

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


# --------------------------------------------------------------------------------------------------
# What the page says in sentences.


GRAPHS = {
    "anchors": "{landmarks:,} landmarks stand for the rows; each row is tied to its nearest "
    "{nearest}, and labels spread over these ties",
    "nystrom": "{landmarks:,} landmarks stand for the rows; how similar two rows are is told by "
    "how similar each is to the landmarks (Nyström), and labels spread over that",
    "linear": "rows are tied by their inner products, and labels spread over these ties",
    "precomputed": "labels spread over the graph that was given, of {ties:,} ties",
}
LEARNT_GRAPH = (
    "the ties between rows were learnt from the data ({factor}, rank {rank:,}), and labels spread "
    "over them"
)
SCALINGS = {
    "none": "Features were taken as they are",
    "standard": "Features were given mean 0 and spread 1",
    "minmax": "Features were brought to the range from 0 to 1",
    "log": "Features were put on a logarithmic scale",
    "unit": "Rows were given length 1",
    "text": "Words were weighed by how rare they are",
    "table": "Each column was scaled by its kind",
}
USUAL_ERRORS = 2.0
"""Standard errors within which a difference may be chance."""


def story(settings: Mapping[str, Any]) -> list[str]:
    """Say what was done and chosen."""
    sentences = []
    if "scaling" in settings:
        scaled = SCALINGS.get(settings["scaling"], f"Features were scaled ({settings['scaling']})")
        if "directions" in settings:
            scaled += f", and rows projected on {settings['directions']:,} leading directions"
        sentences.append(f"{scaled}.")
    if "factor" in settings:
        words = GRAPHS.get(settings["factor"], LEARNT_GRAPH).format(**settings)
        sentences.append(f"{words[0].upper()}{words[1:]}.")
    committee, measured = "members" in settings, "held_out_error" in settings
    if committee:
        words = "Several methods answered together, weighted by how well they find labels held out"
        if settings.get("graph_share") is not None:
            words += f"; the graph carries {settings['graph_share']:.0%} of the weight"
        sentences.append(f"{words}.")
    if committee and not measured:
        share, alone = settings.get("held_out_accuracy"), settings.get("supervised_accuracy")
        if share is None:
            words = "There are too few labels to hold some out, so that weights are the usual ones"
        else:
            words = f"{share:.0%} of {settings['held_out_labels']:,} held-out labels were found"
            if alone is not None:
                helped = HELPED[settings.get("unlabelled_rows_helped")]
                words += f", {alone:.0%} without the graph: {helped}"
        sentences.append(f"{words}.")
    if settings.get("alpha") is not None and not committee:
        sentences.append(
            f"A row takes {settings['alpha']:.0%} of its score from its neighbours (alpha "
            f"{settings['alpha']:g})."
        )
    if settings.get("leave_one_out_accuracy") is not None:
        sentences.append(
            f"{settings['leave_one_out_accuracy']:.0%} of the labels were found when each was "
            "left out."
        )
    if named := settings.get("rows_labelled_by_names"):
        sentences.append(
            f"The names of the classes gave {named:,} rows their first labels, which count less "
            "the more labels there are."
        )
    if measured:
        errors = ", ".join(f"{error:.3g}" for error in settings["held_out_error"])
        sentences.append(
            f"The error on {settings['held_out_labels']:,} labels that were held out is {errors}."
        )
    return sentences


def about_estimate(settings: Mapping[str, Any]) -> list[str]:
    """Say how many rows are right, and how far that can be trusted."""
    estimate = settings.get("estimated_accuracy")
    if estimate is None and settings.get("labelled_rows") == 0:
        return [
            "How many rows are right cannot be told from names alone: label some twenty rows that "
            "biglp suggest names, and the next fit says it."
        ]
    if estimate is None:
        return []
    following = estimate["next_labels"]
    gains = (following["gain"], *following["range"])
    likely, least, most = (f"{round(100 * share, 1):g}" for share in gains)
    sentences = [
        f"Always saying {estimate['largest_class']} would be right for "
        f"{estimate['base_rate']:.0%} of the rows. {following['labels']} more labels would add "
        f"about {likely} {'point' if likely == '1' else 'points'} ({least} to {most})."
    ]
    if settings.get("labels_cover_rows") is False:
        sentences.append(
            "The labels come from one region of the rows: nothing is known about the others, and "
            "the estimate is not to be trusted."
        )
    elif settings.get("trustworthy") is False:
        sentences.append(
            "The interval is wide: labels are too few to know the accuracy to about ten points."
        )
    return sentences


def about_confidence(confidence: np.ndarray) -> str:
    """Say how sure the model is of a sample of unlabelled rows."""
    sure, unsure = (confidence >= 0.9).mean(), (confidence < 0.5).mean()
    return (
        f"Of {len(confidence):,} unlabelled rows drawn at random {sure:.0%} have a class that is "
        f"at least 90% likely, and {unsure:.0%} one that is less than 50% likely; the mean is "
        f"{confidence.mean():.0%}."
    )


def about_reliability(groups: list[dict[str, Any]]) -> str:
    """Say whether confidence is what it says."""
    counts = np.array([group["labels"] for group in groups])
    total = int(counts.sum())
    sure = float(counts @ [group["confidence"] for group in groups]) / total
    right = float(counts @ [group["right"] for group in groups]) / total
    spread = np.sqrt(max(sure * (1.0 - sure), 0.25 / total) / total)
    if abs(right - sure) <= USUAL_ERRORS * spread:
        verdict = "as sure as it should be, as far as so many labels tell"
    else:
        verdict = "less sure than it could be" if right > sure else "surer than it should be"
    return (
        f"On {total:,} labels that were held out the model was {sure:.0%} sure on average, and "
        f"{right:.0%} were right: it is {verdict}."
    )
