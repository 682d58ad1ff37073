"""The rows that a report shows: as pictures, as text, or as their most telling values.

A row of side² numbers may be a grey square, one of 3·side² a coloured one, its channels one after
the other or pixel by pixel. It is taken for one when neighbours in both directions are much more
alike than pixels in general and all share one scale, which no table and no embedding does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np

from biglp._fit.evidence import PARTS, Examples, ReportSample
from biglp._report.charts import data_uri

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

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the fit, and what it found."""
        settings: Mapping[str, Any] = self.facts.get("settings", {})
        return settings


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


@dataclass(frozen=True)
class Pictures:
    """How a row becomes a square picture, grey or of three channels.

    ``planar``: channels come one after the other. ``low`` and ``high`` are black and white.
    """

    side: int
    channels: int
    planar: bool
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def from_rows(cls, rows: np.ndarray) -> Pictures | None:
        """Say how rows, (b, m), are pictures; None where they are none."""
        rows = rows[:LOOKED_AT].astype(np.float64)  # differences of float32 may overflow
        if not len(rows):
            return None
        width = np.ptp(rows, axis=0)
        varies = width[width > 0]
        if not (len(varies) and np.median(varies) >= ONE_SCALE * varies.max()):
            return None
        trials = []
        for channels, planar in ((1, True), (3, True), (3, False)):
            side = side_of(rows.shape[1], channels)
            if side is not None:
                trial = cls(side, channels, planar)
                trials.append((trial._roughness(rows), trial))
        roughness, best = min(trials, key=lambda trial: trial[0], default=(np.inf, None))
        if best is None or roughness > ALIKE:
            return None
        return replace(best, low=float(rows.min()), high=float(rows.max()))

    def draw(self, row: np.ndarray) -> str:
        """A row as the address of a picture."""
        pixels = self._pixels(row[None].astype(np.float64))[0]
        step = -(-self.side // SHOWN_SIDE)
        if step > 1:
            whole = self.side // step * step
            pixels = pixels[:whole, :whole].reshape(whole // step, step, whole // step, step, -1)
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
        pixels = self._pixels(rows)
        mixed = np.random.default_rng(0).permutation(self.side * self.side)
        flat = pixels.reshape(len(pixels), -1, self.channels)
        usual = np.abs(flat - flat[:, mixed]).mean()
        steps = [np.abs(np.diff(pixels, axis=axis)).mean() for axis in (1, 2)]
        return float(max(steps) / usual) if usual > 0 else np.inf


def side_of(n_features: int, channels: int = 1) -> int | None:
    """Side of the square that so many numbers fill; None where they fill none."""
    side = isqrt(n_features // channels)
    whole = side * side * channels == n_features
    return side if whole and SMALLEST <= side <= LARGEST else None
