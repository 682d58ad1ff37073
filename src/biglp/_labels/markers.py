"""What people write where a row has no label, and labels that look as if they meant that."""

from __future__ import annotations

from typing import Any

from biglp._core.errors import LabelWarning
from biglp._labels.labels import Labels

_WORDS = """unknown, unk, none, null, nil, nan, na, n/a, n.a., ?, ??, -, --, ., unlabeled,
unlabelled, nolabel, no label, not labeled, not labelled, not available, not applicable, missing,
undefined, unspecified, unassigned, tbd, todo, to do, empty, blank"""
LOOKS_UNLABELLED = frozenset(word.strip() for word in _WORDS.split(","))
"""What people write. A class may be called so, too: the user is asked."""
NEARLY_ALL = 0.95
"""Share of all rows from which on a label is suspected to mean "no label"."""
FEWEST_ROWS = 50
"""Rows below which nearly all of them are too few to suspect anything."""

MOST_SHOWN = 5


def looks_unlabelled(value: Any) -> bool:
    """Whether a class has a name that usually means "no label"."""
    if not isinstance(value, str):
        return False
    plain = value.strip().casefold().strip("<>()[]{}\"'")
    return " ".join(plain.replace("_", " ").split()) in LOOKS_UNLABELLED


def suspicions(labels: Labels, *, names: bool = True) -> list[LabelWarning]:
    """Classes that may stand for "no label", by their names (as asked) and sizes."""
    found = []
    counts = labels.rows_each
    for name, count in zip(labels.classes.tolist(), counts.tolist(), strict=True):
        if names and looks_unlabelled(name):
            found.append(
                LabelWarning(
                    f"{count:,} of {labels.n_rows:,} rows have the label {name!r}, which usually "
                    "means that there is none, and is taken as a class here. If these rows have no "
                    f"label, give --unlabelled {_quoted(name)} (in Python None or -1 for them); if "
                    "it is a class, --unlabelled -1 says so."
                )
            )
    largest = int(counts.argmax())
    share = counts[largest] / labels.n_rows
    name = labels.classes.tolist()[largest]
    if labels.n_rows >= FEWEST_ROWS and share > NEARLY_ALL and not looks_unlabelled(name):
        found.append(
            LabelWarning(
                f"{share:.1%} of all {labels.n_rows:,} rows have the label {name!r}. If it means "
                f"that a row has no label, give --unlabelled {_quoted(name)} (in Python None or "
                "-1 for them)."
            )
        )
    return found + _spellings(labels)


def _spellings(labels: Labels) -> list[LabelWarning]:
    """Classes that may be one, written in several ways."""
    alike: dict[str, list[str]] = {}
    for name in labels.classes.tolist():
        if isinstance(name, str):
            alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    several = [names for names in alike.values() if len(names) > 1]
    if not several:
        return []
    shown = "; ".join(", ".join(map(repr, names)) for names in several[:MOST_SHOWN])
    more = f" and {len(several) - MOST_SHOWN} more" if len(several) > MOST_SHOWN else ""
    return [
        LabelWarning(
            f"classes that differ in capital letters or blanks only are taken as different ones: "
            f"{shown}{more}. If they mean the same, write them alike."
        )
    ]


def nothing_to_label(labels: Labels) -> list[LabelWarning]:
    """Say that every row has a label, where that is so."""
    if len(labels.rows) < labels.n_rows:
        return []
    return [
        LabelWarning(
            f"every one of the {labels.n_rows:,} rows has a label, so there is none to find one "
            "for. If one of the labels means that a row has none, name it with --unlabelled VALUE."
        )
    ]


def _quoted(value: Any) -> str:
    text = str(value)
    return text if text.replace("_", "").replace("-", "").isalnum() else f"{text!r}"
