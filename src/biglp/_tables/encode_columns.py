"""Arrow columns turned into numbers, as an encoding says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows.encoding import Encoding, some
from biglp._rows.options import ReadOptions
from biglp._tables.detect_kinds import ColumnSummary, FirstRows, first_rows
from biglp._tables.kinds import (
    Column,
    Date,
    Embedding,
    Frequency,
    MissingValues,
    Number,
    OneHot,
    Words,
    WrongRowsError,
    content_of,
    length_of,
    number_type,
    numpy_type,
    text,
)
from biglp._tables.table import TableFile, stream

# --------------------------------------------------------------------------------------------------
# The median of numbers that come a few at a time, in bounded memory.
#
# Numbers are counted by their leading bits: all of them at first, one fewer each time there are
# more than :data:`MOST` different ones. How many bits are left at the end depends on the numbers
# alone, so that any order and any cut of the same numbers gives the same median.


MOST = 1 << 16
"""Different numbers up to which the median is exact; of more it has some five digits."""
WAITING = 1 << 18
"""Numbers that are counted at once, as each time all that were counted before are sorted again."""
_MAGNITUDE = np.int64((1 << 63) - 1)


class Median:
    """Counts numbers, and tells their median."""

    def __init__(self) -> None:
        self._keys = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        self._shift = 0
        self._waiting: list[np.ndarray] = []
        self._n_waiting = 0

    def add(self, values: np.ndarray) -> None:
        """Count float64 numbers, none of them missing."""
        self._waiting.append(_ordered(values))
        self._n_waiting += len(values)
        if self._n_waiting >= WAITING:
            self._count()

    @property
    def value(self) -> float | None:
        """The median, or the mean of the two in the middle; None where there are no numbers."""
        self._count()
        if not len(self._keys):
            return None
        ends = np.cumsum(self._counts)
        total = int(ends[-1])
        places = np.searchsorted(ends, [(total - 1) // 2, total // 2], side="right")
        keys = self._keys[places] << self._shift
        if self._shift:
            keys += 1 << (self._shift - 1)  # the middle of the numbers that share these bits
        low, high = _numbers(keys)
        return float(low if low == high else (low + high) / 2)

    def _count(self) -> None:
        keys = np.concatenate([self._keys, *(new >> self._shift for new in self._waiting)])
        counts = np.ones(len(keys), dtype=np.int64)
        counts[: len(self._counts)] = self._counts
        self._waiting, self._n_waiting = [], 0
        order = np.argsort(keys, kind="stable")
        self._keys, self._counts = _merged(keys[order], counts[order])
        while len(self._keys) > MOST:
            self._shift += 1
            self._keys, self._counts = _merged(self._keys >> 1, self._counts)


def _merged(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal ones among sorted keys as one."""
    if not len(keys):
        return keys, counts
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return keys[first], np.add.reduceat(counts, first)


def _ordered(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of float64 numbers."""
    bits = (values + 0.0).view(np.int64)  # −0 is 0
    return np.where(bits < 0, bits ^ _MAGNITUDE, bits)


def _numbers(keys: np.ndarray) -> np.ndarray:
    """The float64 numbers of whole numbers."""
    return np.where(keys < 0, keys ^ _MAGNITUDE, keys).view(np.float64)


# --------------------------------------------------------------------------------------------------
# What only a pass over all rows can tell: categories, means, medians, missing values.


MOST_LEVELS = 1_000_000
"""Different texts that are counted; from then on a column is taken for one of names or IDs."""


@dataclass
class Levels:
    """Categories of one column.

    Attributes
    ----------
    counts : Counter
        Rows of each category.
    missing : int
        Rows without one.
    """

    counts: Counter[str] = field(default_factory=Counter)
    missing: int = 0

    @property
    def too_many(self) -> bool:
        """Whether counting was given up."""
        return len(self.counts) > MOST_LEVELS

    def add(self, values: Any) -> None:
        """Count the texts of some rows."""
        self.missing += int(values.null_count)
        if self.too_many:
            return
        found = pc.value_counts(text(values).drop_null())
        names, counts = found.field("values").to_pylist(), found.field("counts").to_pylist()
        self.counts.update(dict(zip(names, counts, strict=True)))

    def ordered(self) -> list[tuple[str, int]]:
        """Categories with their counts, the most frequent first, ties by name."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass
class Totals:
    """Sum, range and missing values of one column of numbers or moments.

    Attributes
    ----------
    column : Number
        Reads the numbers.
    summed : bool
        Whether the mean is asked for.
    middle : Median or None
        Where the median is asked for.
    """

    column: Number
    summed: bool = False
    middle: Median | None = None
    sum: float = 0.0
    count: int = 0
    missing: int = 0
    low: float = np.inf
    high: float = -np.inf

    @property
    def mean(self) -> float:
        """Mean of the numbers that are there."""
        return self.sum / max(self.count, 1)

    @property
    def constant(self) -> bool:
        """Whether there is one value, in every row, or none at all."""
        return self.count == 0 or (self.low == self.high and self.missing == 0)

    def add(self, values: Any) -> None:
        """Add the numbers or moments of some rows."""
        try:
            there = self.column.numbers(values)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {self.column.name!r} must hold {self.column.expects}, as its first rows "
                f"do: {error}. Repair that row, or leave the column out (drop=, --drop)."
            ) from error
        low, high = there.min(), there.max()
        if np.isnan(low):  # the least is NaN where any number is
            given = there[~np.isnan(there)]
            self.missing += len(there) - len(given)
            if not len(given):
                return
            there, low, high = given, given.min(), given.max()
        self.count += len(there)
        self.low, self.high = min(self.low, float(low)), max(self.high, float(high))
        if self.summed:
            with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are refused later
                self.sum += float(there.sum(dtype=np.float64))
        if self.middle is not None:
            self.middle.add(there.astype(np.float64, copy=False))


def tally(
    files: Sequence[TableFile], texts: Sequence[str], sums: Mapping[str, Totals]
) -> dict[str, Levels]:
    """Count categories and add numbers, in one pass over the columns that need it.

    Parameters
    ----------
    files : sequence of TableFile
    texts : sequence of str
        Columns whose categories are counted.
    sums : dict of str to Totals
        Columns whose numbers are added, to these totals.
    """
    levels = {column: Levels() for column in texts}
    wanted = [*texts, *sums]
    for batch in stream(files, wanted) if wanted else ():
        for column in texts:
            levels[column].add(batch.column(column))
        for column, total in sums.items():
            total.add(batch.column(column))
    return levels


# --------------------------------------------------------------------------------------------------
# What becomes of each column: features of some kind, or nothing, with the reason.


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
    looks : dict of str to ColumnSummary
        What each column holds, with the figures of all rows where these were looked at.
    """

    columns: list[Column] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    looks: dict[str, ColumnSummary] = field(default_factory=dict)


def decide(
    files: Sequence[TableFile],
    names: Sequence[str],
    options: ReadOptions,
    head: FirstRows,
    looks: Mapping[str, ColumnSummary],
) -> Decision:
    """Decide what becomes of each column.

    Parameters
    ----------
    files : sequence of TableFile
    names : sequence of str
        Columns that may become features.
    options : ReadOptions
    head : FirstRows
    looks : dict of str to ColumnSummary
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
    looks: dict[str, ColumnSummary],
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


def _no_feature(look: ColumnSummary, *, asked: bool) -> str | None:
    """Why a column is no feature, as far as its first rows tell."""
    if look.content == "other":
        return None if asked else f"holds {look.type}, neither numbers nor text"
    if look.free_text:
        return f"free text; --text {look.name} (text=[{look.name!r}]) makes features of its words"
    return None if asked else look.identity


def _one_value(look: ColumnSummary) -> str:
    return "has no values" if look.missing == look.rows else "has one value only"


def _decide_text(
    decision: Decision, look: ColumnSummary, found: Levels, options: ReadOptions
) -> None:
    name, auto = look.name, options.categorical == "auto"
    asked = name in (options.columns or ())
    if auto and not asked and look.constant and len(found.counts) + bool(found.missing) == 1:
        decision.left_out[name] = _one_value(look)
    elif auto and not asked and found.too_many:
        decision.left_out[name] = "has too many different texts: a name or an ID"
    else:
        decision.columns.append(_categories(name, found, options))


def _reader(look: ColumnSummary) -> Number:
    """The column without what becomes of missing values, which is not known yet."""
    if look.content == "time" or look.date_format is not None:
        return Date(look.name, format=look.date_format)
    return Number(look.name, texts=look.written, thousands=look.thousands)


def _number(look: ColumnSummary, options: ReadOptions, mean: float | None) -> Column:
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


def column_facts(looks: Mapping[str, ColumnSummary], columns: Sequence[Column]) -> dict[str, Any]:
    """Facts of each column that new rows are compared with; small, and ready for JSON."""
    facts: dict[str, Any] = {}
    for column in columns:
        look = looks[column.name]
        known = {"low": look.low, "high": look.high} if look.low is not None else {}
        facts[column.name] = {"missing": round(look.missing / max(look.rows, 1), 6), **known}
    return facts


# --------------------------------------------------------------------------------------------------
# All that is wrong with a table, in one message, with the options that would work.


MOST_NAMED = 8


class NoFeaturesError(BadRowsError):
    """A table of which no column is a feature, though it can be read.

    Attributes
    ----------
    left_out : dict of str to str
        Why each column is none.
    missing : dict of str to int
        Missing values of each column in the first rows.
    looked_at : int
        How many rows these are.
    """

    left_out: Mapping[str, str]
    missing: Mapping[str, int]
    looked_at: int

    @classmethod
    def of(
        cls, file: TableFile, looks: Mapping[str, ColumnSummary], left_out: Mapping[str, str]
    ) -> NoFeaturesError:
        """Give the reasons."""
        reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        error = cls(
            f"{file.name} has no column that can be a feature: {reasons}. Name those that are "
            "features all the same with columns= (--columns)."
        )
        error.left_out = left_out
        error.missing = {name: look.missing for name, look in looks.items() if look.missing}
        error.looked_at = max((look.rows for look in looks.values()), default=0)
        return error


def refuse(file: TableFile, looks: Mapping[str, ColumnSummary], options: ReadOptions) -> None:
    """Raise one error that names every column that cannot be used as the options say.

    Parameters
    ----------
    file : TableFile
        The first file of the table.
    looks : dict of str to ColumnSummary
        What the first rows of each column hold.
    options : ReadOptions
    """
    asked = options.columns or ()
    looks = {name: look for name, look in looks.items() if name not in options.text}
    texts = [look for look in looks.values() if look.content == "text" or look.written]
    wanted = options.categorical == "auto"
    found: list[str] = []
    advice: dict[str, str] = {}
    if options.categorical == "error" and texts:
        shown = _some([f"{t.name!r} ({t.type}{file.text_example(t.name)})" for t in texts])
        # Categories may stand for numbers, in pandas and Arrow alike.
        coded = any(str(look.type).startswith("dictionary") for look in texts)
        what = "text or categories" if coded else "text"
        found.append(f"columns {shown} hold {what}, and features must be numbers")
        advice["categorical='auto'"] = "--categorical auto"
    other = [look for look in looks.values() if look.content == "other"]
    other = [look for look in other if not wanted or look.name in asked]
    if other:
        shown = _some([f"{look.name!r} ({look.type})" for look in other])
        found.append(f"columns {shown} hold neither numbers nor text")
        names = [look.name for look in other]
        advice[f"drop={names!r}"] = f"--drop {','.join(names)}"
    sentences = [look for look in texts if wanted and look.free_text and look.name in asked]
    if sentences:
        names = [look.name for look in sentences]
        found.append(f"columns {_some([repr(name) for name in names])} hold free text")
        advice[f"text={names!r}"] = " ".join(f"--text {name}" for name in names)
    mixed = [look for look in texts if look.mistake is not None]
    if mixed and options.missing == "error" and options.categorical != "error":
        shown = _some([f"{look.name!r} ({look.mistake!r})" for look in mixed])
        found.append(f"columns {shown} hold numbers, and texts that are none")
        advice["missing='auto'"] = "--missing auto"
    holes = [look for look in looks.values() if look.missing]
    if options.missing == "error" and found and holes:
        rows = next(iter(looks.values())).rows
        shown = _some([f"{look.name!r} ({look.missing:,})" for look in holes])
        found.append(f"columns {shown} have missing values in the first {rows:,} rows")
        advice["missing='auto'"] = "--missing auto"
    if found:
        raise BadRowsError(
            f"{file.name}: {'; '.join(found)}. This would do: {', '.join(advice)} "
            f"({' '.join(advice.values())}); or choose the feature columns (columns=, --columns), "
            "or leave some out (drop=, --drop)."
        )


def _some(shown: list[str]) -> str:
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more


# --------------------------------------------------------------------------------------------------
# Which columns of a table are features, and how each becomes numbers.


def make_encoding(files: Sequence[TableFile], options: ReadOptions) -> Encoding:
    """Decide how a table becomes features, as an earlier table's did where one is given.

    The first rows are looked at. A pass over all rows is made only over columns of which categories
    or means have to be found.
    """
    known = options.encoding
    first = files[0]
    if known is not None and known.columns is not None:
        known.check_names(first.schema.names, first.name)
        _check_files(files, known.columns)
        return known
    chosen = _chosen(first, options)
    if known is not None:
        found = _by_position(known, files, chosen, first.name)
        _check_files(files, found.columns or ())
        return found
    _check_names(files, chosen)
    lists = _embeddings(files, chosen)
    plain = [name for name in chosen if name not in lists]
    decision, looks = Decision(), {}
    if plain:
        head = first_rows(files, plain)
        guess = options.categorical == "auto"
        looks = {name: head.look(name, guess=guess) for name in plain}
        refuse(first, looks, options)
        decision = decide(files, plain, options, head, looks)
        decision = decision if lists else with_sentences(decision, options)
    if not decision.columns and not lists:
        raise NoFeaturesError.of(first, looks, decision.left_out)
    columns = _in_order([*decision.columns, *lists.values()], chosen)
    _check_files(files, columns)
    return Encoding(
        columns,
        len(columns),
        _common_dtype(files, columns, options).str,
        left_out=decision.left_out,
        facts=column_facts(decision.looks, decision.columns),
    )


def _chosen(file: TableFile, options: ReadOptions) -> tuple[str, ...]:
    available = file.schema.names
    asked = {
        "label_column": [options.label_column] if options.label_column is not None else [],
        "columns": list(options.columns or ()),
        "drop": list(options.drop),
        "text": list(options.text),
    }
    for option, names in asked.items():
        absent = [name for name in names if name not in available]
        if absent:
            raise ParameterError(
                f"{option}: {file.name} has no column {some(absent)}; it has {some(available, 20)}."
            )
    left_out = {*options.drop, *asked["label_column"]}
    if options.columns is not None:
        both = [name for name in (*options.columns, *options.text) if name in left_out]
        if both:
            raise ParameterError(
                f"{some(both)} cannot be a feature and the label column (or dropped) at once."
            )
        return (*options.columns, *(n for n in options.text if n not in options.columns))
    chosen = tuple(name for name in available if name not in left_out)
    if not chosen:
        raise BadRowsError(
            f"{file.name} has no column that can be a feature: all it has ({some(available)}) are "
            "labels, IDs or dropped. Give a table with at least one more, or drop fewer (drop=, "
            "--drop)."
        )
    return chosen


def _check_names(files: Sequence[TableFile], names: Sequence[str]) -> None:
    """Every file must have all columns."""
    for file in files:
        present = set(file.schema.names)
        absent = [name for name in names if name not in present]
        if absent:
            raise BadRowsError(
                f"{file.name} has no column {some(absent)}, which {files[0].name} has; "
                "the files of one table need the same columns."
            )


def _check_files(files: Sequence[TableFile], columns: Sequence[Column]) -> None:
    """Every file must have all columns, and numbers in those that are numbers."""
    _check_names(files, [column.name for column in columns])
    for file in files:
        wrong = [c for c in columns if not c.takes(file.schema.field(c.name).type)]
        if wrong:
            held = sorted({str(file.schema.field(c.name).type) for c in wrong})
            held = ["text" if kind in ("string", "large_string") else kind for kind in held]
            raise BadRowsError(
                f"{file.name}: columns {some([c.name for c in wrong])} hold {', '.join(held)} "
                f"where {wrong[0].expects} are expected; give "
                "the same kind of table as the model was fitted on, or as the other files are."
            )


def _embeddings(files: Sequence[TableFile], columns: Sequence[str]) -> dict[str, Embedding]:
    """Columns that hold lists of numbers, and how long these are."""
    found: dict[str, Embedding] = {}
    for column in columns:
        kind = files[0].schema.field(column).type
        if number_type(kind) is None:
            continue
        batches = stream(files, [column])
        lengths = (length_of(kind, batch.column(column)) for batch in batches)
        length = next((length for length in lengths if length is not None), None)
        if not length:
            raise BadRowsError(
                f"{files[0].name}: column {column!r} ({kind}) holds no list with numbers in it; "
                "leave it out (drop=, --drop)."
            )
        found[column] = Embedding(column, length)
    return found


def _by_position(
    known: Encoding, files: Sequence[TableFile], columns: tuple[str, ...], name: str
) -> Encoding:
    lists = _embeddings(files, columns)
    if lists and known.means is None:
        found = tuple(lists.get(column) or Number(column) for column in columns)
        if sum(column.width for column in found) == known.n_inputs:
            return replace(known, columns=found)
    if len(columns) != known.n_inputs:
        raise BadRowsError(
            f"{name} has {len(columns)} feature columns, but the model was fitted on "
            f"{known.n_inputs} features without names; give as many, in the same order."
        )
    means = known.means or (None,) * len(columns)
    numbers = tuple(Number(name, mean) for name, mean in zip(columns, means, strict=True))
    return replace(known, columns=numbers, means=None)


def _in_order(columns: Sequence[Column], names: Sequence[str]) -> tuple[Column, ...]:
    """Columns in the order of the table, or that was asked for; sparse ones come last."""
    places = {name: place for place, name in enumerate(names)}
    return tuple(sorted(columns, key=lambda column: (column.sparse, places[column.name])))


def _common_dtype(
    files: Sequence[TableFile], columns: Sequence[Column], options: ReadOptions
) -> np.dtype[Any]:
    """The narrowest type that holds every number column, and NaN where values are filled in."""
    if options.dtype is not None:
        return np.dtype(options.dtype)
    numbers = [column for column in columns if type(column) in (Number, Embedding)]
    types = [file.schema.field(column.name).type for column in numbers for file in files]
    whole = all(column.plain or column.kind in ("onehot", "words") for column in columns)
    dtypes: list[np.dtype[Any]] = (
        [np.dtype(np.float32)] if options.missing == "mean" or not types or not whole else []
    )
    for kind in types:
        kind = number_type(kind) or kind
        if pa.types.is_boolean(kind):
            dtypes.append(np.dtype(np.uint8))
        elif pa.types.is_decimal(kind) or content_of(kind) != "number":
            dtypes.append(np.dtype(np.float64))
        else:
            dtypes.append(numpy_type(kind))
    return np.result_type(*dtypes)


# --------------------------------------------------------------------------------------------------


def encode(
    encoding: Encoding,
    batch: Any,
    out: np.ndarray,
    rows: int | np.ndarray,
    missing: MissingValues,
) -> None:
    """Fill a (features, rows) buffer from a batch of Arrow columns.

    Missing values that are not filled, and wrong ones, are counted.

    Parameters
    ----------
    encoding : Encoding
    batch : pyarrow.RecordBatch or pyarrow.Table
        Holds the encoding's columns.
    out : ndarray of shape (features, rows)
    rows : int or ndarray
        Number of the first row, or the numbers of all.
    missing : MissingValues
    """
    place = 0
    for column in encoding.columns or ():
        if column.sparse:
            continue
        values = batch.column(column.name)
        try:
            refused = column.fill(values, out[place : place + column.width])
        except WrongRowsError as error:
            missing.add_wrong(column.name, str(error), _numbered(rows, error.where))
            refused = None
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {column.name!r} must hold {column.expects} and holds {values.type}: "
                f"{error}. Give the same kind of table as the model was fitted on."
            ) from error
        if refused is not None:
            missing.add(column.name, _numbered(rows, refused))
        place += column.width


def encode_sparse(
    encoding: Encoding, batch: Any, rows: int | np.ndarray, missing: MissingValues
) -> Rows:
    """Turn a batch of Arrow columns into CSR rows, where some columns are sparse.

    Parameters
    ----------
    encoding : Encoding
    batch : pyarrow.RecordBatch or pyarrow.Table
    rows : int or ndarray
        Number of the first row, or the numbers of all.
    missing : MissingValues
    """
    dtype = np.dtype(encoding.dtype)
    dense = np.empty((encoding.words_from or 0, batch.num_rows), dtype=dtype)
    encode(encoding, batch, dense, rows, missing)
    words = [c.sparse_rows(batch.column(c.name)) for c in encoding.columns or () if c.sparse]
    return sparse.hstack([sparse.csr_matrix(dense.T), *words], format="csr", dtype=dtype)


def ready_rows(encoding: Encoding, batch: Any) -> np.ndarray | None:
    """Rows of a table of one embedding column, without a copy.

    Returns
    -------
    found : ndarray of shape (rows, features) or None
        None where there is more to do, or something wrong that :func:`encode` will tell.
    """
    columns = encoding.columns or ()
    if len(columns) != 1 or not isinstance(columns[0], Embedding):
        return None
    values = batch.column(columns[0].name)
    kind = number_type(values.type)
    if kind is None or numpy_type(kind) != np.dtype(encoding.dtype):
        return None
    try:
        return columns[0].rows(values)
    except WrongRowsError:
        return None


def _numbered(rows: int | np.ndarray, where: Any) -> np.ndarray:
    """Row numbers of the places where ``where`` is true."""
    positions = np.flatnonzero(np.asarray(where))
    return rows[positions] if isinstance(rows, np.ndarray) else rows + positions
