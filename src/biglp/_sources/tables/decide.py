"""What becomes of each column: features of some kind, or nothing, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._rows.encoding import some
from biglp._rows.options import ReadOptions
from biglp._sources.tables.kinds.base import Column
from biglp._sources.tables.kinds.date import Date
from biglp._sources.tables.kinds.frequency import Frequency
from biglp._sources.tables.kinds.number import Number
from biglp._sources.tables.kinds.onehot import OneHot
from biglp._sources.tables.kinds.words import Words
from biglp._sources.tables.levels import Levels, Totals, tally
from biglp._sources.tables.look import FirstRows, Look
from biglp._sources.tables.median import Median
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
    looks : dict of str to Look
        What each column holds, with the figures of all rows where these were looked at.
    """

    columns: list[Column] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    looks: dict[str, Look] = field(default_factory=dict)


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
    decision = Decision(looks=dict(looks))
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
    summed = options.missing == "mean"
    totals = {n: Totals(_reader(looks[n]), summed) for n in kept if n not in texts}
    if not summed:
        # A text that is no number counts as missing, and no statistics tell that.
        typed = {n: total for n, total in totals.items() if not looks[n].needs_text}
        known = _known_ranges(files, typed)
        decision.looks |= {n: replace(looks[n], low=r[0], high=r[1]) for n, r in known.items()}
        asked_for = totals if options.missing == "auto" else constant
        wanted = [] if head.complete else [n for n in totals if n in asked_for]
        totals = {n: totals[n] for n in wanted if n in constant or n not in known}
    levels = _look_through(files, texts, totals, decision.looks, options)
    for name in kept:
        if name in constant and (name not in totals or totals[name].constant):
            decision.left_out[name] = _one_value(looks[name])
        elif name in levels:
            _decide_text(decision, looks[name], levels[name], options)
        else:
            mean = totals[name].mean if name in totals else None
            decision.columns.append(_number(decision.looks[name], options, mean))
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


def with_sentences(decision: Decision, options: ReadOptions) -> Decision:
    """Count the words of free text where nothing else of a table can be a feature."""
    looks = decision.looks.values()
    names = [look.name for look in looks if look.free_text and look.name in decision.left_out]
    if decision.columns or options.categorical != "auto" or not names:
        return decision
    left_out = {name: why for name, why in decision.left_out.items() if name not in names}
    return replace(decision, columns=[Words(name) for name in names], left_out=left_out)


def _known_ranges(
    files: Sequence[TableFile], columns: Mapping[str, Totals]
) -> dict[str, tuple[float, float]]:
    """Range of each column of which no value is missing, as far as files know it by themselves."""
    found = {}
    for name, totals in columns.items():
        ends = [file.extremes(name) for file in files]
        if all(each is not None for each in ends):
            values = np.concatenate([totals.column.numbers(each) for each in ends])
            found[name] = (float(values.min()), float(values.max()))
    return found


def _look_through(
    files: Sequence[TableFile],
    texts: Sequence[str],
    totals: dict[str, Totals],
    looks: dict[str, Look],
    options: ReadOptions,
) -> dict[str, Levels]:
    """Look at all rows of some columns, and put the figures of all rows in place of the first's.

    Medians are found of columns that lack values. Columns whose first rows lack none are rarely
    among them, and have a pass of their own then.
    """
    if options.missing == "auto":
        for name, total in totals.items():
            total.middle = Median() if looks[name].missing else None
    levels = tally(files, texts, totals)
    late = [n for n, total in totals.items() if total.missing and total.middle is None]
    if options.missing == "auto" and late:
        again = {name: Totals(totals[name].column, middle=Median()) for name in late}
        tally(files, (), again)
        totals |= again
    for name, total in totals.items():
        found = replace(looks[name], rows=total.count + total.missing, missing=total.missing)
        if total.count:
            middle = None if total.middle is None else total.middle.value
            middle = found.median if middle is None else middle
            found = replace(found, low=total.low, high=total.high, median=middle)
        looks[name] = found
    for name, level in levels.items():
        if not level.too_many:
            rows = level.counts.total() + level.missing
            looks[name] = replace(looks[name], rows=rows, missing=level.missing)
    return levels


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


def _reader(look: Look) -> Number:
    """The column without what becomes of missing values, which is not known yet."""
    if look.content == "time" or look.date_format is not None:
        return Date(look.name, format=look.date_format)
    return Number(look.name, texts=look.written, thousands=look.thousands)


def _number(look: Look, options: ReadOptions, mean: float | None) -> Column:
    filling, indicator = None, False
    if options.missing == "auto":
        filling = 0.0 if look.median is None else look.median
        indicator = look.missing > 0
    elif options.missing == "mean":
        filling = mean if mean is not None else look.median
    return replace(_reader(look), filling=filling, indicator=indicator)


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
