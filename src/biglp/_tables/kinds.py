"""Kinds of columns: what Arrow columns hold, and how each kind becomes a block of features."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from biglp._core import Registry
from biglp._core.arrays import Rows, texts_as_arrow
from biglp._tables.number_styles import NumberStyle
from biglp._transforms.text_model import find_text_model, text_model

# What Arrow columns hold, and their values as numbers and text -----------------------------------


Content = Literal["number", "time", "text", "nothing", "other"]


def content_of(kind: Any) -> Content:
    """What an Arrow type holds: numbers (truth values and decimals too), moments, or text."""
    types = pa.types
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    ):
        return "number"
    if types.is_temporal(kind) and not types.is_interval(kind):
        return "time"
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or str(kind) == "string_view"  # its test came with pyarrow 16
        or types.is_dictionary(kind)
    ):
        return "text"
    return "nothing" if types.is_null(kind) else "other"


def missing_in(column: Any) -> int:
    """Number of missing values: null or NaN."""
    count = int(column.null_count)
    if pa.types.is_floating(column.type):
        if pa.types.is_float16(column.type):  # which pyarrow before 21 cannot compute with
            return count + int(np.isnan(as_numbers(column.drop_null())).sum())
        count += int(pc.sum(pc.is_nan(column)).as_py() or 0)
    return count


# pyarrow's own ways, ``to_numpy``, ``pyarrow.array`` and ``to_pandas_dtype``, load pandas wherever
# it is installed, which takes longer than a small fit: numbers are taken as they lie in memory.


def as_numpy(column: Any) -> np.ndarray:
    """Values of an Arrow array or chunked array; missing numbers as NaN."""
    chunked = isinstance(column, pa.ChunkedArray)
    kind = column.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not plain or not len(column):
        found: np.ndarray = column.to_numpy(**({} if chunked else {"zero_copy_only": False}))
        return found
    parts = [_with_nan(part) for part in (column.chunks if chunked else [column]) if len(part)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _with_nan(column: Any) -> np.ndarray:
    values = _view(column)
    if not column.null_count:
        return values
    with_nan = values.astype(values.dtype if values.dtype.kind == "f" else np.float64)
    with_nan[~_known(column)] = np.nan
    return with_nan


def _known(column: Any) -> np.ndarray:
    """Where an array with missing values has one."""
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    return np.asarray(bits[column.offset : column.offset + len(column)] == 1)


def _view(column: Any) -> np.ndarray:
    types, kind = pa.types, column.type
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    values = np.frombuffer(column.buffers()[1], f"{letter}{kind.bit_width // 8}")
    return values[column.offset : column.offset + len(column)]


def as_places(column: Any) -> np.ndarray:
    """Whole numbers of an Arrow array, -1 where one is missing."""
    if not len(column):
        return np.empty(0, dtype=np.int64)
    places = _view(column)
    return np.where(_known(column), places, -1) if column.null_count else places


DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def as_numbers(values: Any) -> np.ndarray:
    """Numbers as they are and moments as numbers; missing ones as NaN.

    Dates and timestamps become days since 1970, times of the day hours since midnight, and lengths
    of time days.
    """
    kind, types = values.type, pa.types
    unit: float
    if types.is_boolean(kind):
        return as_numpy(values.cast(pa.uint8()))
    if types.is_decimal(kind) or types.is_null(kind):
        return as_numpy(values.cast(pa.float64()))
    content = content_of(kind)
    if content == "number":
        return as_numpy(values)
    if content != "time":
        raise TypeError("not a number type")
    if types.is_date(kind):
        counts, unit = values.cast(pa.date32()).cast(pa.int32()), 1
    elif types.is_time(kind):
        whole = pa.int32() if types.is_time32(kind) else pa.int64()
        counts, unit = values.cast(whole), DAY[kind.unit] / 24
    else:
        counts, unit = values.cast(pa.int64()), DAY[kind.unit]
    floats = counts.cast(pa.float64(), safe=False)
    return np.asarray(as_numpy(floats) / unit)


def text(column: Any) -> Any:
    """Arrow column as plain strings."""
    return column.cast(pa.string())


CODE = r"^\s*0\d"
"""Digits with a 0 before them are a code, whose digits do not count."""


_DATES = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_TIMED = tuple(date + time for time in (" %H:%M", " %H:%M:%S") for date in _DATES)
_MONTHS = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())  # noqa: SIM905
_NAMED = ("%d-%b-%y", "%d-%b-%Y", "%d %b %y", "%d %b %Y", "%d. %b %Y", "%b %d, %Y", "%b %d %Y")
FORMATS = ("%Y-%m-%d", *_DATES, "%Y%m%dT%H%M%S", *_TIMED, *_NAMED)
"""How dates are written, beside ISO 8601 with a time, which Arrow reads itself."""
ISO, CLOCK = "ISO 8601", "clock"
_CLOCK = (
    r"^(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.\d+)?)?"
    r"\s*(?P<half>[AaPp])?(?:\.?[Mm]\.?)?$"
)


def moments(values: Any, format: str) -> Any:
    """Texts as timestamps; null where one cannot be read, or ``pyarrow.ArrowInvalid`` for ISO."""
    trimmed = pc.utf8_trim_whitespace(text(values))
    if format == ISO:
        return trimmed.cast(pa.timestamp("s"))
    if format == CLOCK:
        parts = pc.extract_regex(trimmed, _CLOCK)
        hour, minute, second = (
            pc.struct_field(parts, name) for name in ("hour", "minute", "second")
        )
        hour, minute = hour.cast(pa.int32()), minute.cast(pa.int32())
        second = pc.if_else(pc.equal(second, ""), "0", second).cast(pa.int32())
        half = pc.utf8_lower(pc.struct_field(parts, "half"))
        # 12:30 am is half past midnight, 12:30 pm half past noon.
        on_dial = pc.if_else(pc.equal(hour, 12), 0, hour)
        later = pc.if_else(pc.equal(half, "p"), pc.add(on_dial, 12), on_dial)
        hour = pc.if_else(pc.equal(half, ""), hour, later)
        seconds = pc.add(pc.multiply(pc.add(pc.multiply(hour, 60), minute), 60), second)
        known = pc.if_else(pc.less(hour, 24), seconds, pa.scalar(None, pa.int32()))
        return known.cast(pa.int32()).cast(pa.time32("s"))
    return pc.strptime(trimmed, format=format, unit="s", error_is_null=True)


def _moments_of_each(values: Any) -> Any:
    """Texts as timestamps; null where one is none."""
    words = pc.utf8_trim_whitespace(text(values))
    encoded = words.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    known = []
    for word in encoded.dictionary:
        try:
            known.append(word.cast(pa.timestamp("s")))
        except pa.ArrowInvalid:
            known.append(None)
    return pa.array(known, pa.timestamp("s")).take(encoded.indices)


def date_format(values: Any) -> str | None:
    """How different texts, none of them missing, are written if all are dates; else None."""
    first = values[0].as_py().strip() if len(values) else ""
    if re.match(_CLOCK, first) and moments(values, CLOCK).null_count == 0:
        return CLOCK
    digits = sum(letter.isdigit() for letter in first)
    named = any(month in first.lower() for month in _MONTHS)
    if not 8 <= len(first) <= 32 or digits < (3 if named else 6):
        return None
    for format in FORMATS:
        if moments(values, format).null_count == 0:
            return format
    try:
        moments(values, ISO)
    except pa.ArrowInvalid:
        return None
    return ISO


# What every kind of column offers -----------------------------------------------------------------


class WrongRowsError(ValueError):
    """Values that cannot be features, such as "has lists of 3 numbers", and in which rows.  (b,)"""

    def __init__(self, problem: str, where: np.ndarray) -> None:
        super().__init__(problem)
        self.where = where


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table, and how it becomes a block of features.

    A subclass is a frozen dataclass whose fields are numbers, texts and tuples of these: that is
    what model files and other processes get.
    """

    kind: ClassVar[str]
    """Name in :data:`KINDS` and in model files."""
    expects: ClassVar[str] = "numbers"
    """What the column must hold, for messages."""
    sparse: ClassVar[bool] = False
    """Whether most features of a row are 0, so that rows are CSR matrices; see :class:`Words`.
    Such columns come after all others."""
    name: str

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def tokens(self) -> tuple[str, int]:
        """Text model whose tokens its last features count, and how many these are."""
        return "", 0

    @property
    def plain(self) -> bool:
        """Whether its features are the numbers of the column, so that an array will do instead."""
        return False

    @property
    def fillings(self) -> tuple[float | None, ...]:
        """What a missing value of each feature of a plain column becomes; None: it is refused."""
        return (None,) * self.width

    @property
    def fills(self) -> bool:
        """Whether a value may be missing."""
        return False

    def describe(self) -> str:
        """Say in a few words what is done with the column."""
        return self.kind

    def takes(self, kind: Any) -> bool:
        """Whether a column of this Arrow type can be treated so."""
        return True

    def read_as(self, guess: Any) -> Any:
        """Arrow type that a file without declared types is to read the column as.

        ``guess`` is what its first rows look like: float64, truth values, moments or text.
        """
        return guess

    @abstractmethod
    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Turn values of b rows into features, in ``out``.  (width, b)

        The answer is which rows have a missing value that may not be, (b,); None for no row.
        Values that cannot be features raise WrongRowsError, those of another kind TypeError,
        ValueError or an error of Arrow.
        """

    def sparse_rows(self, values: Any) -> Rows:
        """Features of a sparse column, as a CSR matrix.  (b, width)"""
        raise TypeError(f"a column of kind {self.kind!r} is dense")

    def to_json(self) -> dict[str, Any]:
        """Return a description that JSON can hold."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind} | {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Rebuild a column from :meth:`to_json`; fields that it lacks have their default."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
            if name in known
        }
        return cls(**values)


# Numbers and moments: one feature, and a second one where values are missing ----------------------


@dataclass(frozen=True)
class Number(Column):
    """A number, truth value or decimal as it is."""

    kind = "number"
    filling: float | None = None  # what a missing value becomes; None: it is refused
    indicator: bool = False  # a second feature is 1 where the value is missing, 0 elsewhere
    texts: bool = False  # written as text; texts that are no numbers count as missing
    thousands: str = ""  # how they are written then, as the four fields of a NumberStyle
    decimal: str = "."
    unit: str = ""
    units: tuple[str, ...] = ()
    factors: tuple[float, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} is missing") if self.indicator else (self.name,)

    @property
    def plain(self) -> bool:
        return not self.indicator and not self.texts

    @property
    def fillings(self) -> tuple[float | None, ...]:
        return (self.filling, None) if self.indicator else (self.filling,)

    @property
    def fills(self) -> bool:
        return self.filling is not None

    def describe(self) -> str:
        """Say what it is, and what becomes of missing values."""
        kind = f"{self.kind}, written as text" if self.texts else self.kind
        kind += f" (in {self.unit})" if self.unit else ""
        if not self.indicator:
            return kind
        return f"{kind}; missing ones become {self.filling:.6g}, marked by a second feature"

    def takes(self, kind: Any) -> bool:
        """Everything but text, unless that is expected, and moments."""
        return content_of(kind) not in (("time",) if self.texts else ("text", "time"))

    def read_as(self, guess: Any) -> Any:
        """Truth values stay what they are, everything else must be a number."""
        if self.texts:
            return pa.string()
        return guess if pa.types.is_boolean(guess) else pa.float64()

    def numbers(self, values: Any) -> np.ndarray:
        """Values as numbers, missing ones as NaN."""
        if self.texts and content_of(values.type) == "text":
            fields = (self.thousands, self.decimal, self.unit, self.units, self.factors)
            words = text(values)
            values = NumberStyle(*fields).read(words)
            if values.null_count:  # truth values are numbers, also beside a text that is none
                truth = pc.index_in(pc.utf8_lower(words), value_set=pa.array(["false", "true"]))
                values = pc.coalesce(values, truth.cast(pa.float64()))
        elif content_of(values.type) == "time":
            raise TypeError("not a number type")
        return as_numbers(values)

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        if out.dtype.kind == "f":
            out[0] = self.numbers(values)
            empty = np.isnan(out[0])
        else:
            given = self.numbers(values)
            empty = np.isnan(given) if given.dtype.kind == "f" else np.zeros(1, dtype=bool)
            out[0] = np.where(empty, 0, given) if empty.any() else given
        if self.indicator:
            out[1] = empty
        if not empty.any():
            return None
        if self.filling is None:
            return empty
        out[0][empty] = self.filling
        return None


@dataclass(frozen=True)
class Date(Number):
    """Days since 1970, hours since midnight, or days."""

    kind = "date"
    expects = "dates or times"
    format: str | None = None  # how texts are written; None for a column of moments

    @property
    def plain(self) -> bool:
        """A number of an array is not known to be one of days."""
        return False

    def describe(self) -> str:
        """Say what it is, and what becomes of missing values."""
        shown = "date or time as a number (days, or hours of a time of day)"
        return super().describe().replace(self.kind, shown, 1)

    def takes(self, kind: Any) -> bool:
        """Moments, and texts that may be moments."""
        return content_of(kind) in ("time", "text", "nothing")

    def read_as(self, guess: Any) -> Any:
        """Text where it was text, else moments."""
        if self.format is not None:
            return pa.string()
        return guess if content_of(guess) == "time" else pa.timestamp("s")

    def numbers(self, values: Any) -> np.ndarray:
        """Values as numbers, missing ones as NaN."""
        content = content_of(values.type)
        if content in ("text", "nothing"):
            try:
                values = moments(values, self.format or ISO)
            except pa.ArrowInvalid:  # some are none, and Arrow does not say which
                values = _moments_of_each(values)
        elif content != "time":
            raise TypeError("neither dates nor times")
        return as_numbers(values)


# Embeddings: a list of numbers in each row, as many features as it is long ------------------------


@dataclass(frozen=True)
class Embedding(Column):
    """The numbers of a list, all lists of one length."""

    kind = "embedding"
    expects = "lists of numbers"
    length: int = 1

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``column[0]``, ``column[1]``…."""
        return tuple(f"{self.name}[{index}]" for index in range(self.length))

    @property
    def width(self) -> int:
        return self.length

    @property
    def plain(self) -> bool:
        return True

    def describe(self) -> str:
        """Say how long it is."""
        return f"embedding of {self.length:,} numbers"

    def takes(self, kind: Any) -> bool:
        """Lists of numbers."""
        return number_type(kind) is not None

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        out[:] = self.rows(values).T
        return None

    def rows(self, values: Any) -> np.ndarray:
        """The numbers of b rows, without a copy where these are in one piece.  (b, length)"""
        if isinstance(values, pa.ChunkedArray):
            if values.num_chunks != 1:
                return np.concatenate([self.rows(chunk) for chunk in values.chunks])
            values = values.chunk(0)
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if values.null_count:
            raise WrongRowsError("has no list", np.asarray(values.is_null()))
        if pa.types.is_fixed_size_list(values.type):
            if values.type.list_size != self.length:
                problem = f"has lists of {values.type.list_size:,} numbers, not {self.length:,}"
                raise WrongRowsError(problem, np.ones(len(values), dtype=bool))
            numbers = values.flatten()
        else:
            bounds = values.offsets.to_numpy()
            unequal = np.diff(bounds) != self.length
            if unequal.any():
                other = int(np.diff(bounds)[unequal][0])
                problem = f"has lists of {other:,} numbers where others have {self.length:,}"
                raise WrongRowsError(problem, unequal)
            numbers = values.values.slice(bounds[0], bounds[-1] - bounds[0])
        if numbers.null_count:
            empty = np.asarray(numbers.is_null()).reshape(-1, self.length)
            raise WrongRowsError("has lists with missing numbers", np.asarray(empty.any(1)))
        rows: np.ndarray = numbers.to_numpy(zero_copy_only=False)
        return rows.reshape(-1, self.length)


def number_type(kind: Any) -> Any:
    """Type of the numbers in a column of embeddings; None where it is none."""
    if isinstance(kind, pa.BaseExtensionType):  # tensors of one shape
        kind = kind.storage_type
    types = pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return None
    inner = kind.value_type
    return inner if types.is_integer(inner) or types.is_floating(inner) else None


def numpy_type(kind: Any) -> np.dtype[Any]:
    """NumPy's name of a type of numbers; pyarrow's own way loads pandas."""
    types = pa.types
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


# Categories: few different texts, or many ---------------------------------------------------------


@dataclass(frozen=True)
class Categories(Column):
    """What both kinds of categories have in common."""

    expects = "categories"
    categories: tuple[str, ...] = ()
    filled: bool = False  # a value may be missing
    missing: bool = False  # "missing" is a category of its own, the last feature

    def read_as(self, guess: Any) -> Any:
        """Text as it is written."""
        return pa.string()

    @property
    def fills(self) -> bool:
        return self.filled or self.missing

    def codes(self, values: Any) -> np.ndarray:
        """Index of each category in the list; −1 where it is missing or not in the list.  (b,)"""
        known = texts_as_arrow(self.categories)
        codes = pc.index_in(text(values), value_set=known, skip_nulls=True)
        return as_numpy(codes.fill_null(-1))

    def mark_missing(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Set the features ``out`` of missing values; the answer is that of :meth:`fill`."""
        if not values.null_count:
            return None
        empty = np.asarray(values.is_null())
        if self.missing:
            out[:, empty] = 0
            out[-1] = empty
        return None if self.filled or self.missing else empty


@dataclass(frozen=True)
class OneHot(Categories):
    """1 where a row has the category, 0 elsewhere.

    A category that is not in the list is 0 everywhere, and so is a missing one where that may be.
    """

    kind = "onehot"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``column=category``."""
        names = tuple(f"{self.name}={value}" for value in self.categories)
        return (*names, f"{self.name} is missing") if self.missing else names

    def describe(self) -> str:
        """Say how many features there are."""
        return f"one feature for each of {len(self.categories):,} categories" + (
            " and one for missing ones" if self.missing else ""
        )

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        codes = self.codes(values)
        known = np.flatnonzero(codes >= 0)
        out[:] = 0
        out[codes[known], known] = 1
        return self.mark_missing(values, out)


@dataclass(frozen=True)
class Frequency(Categories):
    """The logarithm of a category's count, and one feature for each of the most frequent ones.

    One feature for each of hundreds of categories would be as many columns that are nearly always
    0, and codes learnt from the labels would have a handful of labels to learn from. How often a
    category occurs needs no label: it tells the usual from the rare. The most frequent come first
    in the list; a missing value counts as one of the others, unless it is a category.
    """

    kind = "frequency"
    counts: tuple[int, ...] = ()  # rows that each of them has
    shown: int = 0  # so many of the first have a feature of their own; all others share one
    n_levels: int = 0  # categories of the table, of which the list may hold some only

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Count, the categories that are shown, the others, and "missing"."""
        shown = [f"{self.name}={value}" for value in self.categories[: self.shown]]
        others = [f"{self.name}: another"]
        missing = [f"{self.name} is missing"] if self.missing else []
        return (f"{self.name}: frequency", *shown, *others, *missing)

    def describe(self) -> str:
        """Say how many categories there are, and how many are shown."""
        return (
            f"{self.n_levels:,} categories: the logarithm of how frequent each is, and one feature "
            f"for each of the {self.shown} most frequent"
        )

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        codes = self.codes(values)
        # What is not in the list is as rare as can be; −1 finds the last place.
        logs = np.log(np.append(np.array(self.counts, dtype=np.float64), 1.0))
        out[0] = logs[codes]
        out[1:] = 0
        ones = np.where((codes < 0) | (codes >= self.shown), self.shown, codes)
        out[1 + ones, np.arange(len(codes))] = 1
        return self.mark_missing(values, out[1:])


# Sentences: how often each word is in them, as sparse features ------------------------------------


N_WORDS = 1 << 18
"""Features of the words of one column; words that share one are few among those that are used."""


@dataclass(frozen=True)
class Words(Column):
    """Counts of words; a missing text has none.

    A word's feature is its hash (scikit-learn's ``HashingVectorizer``), so that nothing has to be
    learnt or kept, and a new file is treated as the first one was.
    """

    kind = "words"
    expects = "texts"
    sparse: ClassVar[bool] = True
    n_words: int = N_WORDS
    model: str = ""
    """Text model whose tokens are counted after the words; none of them with "".
    See :mod:`biglp._transforms.text_model`."""
    n_tokens: int = 0

    @property
    def feature_names(self) -> tuple[str, ...]:
        """None: a hash has no word."""
        return ()

    @classmethod
    def counted_by(cls, name: str, model: str) -> Self:
        """The words of a column, and the tokens of a text model: see ``ReadOptions.text_model``."""
        if model == "none" or (model == "auto" and find_text_model(model) is None):
            return cls(name)
        return cls(name, model=model, n_tokens=len(text_model(model).table))

    @property
    def width(self) -> int:
        return self.n_words + self.n_tokens

    @property
    def tokens(self) -> tuple[str, int]:
        return self.model, self.n_tokens

    @property
    def fills(self) -> bool:
        return True

    def describe(self) -> str:
        """Say what is counted."""
        if self.model:
            return "text: its words are counted, and what they mean is looked up"
        return "text: its words are counted"

    def takes(self, kind: Any) -> bool:
        """Text only."""
        return content_of(kind) in ("text", "nothing")

    def read_as(self, guess: Any) -> Any:
        """Text as it is written."""
        return pa.string()

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        raise TypeError("counts of words are sparse")

    def sparse_rows(self, values: Any) -> Rows:
        sentences = ["" if value is None else value for value in text(values).to_pylist()]
        words = _vectorizer(self.n_words).transform(sentences)
        if not self.model:
            return words
        return sparse.hstack([words, text_model(self.model).counts(sentences)], format="csr")


@lru_cache
def _vectorizer(n_words: int) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=n_words, alternate_sign=False, norm=None, dtype=np.float32)


KINDS: Registry[type[Column]] = Registry(
    {kind.kind: kind for kind in (Date, Frequency, Number, Embedding, OneHot, Words)}
)
