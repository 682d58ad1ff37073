"""What becomes of each column: features of some kind, or nothing, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biglp._core.errors import BadRowsError
from biglp._sources.options import ReadOptions
from biglp._sources.tables.encoding import some
from biglp._sources.tables.kinds.base import Column
from biglp._sources.tables.kinds.date import Date
from biglp._sources.tables.kinds.frequency import Frequency
from biglp._sources.tables.kinds.number import Number
from biglp._sources.tables.kinds.onehot import OneHot
from biglp._sources.tables.kinds.words import Words
from biglp._sources.tables.levels import Levels, tally
from biglp._sources.tables.look import FirstRows, Look
from biglp._sources.tables.table import TableFile

MOST_ONE_HOT = 40
"""Categories up to which ``categorical="auto"`` makes a feature of each."""
SHOWN = 30
"""Of more categories than that, so many of the most frequent have a feature of their own."""
MOST_KEPT = 10_000
"""Categories whose counts are kept in the model, the most frequent."""
MAX_CATEGORIES = 1000
"""Categories up to which ``categorical="onehot"`` makes a feature of each."""


@dataclass
class Decision:
    """What becomes of the columns of a table.

    Attributes
    ----------
    columns : list of Column
        Columns that become features.
    left_out : dict of str to str
        Why the others do not.
    """

    columns: list[Column] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def decide(
    files: Sequence[TableFile],
    names: Sequence[str],
    options: ReadOptions,
    head: FirstRows,
    looks: Mapping[str, Look],
) -> Decision:
    """Decide what becomes of each column.

    Parameters
    ----------
    files : sequence of TableFile
    names : sequence of str
        Columns that may become features.
    options : ReadOptions
    head : FirstRows
    looks : dict of str to Look
        What the first rows of each column hold.
    """
    decision = Decision()
    words: list[Column] = [Words(name) for name in options.text]
    names = [name for name in names if name not in options.text]
    asked = options.columns or ()
    if options.categorical == "auto":
        for name in names:
            reason = _no_feature(looks[name], asked=name in asked)
            if reason is not None:
                decision.left_out[name] = reason
    kept = [name for name in names if name not in decision.left_out]
    texts = [n for n in kept if looks[n].content == "text" and looks[n].date_format is None]
    constant = [n for n in kept if looks[n].constant and n not in texts and n not in asked]
    constant = constant if options.categorical == "auto" else []
    measured = kept if options.missing == "mean" else constant
    totalled = [n for n in measured if n not in texts and not looks[n].needs_text]
    if head.complete and options.missing != "mean":  # the first rows are all: they have told it
        totalled = []
    levels, totals = tally(files, texts, totalled)
    for name in kept:
        if name in constant and (name not in totals or totals[name].constant):
            decision.left_out[name] = _one_value(looks[name])
        elif name in levels:
            _decide_text(decision, looks[name], levels[name], options)
        else:
            mean = totals[name].mean if name in totals else None
            decision.columns.append(_number(looks[name], options, mean))
    if options.missing == "mean":
        empty = [name for name in totals if totals[name].count == 0]
        empty = [name for name in empty if name not in decision.left_out]
        if empty:
            raise BadRowsError(
                f"{files[0].name}: columns {some(empty)} have no value at all, so there is no mean "
                "to fill them with; leave them out (drop=, --drop)."
            )
    decision.columns += words  # sparse columns come last
    return decision


def _no_feature(look: Look, *, asked: bool) -> str | None:
    """Why a column is no feature, as far as its first rows tell."""
    if look.content == "other":
        return None if asked else f"holds {look.type}, neither numbers nor text"
    if look.free_text:
        return f"free text; --text {look.name} (text=[{look.name!r}]) makes features of its words"
    return None if asked else look.identity


def _one_value(look: Look) -> str:
    return "has no values" if look.missing == look.rows else "has one value only"


def _decide_text(decision: Decision, look: Look, found: Levels, options: ReadOptions) -> None:
    name, auto = look.name, options.categorical == "auto"
    asked = name in (options.columns or ())
    if auto and not asked and look.constant and len(found.counts) + bool(found.missing) == 1:
        decision.left_out[name] = _one_value(look)
    elif auto and not asked and found.too_many:
        decision.left_out[name] = "has too many different texts: a name or an ID"
    else:
        decision.columns.append(_categories(name, found, options))


def _number(look: Look, options: ReadOptions, mean: float | None) -> Column:
    filling, indicator = None, False
    if options.missing == "auto":
        filling = 0.0 if look.median is None else look.median
        indicator = look.missing > 0
    elif options.missing == "mean":
        filling = mean if mean is not None else look.median
    if look.content == "time" or look.date_format is not None:
        return Date(look.name, filling, indicator, format=look.date_format)
    return Number(look.name, filling, indicator, texts=look.written)


def _categories(name: str, found: Levels, options: ReadOptions) -> Column:
    filled = options.missing != "error"
    missing = options.missing == "auto" and found.missing > 0
    if options.categorical == "auto" and len(found.counts) > MOST_ONE_HOT:
        ordered = found.ordered()[:MOST_KEPT]
        return Frequency(
            name,
            categories=tuple(level for level, _ in ordered),
            counts=tuple(count for _, count in ordered),
            shown=SHOWN,
            n_levels=len(found.counts),
            filled=filled,
            missing=missing,
        )
    if len(found.counts) > MAX_CATEGORIES:
        raise BadRowsError(
            f"column {name!r} has more than {MAX_CATEGORIES:,} different texts, too many for a "
            "feature each; it may be a name or a number of the row. Leave it out (drop=, --drop), "
            "or use categorical='auto' (--categorical auto)."
        )
    return OneHot(name, tuple(sorted(found.counts)), filled, missing)


def column_facts(looks: Mapping[str, Look], columns: Sequence[Column]) -> dict[str, Any]:
    """Facts of each column that new rows are compared with; small, and ready for JSON."""
    facts: dict[str, Any] = {}
    for column in columns:
        look = looks[column.name]
        known = {"low": look.low, "high": look.high} if look.low is not None else {}
        facts[column.name] = {"missing": round(look.missing / max(look.rows, 1), 6), **known}
    return facts
