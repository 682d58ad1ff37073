"""The rows that a report shows: as pictures, as text, or as their most telling values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

import numpy as np

from biglp._fit.evidence import PARTS, Examples, ReportSample
from biglp._report.charts import data_uri

# --------------------------------------------------------------------------------------------------
# What a report is made of.


@dataclass(frozen=True)
class Step:
    """A way to go on: what for, and what to type."""

    why: str
    command: str


@dataclass(frozen=True)
class Content:
    """Facts behind a report.

    Attributes
    ----------
    title : str
        What the rows are called.
    facts : mapping
        As in ``summary.json``: ``rows``, ``labelled_rows``, ``given`` and ``found`` (of each
        class), ``settings``, ``seconds``, ``peak_memory``, ``steps``, ``versions``, ``command``,
        ``warnings`` and ``told``. What is not there is not shown.
    classes : sequence of str
        Names of the classes, in the order of their codes; empty for measured targets.
    evidence : ReportSample or None
        A sample of the rows.
    beside : list of dict
        For each of the evidence's examples what people know of the row: its ID, text, columns.
    feature_names : sequence of str or None
        Names of the features, where they have names.
    going_on : sequence of Step
    missing : sequence of str
        Sentences on what is not shown, and why.
    values : ndarray or None
        Answers of a regression.
    """

    title: str
    facts: Mapping[str, Any]
    classes: Sequence[str] = ()
    evidence: ReportSample | None = None
    beside: Sequence[Mapping[str, str]] = ()
    feature_names: Sequence[str] | None = None
    going_on: Sequence[Step] = ()
    missing: Sequence[str] = ()
    values: Any = None
    settings: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Find the settings, which nearly all parts look at."""
        object.__setattr__(self, "settings", self.facts.get("settings", {}))


# --------------------------------------------------------------------------------------------------
# Rows that are pixels, recognised and drawn.
#
# A row of side² numbers may be a grey square, one of 3·side² a coloured one, its channels one after
# the other or pixel by pixel. It is taken for one when neighbours in both directions are much more
# alike than pixels in general and all share one scale, which no table and no embedding does.


SMALLEST, LARGEST = 6, 256
"""Sides that a picture may have."""
ALIKE = 0.85
"""Difference of neighbours, at most, in units of the difference of two pixels at random."""
ONE_SCALE = 0.3
"""Range of the usual pixel, at least, in units of the largest: pixels share one scale."""
LOOKED_AT = 100
"""Rows that tell whether rows are pictures."""
SHOWN_SIDE = 48
"""Larger pictures are made smaller, so that a page stays small."""


@dataclass(frozen=True)
class Pictures:
    """How a row becomes a picture.

    Attributes
    ----------
    side : int
    channels : int
        1 for grey, 3 for colours.
    planar : bool
        Whether channels come one after the other.
    low, high : float
        Values that are shown as black and white.
    """

    side: int
    channels: int
    planar: bool
    low: float
    high: float

    @classmethod
    def of(cls, rows: np.ndarray) -> Pictures | None:
        """Say how rows are pictures; None where they are none."""
        rows = rows[:LOOKED_AT].astype(np.float64)  # differences of float32 may overflow
        if not len(rows) or not _one_scale(rows):
            return None
        trials = []
        for channels in (1, 3):
            side = side_of(rows.shape[1], channels)
            if side is None:
                continue
            for planar in (True, False)[: 1 if channels == 1 else 2]:
                found = cls(side, channels, planar, 0.0, 1.0)
                trials.append((found._roughness(rows), found))
        roughness, best = min(trials, key=lambda trial: trial[0], default=(np.inf, None))
        if best is None or roughness > ALIKE:
            return None
        low, high = float(rows.min()), float(rows.max())
        return cls(best.side, best.channels, best.planar, low, high)

    def draw(self, row: np.ndarray) -> str:
        """A row as the address of a picture."""
        pixels = self._pixels(row[None].astype(np.float64))[0]
        step = -(-self.side // SHOWN_SIDE)
        if step > 1:
            kept = self.side // step * step
            pixels = pixels[:kept, :kept].reshape(kept // step, step, kept // step, step, -1)
            pixels = pixels.mean(axis=(1, 3))
        width = max(self.high - self.low, np.finfo(np.float32).tiny)
        return data_uri(np.clip(np.rint(255 * (pixels - self.low) / width), 0, 255))

    def _pixels(self, rows: np.ndarray) -> np.ndarray:
        """(b, m) → (b, side, side, channels)."""
        if self.planar:
            shaped = rows.reshape(-1, self.channels, self.side, self.side)
            return np.moveaxis(shaped, 1, 3)
        return rows.reshape(-1, self.side, self.side, self.channels)

    def _roughness(self, rows: np.ndarray) -> float:
        """How unlike neighbours are, beside two pixels of the same channel at random."""
        pixels = self._pixels(rows.astype(np.float64))
        mixed = np.random.default_rng(0).permutation(self.side * self.side)
        flat = pixels.reshape(len(pixels), -1, self.channels)
        usual = np.abs(flat - flat[:, mixed]).mean()
        steps = [np.abs(np.diff(pixels, axis=axis)).mean() for axis in (1, 2)]
        return float(max(steps) / usual) if usual > 0 else np.inf


def _one_scale(rows: np.ndarray) -> bool:
    """Whether features that vary span nearly the same range."""
    width = np.ptp(rows, axis=0)
    varies = width[width > 0]
    return len(varies) > 0 and bool(np.median(varies) >= ONE_SCALE * varies.max())


def side_of(n_features: int, channels: int = 1) -> int | None:
    """Side of the square that so many numbers fill; None where they fill none."""
    side = isqrt(n_features // channels)
    whole = side * side * channels == n_features
    return side if whole and SMALLEST <= side <= LARGEST else None


# --------------------------------------------------------------------------------------------------


TITLES = {
    "typical": ("Typical", "one of each of its clusters"),
    "doubtful": ("Doubtful", "the least sure of the sample"),
    "suspicious": ("Suspicious", "a label that the others contradict"),
}
TOLD = 6
"""Values that are shown of a row."""
TINY = 1e-12


def shown_rows(content: Content, colours: Sequence[str]) -> list[dict[str, Any]]:
    """Cards of each class that is shown."""
    if content.evidence is None:
        return []
    examples, names = content.evidence.examples, list(content.classes)
    pictures = pictures_of(examples)
    chosen = telling(examples)[:TOLD]
    cards: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for place, (part, code) in enumerate(
        zip(examples.parts.tolist(), examples.codes.tolist(), strict=True)
    ):
        other, share = names[examples.others[place]], float(examples.shares[place])
        card: dict[str, Any] = {
            "row": int(examples.rows[place]),
            "note": _note(PARTS[part], share, other),
            "picture": None,
            "pairs": [],
        }
        if pictures is not None:
            card["picture"] = pictures.draw(examples.values[place])
            card["about"] = f"row {card['row']}, {names[code]}"
        if place < len(content.beside):
            card["pairs"] = list(content.beside[place].items())
        elif pictures is None:
            card["pairs"] = _values(examples, place, chosen, content.feature_names)
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


def pictures_of(examples: Examples) -> Pictures | None:
    """How the rows are pictures; None where they are none."""
    if not len(examples.values) or len(examples.columns):
        return None
    return Pictures.of(examples.values)


def telling(examples: Examples) -> np.ndarray:
    """Features in the order in which typical rows of the classes differ in them."""
    typical = examples.parts == PARTS.index("typical")
    if not typical.any() or not len(examples.values) or len(examples.columns):
        return np.empty(0, dtype=np.int64)
    values, codes = examples.values[typical].astype(np.float64), examples.codes[typical]
    each = [values[codes == code] for code in np.unique(codes)]
    between = np.array([rows.mean(axis=0) for rows in each]).var(axis=0)
    within = np.mean([rows.var(axis=0) for rows in each], axis=0)
    return np.argsort(-between / (within + between.mean() / 100 + TINY), kind="stable")


def _values(
    examples: Examples, place: int, chosen: np.ndarray, names: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Names and values of the most telling features; of a sparse row its largest entries."""
    if not len(examples.values):
        return []
    values = examples.values[place]
    if len(examples.columns):
        at = np.flatnonzero(examples.columns[place] >= 0)[:TOLD]
        features, numbers = examples.columns[place][at], values[at]
    else:
        features, numbers = chosen, values[chosen]
    return [
        (_name(int(feature), names), f"{number:.4g}")
        for feature, number in zip(features, numbers, strict=True)
    ]


def _name(feature: int, names: Sequence[str] | None) -> str:
    return f"feature {feature}" if names is None or feature >= len(names) else str(names[feature])


def _note(part: str, share: float, other: str) -> str:
    """What is said below a row."""
    if part == "suspicious":
        return f"rather {other}; {share:.0%} likely wrong"
    return f"{share:.0%} sure" + (f", else {other}" if part == "doubtful" else "")
