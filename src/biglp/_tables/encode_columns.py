"""What becomes of each column of a table: features of some kind, or nothing, with the reason.

Most of it the first rows tell. What needs all rows of a column stands in a section of its own:
categories, means, medians, ranges and missing values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows.options import ReadOptions
from biglp._rows.source import Encoding, some
from biglp._tables.detect_kinds import ColumnSummary, first_rows, look_at_column
from biglp._tables.kinds import (
    Column,
    Date,
    Embedding,
    Frequency,
    Number,
    OneHot,
    Words,
    content_of,
    number_type,
    numpy_type,
    text,
)
from biglp._tables.number_styles import NumberStyle
from biglp._tables.table import TableFile, stream

# Which columns are features -----------------------------------------------------------------------


class NoFeaturesError(BadRowsError):
    """A table of which no column is a feature, though it can be read."""

    left_out: Mapping[str, str]
    """Why each column is none."""
    missing: Mapping[str, int]
    """Missing values of each column in the first ``looked_at`` rows."""
    looked_at: int


def make_encoding(files: Sequence[TableFile], options: ReadOptions) -> Encoding:
    """Decide how a table becomes features, as an earlier table's did where one is given.

    The first rows are looked at. A pass over all rows is made only over columns of which categories
    or means have to be found.
    """
    known = options.encoding
    first = files[0]
    if known is not None and known.columns is not None:
        known.check_names(first.schema.names, first.name)
        _check_files(files, known.names, known.columns)
        return known

    # Columns that may become features, as the options say.
    available = first.schema.names
    named = {
        "label_column": [options.label_column] if options.label_column is not None else [],
        "columns": list(options.columns or ()),
        "drop": list(options.drop),
        "text": list(options.text),
    }
    for option, names in named.items():
        absent = [name for name in names if name not in available]
        if absent:
            raise ParameterError(
                f"{option}: {first.name} has no column {some(absent)}; it has "
                f"{some(available, 20)}."
            )
    dropped = {*options.drop, *named["label_column"]}
    if options.columns is not None:
        both = [name for name in (*options.columns, *options.text) if name in dropped]
        if both:
            raise ParameterError(
                f"{some(both)} cannot be a feature and the label column (or dropped) at once."
            )
        chosen = (*options.columns, *(n for n in options.text if n not in options.columns))
    else:
        chosen = tuple(name for name in available if name not in dropped)
        if not chosen:
            raise BadRowsError(
                f"{first.name} has no column that can be a feature: all it has "
                f"({some(available)}) are labels, IDs or dropped. Give a table with at least one "
                "more, or drop fewer (drop=, --drop)."
            )
    if known is not None:
        encoding = _by_position(known, files, chosen)
        _check_files(files, encoding.names, encoding.columns or ())
        return encoding
    _check_files(files, chosen)
    lists = _embeddings(files, chosen)
    plain = [name for name in chosen if name not in lists]
    columns: list[Column] = []
    left_out: dict[str, str] = {}
    first_looks: dict[str, ColumnSummary] = {}
    summaries: dict[str, ColumnSummary] = {}
    if plain:
        table, complete = first_rows(files, plain)
        guess = options.categorical == "auto"
        first_looks = {n: look_at_column(n, table.column(n), guess=guess) for n in plain}
        _refuse(first, first_looks, options)
        columns, left_out, summaries = _decide(files, first_looks, options, complete)
        # The words of free text are counted where nothing else of a table can be a feature.
        sentences = [n for n in left_out if summaries[n].free_text]
        if guess and sentences and not columns and not lists:
            columns = [Words.counted_by(name, options.text_model) for name in sentences]
            left_out = {name: why for name, why in left_out.items() if name not in sentences}
    if not columns and not lists:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        error = NoFeaturesError(
            f"{first.name} has no column that can be a feature: {reasons}. Name those that are "
            "features all the same with columns= (--columns)."
        )
        error.left_out = left_out
        error.missing = {name: look.missing for name, look in first_looks.items() if look.missing}
        error.looked_at = max((look.rows for look in first_looks.values()), default=0)
        raise error
    facts: dict[str, Any] = {}  # what new rows are compared with
    for column in columns:
        summary = summaries[column.name]
        facts[column.name] = {"missing": round(summary.missing / max(summary.rows, 1), 6)}
        if summary.low is not None:
            facts[column.name] |= {"low": summary.low, "high": summary.high}
    # In the order of the table, or that was asked for; sparse ones come last.
    order = {name: index for index, name in enumerate(chosen)}
    columns = sorted([*columns, *lists.values()], key=lambda c: (c.sparse, order[c.name]))
    _check_files(files, [column.name for column in columns], columns)

    # The narrowest type that holds every number column, and NaN where values are filled in.
    dtype = np.dtype(options.dtype)
    if options.dtype is None:
        number_columns = [column for column in columns if type(column) in (Number, Embedding)]
        types = [file.schema.field(c.name).type for c in number_columns for file in files]
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
        dtype = np.result_type(*dtypes)
    return Encoding(tuple(columns), len(columns), dtype.str, left_out=left_out, facts=facts)


def _check_files(
    files: Sequence[TableFile], names: Sequence[str], columns: Sequence[Column] = ()
) -> None:
    """Every file must have all columns, and numbers in those that are numbers."""
    for file in files:
        present = set(file.schema.names)
        absent = [name for name in names if name not in present]
        if absent:
            raise BadRowsError(
                f"{file.name} has no column {some(absent)}, which {files[0].name} has; "
                "the files of one table need the same columns."
            )
    for file in files:
        wrong = [c for c in columns if not c.takes(file.schema.field(c.name).type)]
        if wrong:
            types = sorted({str(file.schema.field(c.name).type) for c in wrong})
            types = ["text" if kind in ("string", "large_string") else kind for kind in types]
            raise BadRowsError(
                f"{file.name}: columns {some([c.name for c in wrong])} hold {', '.join(types)} "
                f"where {wrong[0].expects} are expected; give "
                "the same kind of table as the model was fitted on, or as the other files are."
            )


def _embeddings(files: Sequence[TableFile], names: Sequence[str]) -> dict[str, Embedding]:
    """Columns that hold lists of numbers, as long as their type or the first list says."""
    columns: dict[str, Embedding] = {}
    for name in names:
        kind = files[0].schema.field(name).type
        if number_type(kind) is None:
            continue
        stored = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        if pa.types.is_fixed_size_list(stored):
            length = stored.list_size
        else:
            values = (value for batch in stream(files, [name]) for value in batch.column(name))
            length = next((len(value) for value in values if value.is_valid), None)
        if not length:
            raise BadRowsError(
                f"{files[0].name}: column {name!r} ({kind}) holds no list with numbers in it; "
                "leave it out (drop=, --drop)."
            )
        columns[name] = Embedding(name, length)
    return columns


def _by_position(known: Encoding, files: Sequence[TableFile], names: tuple[str, ...]) -> Encoding:
    """The encoding of a model that was fitted on an array, with the names of these columns."""
    lists = _embeddings(files, names)
    if lists and known.means is None:
        columns = tuple(lists.get(name) or Number(name) for name in names)
        if sum(column.width for column in columns) == known.n_inputs:
            return replace(known, columns=columns)
    if len(names) != known.n_inputs:
        raise BadRowsError(
            f"{files[0].name} has {len(names)} feature columns, but the model was fitted on "
            f"{known.n_inputs} features without names; give as many, in the same order."
        )
    means = known.means or (None,) * len(names)
    numbers = tuple(Number(name, mean) for name, mean in zip(names, means, strict=True))
    return replace(known, columns=numbers, means=None)


# What each column becomes -------------------------------------------------------------------------


MOST_ONE_HOT = 40
"""Categories up to which ``categorical="auto"`` makes a feature of each."""
SHOWN = 30
"""Of more categories than that, so many of the most frequent have a feature of their own."""
MOST_KEPT = 10_000
"""Categories whose counts are kept in the model, the most frequent."""
MAX_CATEGORIES = 1000
"""Categories up to which ``categorical="onehot"`` makes a feature of each."""


def _decide(
    files: Sequence[TableFile],
    first_looks: Mapping[str, ColumnSummary],
    options: ReadOptions,
    complete: bool,
) -> tuple[list[Column], dict[str, str], dict[str, ColumnSummary]]:
    """Columns that become features, why others do not, and what all rows tell of each.

    ``first_looks`` are what the first rows hold, ``complete`` says that these are all.
    """
    auto, by_mean = options.categorical == "auto", options.missing == "mean"
    requested = options.columns or ()
    left_out: dict[str, str] = {}
    looks = {name: look for name, look in first_looks.items() if name not in options.text}
    for name, look in looks.items() if auto else ():
        if look.free_text:
            left_out[name] = (
                f"free text; text=[{name!r}] (--text {name}) makes features of its words"
            )
        elif name not in requested and look.content == "other":
            left_out[name] = f"holds {look.type}, neither numbers nor text"
        elif name not in requested and look.identity is not None:
            left_out[name] = look.identity
    names = [name for name in looks if name not in left_out]
    texts = [n for n in names if looks[n].content == "text" and looks[n].date_format is None]
    constant = [n for n in names if looks[n].constant and n not in requested] if auto else []

    # Which columns have to be read to their end.
    summaries = dict(first_looks)
    numbers: dict[str, Number] = {}  # without what becomes of missing values
    for name in names:
        look = looks[name]
        if look.content == "time" or look.date_format is not None:
            numbers[name] = Date(name, format=look.date_format)
        elif name not in texts:
            style = look.style or NumberStyle()
            numbers[name] = Number(name, texts=look.written, **vars(style))
    totals = {name: Totals(column, by_mean) for name, column in numbers.items()}
    if not by_mean:
        # Some files know the range of a column in which no value is missing. A text that is no
        # number counts as missing, and no statistics tell that.
        known = []
        extremes = [file.extremes for file in files] if totals else []
        for name, total in totals.items():
            if looks[name].written or looks[name].date_format is not None:
                continue
            ends = [of_file.get(name) for of_file in extremes]
            if all(end is not None for end in ends):
                values = np.concatenate([total.column.numbers(end) for end in ends])
                low, high = float(values.min()), float(values.max())
                summaries[name] = replace(looks[name], low=low, high=high)
                known.append(name)
        totals = {
            name: total
            for name, total in totals.items()
            if not complete
            and (name in constant or (options.missing == "auto" and name not in known))
        }
    levels = look_at_all_rows(files, texts, totals, summaries, medians=options.missing == "auto")

    columns: list[Column] = []
    for name in names:
        look, summary = looks[name], summaries[name]
        one_value = "has no values" if look.missing == look.rows else "has one value only"
        if name in levels:
            counts, empty = levels[name].counts, levels[name].missing
            if name in constant and len(counts) + bool(empty) == 1:
                left_out[name] = one_value
            elif auto and name not in requested and levels[name].too_many:
                left_out[name] = "has too many different texts: a name or an ID"
            else:
                columns.append(_category_column(name, levels[name], options))
            continue
        rest = totals.get(name)
        if name in constant and (
            rest is None or rest.count == 0 or (rest.low == rest.high and rest.missing == 0)
        ):
            left_out[name] = one_value
            continue
        column = numbers[name]
        if options.missing == "auto":
            median = 0.0 if summary.median is None else summary.median
            column = replace(column, filling=median, indicator=summary.missing > 0)
        elif by_mean:
            column = replace(column, filling=totals[name].sum / max(totals[name].count, 1))
        columns.append(column)
    unknown = [n for n in totals if by_mean and not totals[n].count and n not in left_out]
    if unknown:
        raise BadRowsError(
            f"{files[0].name}: columns {some(unknown)} have no value at all, so there is no mean "
            "to fill them with; leave them out (drop=, --drop)."
        )
    words = [Words.counted_by(name, options.text_model) for name in options.text]
    return [*columns, *words], left_out, summaries


def _category_column(name: str, levels: Levels, options: ReadOptions) -> Column:
    filled = options.missing != "error"
    missing = options.missing == "auto" and levels.missing > 0
    if options.categorical == "auto" and len(levels.counts) > MOST_ONE_HOT:
        # The most frequent first, ties by name.
        ordered = sorted(levels.counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_KEPT]
        return Frequency(
            name,
            categories=tuple(level for level, _ in ordered),
            counts=tuple(count for _, count in ordered),
            shown=SHOWN,
            n_levels=len(levels.counts),
            filled=filled,
            missing=missing,
        )
    if len(levels.counts) > MAX_CATEGORIES:
        raise BadRowsError(
            f"column {name!r} has more than {MAX_CATEGORIES:,} different texts, too many for a "
            "feature each; it may be a name or a number of the row. Leave it out (drop=, --drop), "
            "or use categorical='auto' (--categorical auto)."
        )
    return OneHot(name, tuple(sorted(levels.counts)), filled, missing)


MOST_NAMED = 8


def _refuse(file: TableFile, looks: Mapping[str, ColumnSummary], options: ReadOptions) -> None:
    """Raise one error for every column that cannot be used so, with the options that would do.

    ``file`` is the first of the table, ``looks`` say what the first rows of each column hold.
    """
    requested = options.columns or ()
    looks = {name: look for name, look in looks.items() if name not in options.text}
    texts = [look for look in looks.values() if look.content == "text" or look.written]
    auto = options.categorical == "auto"
    problems: list[str] = []
    advice: dict[str, str] = {}
    if options.categorical == "error" and texts:
        shown = _some([f"{t.name!r} ({t.type}{file.text_example(t.name)})" for t in texts])
        # Categories may stand for numbers, in pandas and Arrow alike.
        coded = any(str(look.type).startswith("dictionary") for look in texts)
        what = "text or categories" if coded else "text"
        problems.append(f"columns {shown} hold {what}, and features must be numbers")
        advice["categorical='auto'"] = "--categorical auto"
    other = [look for look in looks.values() if look.content == "other"]
    other = [look for look in other if not auto or look.name in requested]
    if other:
        shown = _some([f"{look.name!r} ({look.type})" for look in other])
        problems.append(f"columns {shown} hold neither numbers nor text")
        names = [look.name for look in other]
        advice[f"drop={names!r}"] = f"--drop {','.join(names)}"
    sentences = [look for look in texts if auto and look.free_text and look.name in requested]
    if sentences:
        names = [look.name for look in sentences]
        problems.append(f"columns {_some([repr(name) for name in names])} hold free text")
        advice[f"text={names!r}"] = " ".join(f"--text {name}" for name in names)
    mixed = [look for look in texts if look.mistake is not None]
    if mixed and options.missing == "error" and options.categorical != "error":
        shown = _some([f"{look.name!r} ({look.mistake!r})" for look in mixed])
        problems.append(f"columns {shown} hold numbers, and texts that are none")
        advice["missing='auto'"] = "--missing auto"
    holes = [look for look in looks.values() if look.missing]
    if options.missing == "error" and problems and holes:
        rows = next(iter(looks.values())).rows
        shown = _some([f"{look.name!r} ({look.missing:,})" for look in holes])
        problems.append(f"columns {shown} have missing values in the first {rows:,} rows")
        advice["missing='auto'"] = "--missing auto"
    if problems:
        raise BadRowsError(
            f"{file.name}: {'; '.join(problems)}. This would do: {', '.join(advice)} "
            f"({' '.join(advice.values())}); or choose the feature columns (columns=, --columns), "
            "or leave some out (drop=, --drop)."
        )


def _some(shown: list[str]) -> str:
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more


# What needs all rows of a column ------------------------------------------------------------------


MOST_LEVELS = 1_000_000
"""Different texts that are counted; from then on a column is taken for one of names or IDs."""


@dataclass
class Levels:
    """Categories of one column: the rows of each, and the rows without one."""

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
        counted = pc.value_counts(text(values).drop_null())
        names, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
        self.counts.update(dict(zip(names, counts, strict=True)))


@dataclass
class Totals:
    """Sum, range, median and missing values of one column of numbers or moments."""

    column: Number
    summed: bool = False
    median: Median | None = None  # where it is asked for
    sum: float = 0.0
    count: int = 0
    missing: int = 0
    low: float = np.inf
    high: float = -np.inf

    def add(self, values: Any) -> None:
        """Add the numbers or moments of some rows."""
        try:
            numbers = self.column.numbers(values)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {self.column.name!r} must hold {self.column.expects}, as its first rows "
                f"do: {error}. Repair that row, or leave the column out (drop=, --drop)."
            ) from error
        low, high = numbers.min(), numbers.max()
        if np.isnan(low):  # the least is NaN where any number is
            given = numbers[~np.isnan(numbers)]
            self.missing += len(numbers) - len(given)
            if not len(given):
                return
            numbers, low, high = given, given.min(), given.max()
        self.count += len(numbers)
        self.low, self.high = min(self.low, float(low)), max(self.high, float(high))
        if self.summed:
            with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are refused later
                self.sum += float(numbers.sum(dtype=np.float64))
        if self.median is not None:
            self.median.add(numbers.astype(np.float64, copy=False))


def look_at_all_rows(
    files: Sequence[TableFile],
    texts: Sequence[str],
    totals: dict[str, Totals],
    summaries: dict[str, ColumnSummary],
    *,
    medians: bool,
) -> dict[str, Levels]:
    """Count categories and add numbers; put what all rows hold in place of what the first do.

    Medians are found of columns that lack values. Columns whose first rows lack none are rarely
    among them, and have a pass of their own then.
    """
    for name, total in totals.items():
        total.median = Median() if medians and summaries[name].missing else None
    levels = {column: Levels() for column in texts}
    wanted: dict[str, Levels | Totals] = {**levels, **totals}
    while wanted:
        for batch in stream(files, list(wanted)):
            for column, tally in wanted.items():
                tally.add(batch.column(column))
        late = [n for n, total in totals.items() if total.missing and total.median is None]
        again = {n: Totals(totals[n].column, median=Median()) for n in late if medians}
        totals |= again
        wanted = {**again}
    for name, total in totals.items():
        rows = total.count + total.missing
        summary = replace(summaries[name], rows=rows, missing=total.missing)
        if total.count:
            median = None if total.median is None else total.median.value
            median = summary.median if median is None else median
            summary = replace(summary, low=total.low, high=total.high, median=median)
        summaries[name] = summary
    for name, level in levels.items():
        if not level.too_many:
            rows = level.counts.total() + level.missing
            summaries[name] = replace(summaries[name], rows=rows, missing=level.missing)
    return levels


MOST = 1 << 16
"""Different numbers up to which the median is exact; of more it has some five digits."""
WAITING = 1 << 18
"""Numbers that are counted at once, as each time all that were counted before are sorted again."""
_MAGNITUDE = np.int64((1 << 63) - 1)


class Median:
    """The median of float64 numbers that come a few at a time, in bounded memory.

    Numbers are counted by their leading bits: all of them at first, one fewer each time there are
    more than :data:`MOST` different ones. How many bits are left at the end depends on the numbers
    alone, so that any order and any cut of the same numbers gives the same median.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        self._shift = 0
        self._waiting: list[np.ndarray] = []
        self._n_waiting = 0

    def add(self, values: np.ndarray) -> None:
        """Count numbers, none of them missing."""
        bits = (values + 0.0).view(np.int64)  # −0 is 0
        # Whole numbers in the order of the float64 numbers.
        self._waiting.append(np.where(bits < 0, bits ^ _MAGNITUDE, bits))
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
        middle = np.searchsorted(ends, [(total - 1) // 2, total // 2], side="right")
        keys = self._keys[middle] << self._shift
        if self._shift:
            keys += 1 << (self._shift - 1)  # the middle of the numbers that share these bits
        low, high = np.where(keys < 0, keys ^ _MAGNITUDE, keys).view(np.float64)
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
