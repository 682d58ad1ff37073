"""How the numbers of a column of texts are written: "$1,234.50", "88.5 %", "12 km", "(3.00)"…

A column has one style: what stands between thousands and before decimals, and which signs and
units may stand around the digits. Where that is not certain, texts stay texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.arrays import texts_as_arrow
from biglp._rows.written_numbers import MISSING_TEXTS

_MINUS = "-−–"
_CURRENCIES = {
    "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₫", "฿", "₴", "₦", "₪", "US$", "A$", "C$", "R$",
    "NZ$", "HK$", "S$", "Rs", "Rs.", "kr", "kr.", "zł", "Kč", "Ft", "Fr.", "USD", "EUR", "GBP",
    "JPY", "CHF", "CNY", "RMB", "INR", "RUB", "KRW", "TRY", "AUD", "CAD", "NZD", "HKD", "SGD",
    "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "BRL", "MXN", "ZAR",
}  # fmt: skip
_MAGNITUDES = {
    "k": 1e3, "K": 1e3, "thousand": 1e3, "Tsd": 1e3,
    "M": 1e6, "mn": 1e6, "mln": 1e6, "mio": 1e6, "Mio": 1e6, "million": 1e6, "millions": 1e6,
    "B": 1e9, "b": 1e9, "bn": 1e9, "Bn": 1e9, "Mrd": 1e9, "billion": 1e9, "billions": 1e9,
    "tn": 1e12, "trillion": 1e12, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_FAMILIES: tuple[dict[str, float], ...] = (
    {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3, "in": 0.0254, "ft": 0.3048, "mi": 1609.344,
     "mile": 1609.344},
    {"mg": 1e-6, "g": 1e-3, "kg": 1.0, "t": 1e3, "oz": 0.028349523125, "lb": 0.45359237},
    {"ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0,
     "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "d": 86_400.0, "day": 86_400.0,
     "wk": 604_800.0, "week": 604_800.0, "mo": 2_629_746.0, "mth": 2_629_746.0,
     "month": 2_629_746.0, "yr": 31_556_952.0, "year": 31_556_952.0},
    {"B": 1.0, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
     "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    {"ml": 1e-3, "mL": 1e-3, "cl": 1e-2, "dl": 0.1, "l": 1.0, "L": 1.0},
    {"W": 1.0, "kW": 1e3, "MW": 1e6},
    {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    {"%": 1.0, "‰": 0.1, "percent": 1.0, "pct": 1.0},
    {"st": 1.0, "nd": 1.0, "rd": 1.0, "th": 1.0},
)  # fmt: skip
"""Units that may be mixed in one column, and what one of each is of the first with 1."""
_GAPS = " \u00a0\u202f\u2009"
_NO_GAPS = str.maketrans("", "", _GAPS + "\t")
_PARTS = (
    rf"^[\s{_GAPS}]*(?P<before>[^\d.,]*(?:[A-Za-z]\.[\s{_GAPS}]*)?)"
    rf"(?P<digits>\d[\d.,'’{_GAPS}]*\d|\d[.,]?|[.,]\d+)(?P<power>[eE][-+]?\d+)?"
    r"(?P<after>[^\d]*|[^\d]*[A-Za-z][23])$"
)
_BARE = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
MOST_MARKS = 100
"""Different signs, or different units, beyond which the texts of a column are no numbers."""


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a column are written.

    ``unit`` is what its numbers are told in: a currency, a unit, "%", or nothing. ``units`` are all
    that were seen, and ``factors`` what one of each is of that.
    """

    thousands: str = ""
    decimal: str = "."
    unit: str = ""
    units: tuple[str, ...] = ()
    factors: tuple[float, ...] = ()

    def read(self, words: Any) -> Any:
        """Texts (a pyarrow string array) as numbers; null where one is none."""
        if isinstance(words, pa.ChunkedArray):
            words = words.combine_chunks()
        if self.decimal != "." or self.thousands == ".":
            return self._read_all(words)
        # Most texts are bare numbers: the others alone are looked at in parts.
        bare = pc.fill_null(pc.match_substring_regex(words, _BARE), False)
        trimmed = pc.utf8_trim_whitespace(pc.if_else(bare, words, pa.scalar(None, pa.string())))
        numbers = trimmed.cast(pa.float64())
        if pc.all(bare).as_py():
            return numbers
        others = pc.invert(bare)
        return pc.replace_with_mask(numbers, others, self._read_all(words.filter(others)))

    def _read_all(self, words: Any) -> Any:
        parts = pc.extract_regex(words, _PARTS)
        pattern, gap = _grouped(self.thousands), re.escape(self.decimal)
        digits = parts.field("digits")
        fits = pc.match_substring_regex(digits, rf"^(?:{pattern}(?:{gap}\d*)?|{gap}\d+)$")
        digits = pc.if_else(fits, digits, pa.scalar(None, pa.string()))
        for mark in self.thousands and _like(self.thousands):
            digits = pc.replace_substring(digits, mark, "")
        if self.decimal != ".":
            digits = pc.replace_substring(digits, self.decimal, ".")
        numbers = pc.binary_join_element_wise(digits, parts.field("power"), "").cast(pa.float64())
        before = _each(parts.field("before"), self._sign)
        after = _each(parts.field("after"), self._factor)
        open_ = pc.match_substring(parts.field("before"), "(")
        closed = pc.match_substring(parts.field("after"), ")")
        numbers = pc.multiply(pc.multiply(numbers, before), after)
        return pc.if_else(pc.equal(open_, closed), numbers, pa.scalar(None, pa.float64()))

    def _sign(self, before: str) -> float | None:
        """1 or -1, or None where what stands before the digits is neither sign nor currency."""
        bare = before.translate(_NO_GAPS).replace("(", "", 1)
        negative = "(" in before or any(mark in bare for mark in _MINUS)
        for mark in (*_MINUS, "+", "~", "≈"):
            bare = bare.replace(mark, "", 1)
        # What a column of dollars says in euros is not known in dollars.
        currencies = {self.unit} if self.unit in _CURRENCIES else _CURRENCIES
        return (-1.0 if negative else 1.0) if bare == "" or bare in currencies else None

    def _factor(self, after: str) -> float | None:
        unit = _unit(after)
        if not unit:
            return 1.0
        return self.factors[self.units.index(unit)] if unit in self.units else None


def find_style(words: Any, least: float) -> NumberStyle | None:
    """Find how numbers are written in texts (a pyarrow string array without null).

    None where fewer than the share ``least`` of those that are no marks of missing values can be
    read, or where it is not certain how: "1,234" alone may be 1234 or 1.234, and numbers of two
    currencies are no numbers of one column.
    """
    marks = pc.is_in(words, value_set=texts_as_arrow(MISSING_TEXTS))
    words = words.filter(pc.invert(marks))
    if not len(words):
        return None
    parts = pc.extract_regex(words, _PARTS)
    counts = _counts(parts.field("after"))
    signs = _counts(parts.field("before"))
    if sum(counts.values()) < least * len(words) or max(len(counts), len(signs)) > MOST_MARKS:
        return None
    units: Counter[str] = Counter()
    for after, count in counts.items():
        units[_unit(after)] += count
    currencies: Counter[str] = Counter()
    for before, count in signs.items():
        bare = before.translate(_NO_GAPS).strip("(+~≈" + _MINUS)
        if bare in _CURRENCIES:
            currencies[bare] += count
    known = _common_units(units, currencies)
    if known is None:
        return None
    marked = bool(known[1] or currencies)
    separators = _separators(parts.field("digits").drop_null(), certain=marked)
    if separators is None:
        return None
    unit, factors = known
    style = NumberStyle(*separators, unit, tuple(factors), tuple(factors.values()))
    numbers = style.read(words)
    return style if len(words) - numbers.null_count >= least * len(words) else None


def _counts(values: Any) -> Counter[str]:
    counted = pc.value_counts(values.drop_null())
    return Counter(dict(zip(*(part.to_pylist() for part in counted.flatten()), strict=True)))


def _each(values: Any, function: Callable[[str], float | None]) -> Any:
    """A function of texts, asked once for each that is different."""
    encoded = pc.dictionary_encode(values)
    results = pa.array([function(word) for word in encoded.dictionary.to_pylist()], pa.float64())
    return results.take(encoded.indices)


def _unit(after: str) -> str:
    """What stands behind the digits, without brackets, spaces and a plus."""
    unit = after.replace(")", "", 1).strip(_GAPS + "\t+").rstrip(".")
    return unit[:-1] + {"2": "²", "3": "³"}[unit[-1]] if unit[-1:] in ("2", "3") else unit


def _common_units(
    units: Counter[str], currencies: Counter[str]
) -> tuple[str, dict[str, float]] | None:
    """The unit that a column is told in, and the factor of each; None where units do not mix."""
    names = [unit for unit in units if unit]
    magnitudes: dict[str, float] = {}
    plain: dict[str, str] = {}
    money = bool(currencies) or any(name in _CURRENCIES for name in names)
    short = {"m": 1e6, "T": 1e12} if money or {"k", "K"} & {*names} else {}
    in_bytes = any(name in ("KB", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB") for name in names)
    for name in names:
        word, _, rest = name.partition(" ")
        scale = short.get(word) or _MAGNITUDES.get(word)
        if scale is not None and not (in_bytes and word == "B"):
            magnitudes[name], plain[name] = scale, rest.strip()
        elif not rest and len(word) > 1 and word[0] in "kKMB" and word[1:] in _CURRENCIES:
            magnitudes[name], plain[name] = _MAGNITUDES[word[0]], word[1:]
        else:
            magnitudes[name], plain[name] = 1.0, name
    for name, unit in plain.items():
        if unit in _CURRENCIES:
            currencies[unit] += units[name]
            plain[name] = ""
    rare = sum(currencies.values()) - max(currencies.values(), default=0)
    if rare > 0.01 * units.total():
        return None
    currency = max(currencies, key=lambda name: currencies[name]) if currencies else ""
    bases = {unit for unit in plain.values() if unit}
    if bases and any(scale != 1.0 and not plain[name] for name, scale in magnitudes.items()):
        return None  # "3A" and "3B" are no numbers
    if not bases:
        return currency, magnitudes
    for family in _FAMILIES:
        same: dict[str, str | None] = {}
        for unit in bases:
            forms = (unit, unit.rstrip("s"), unit.lower(), unit.lower().rstrip("s"))
            same[unit] = next((form for form in forms if form in family), None)
        if all(same.values()):
            totals = Counter[str]()
            for name, unit in plain.items():
                totals[same.get(unit) or ""] += units[name]
            del totals[""]
            base = max(totals, key=lambda unit: totals[unit])
            told = "" if base in ("st", "nd", "rd", "th") else base
            of_base = {unit: family[name or base] / family[base] for unit, name in same.items()}
            return told, {
                name: scale * of_base.get(plain[name], 1.0) for name, scale in magnitudes.items()
            }
    stems = {unit.lower().rstrip("s") for unit in bases}
    common = plain[max(plain, key=lambda name: units[name])] or min(bases)
    return (common, magnitudes) if len(stems) == 1 and len(common) <= 20 else None


def _separators(digits: Any, *, certain: bool) -> tuple[str, str] | None:
    """What stands between thousands and before decimals; None where it is not certain."""
    words = [word for word in digits.unique().to_pylist() if not word.isdigit()]
    both = [word for word in words if "," in word and "." in word]
    if both:
        decimal = {max(word.rfind(","), word.rfind(".")) == word.rfind(",") for word in both}
        if len(decimal) > 1:
            return None
        return (".", ",") if decimal.pop() else (",", ".")
    for mark in ("'", " "):
        if any(each in word for word in words for each in _like(mark)):
            return mark, "," if any("," in word for word in words) else "."
    commas = [word for word in words if "," in word]
    if commas:
        if not all(re.fullmatch(_grouped(","), word) for word in commas):
            once = all(word.count(",") == 1 for word in commas)
            return ("", ",") if once and not any("." in word for word in words) else None
        long = any(word.count(",") > 1 for word in commas)
        bare = len(words) < len(digits.unique()) or any("." in word for word in words)
        return (",", ".") if certain or long or bare else None
    dots = [word for word in words if word.count(".") > 1]
    return (".", ",") if dots else ("", ".")


def _like(mark: str) -> str:
    """Characters that are written for a mark between thousands."""
    return {"'": "'’", " ": _GAPS}.get(mark, mark)


def _grouped(mark: str) -> str:
    """A pattern of digits with a mark between thousands, or without."""
    return rf"(?:[1-9]\d{{0,2}}(?:[{re.escape(_like(mark))}]\d{{3}})+|\d+)" if mark else r"\d+"
