"""Pictures and charts of a report: positions and sizes in the units of their SVG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np

LEVEL = 6
"""How hard to compress: 9 takes seven times as long for a map, and saves a tenth."""
COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
"""PNG's number for grey, RGB and RGBA."""


def png(pixels: np.ndarray) -> bytes:
    """Write an image of 8-bit pixels.  (height, width) or (height, width, 1, 3 or 4)."""
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_TYPES[channels], 0, 0, 0)
    lines = np.ascontiguousarray(pixels, dtype=np.uint8).reshape(height, -1)
    # Each line begins with the number of its filter: 0, none.
    raw = np.concatenate([np.zeros((height, 1), dtype=np.uint8), lines], axis=1).tobytes()
    file = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(raw, LEVEL)), (b"IEND", b"")):
        file += struct.pack(">I", len(data)) + kind + data
        file += struct.pack(">I", zlib.crc32(kind + data))
    return file


def data_uri(pixels: np.ndarray) -> str:
    """An image as an address that holds it, so that a page needs no file beside it."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#d55e00",
    "#56b4e9",
    "#8c6bb1",
    "#a6761d",
    "#66a61e",
    "#e7298a",
)
"""Of the largest classes, in the order of the classes; they can be told apart by most people."""
OTHERS = "#8a8a8a"
MAP_WIDTH, MAP_HEIGHT, MARGIN = 720, 480, 24
MOST_MARKS, MOST_NAMES = 300, 20
CROWDED = 0.6
"""How much of a position on the map is told by rank, the rest by value."""
FEW_DOTS = 6000
"""Rows up to which dots are large."""


def class_colours(sizes: np.ndarray) -> list[str]:
    """A colour for each class: of its own for the largest ones, grey for the others."""
    largest = np.sort(np.argsort(-sizes, kind="stable")[: len(COLOURS)])
    colours = [OTHERS] * len(sizes)
    for colour, code in zip(COLOURS, largest.tolist(), strict=False):
        colours[code] = colour
    return colours


def draw_map(
    places: np.ndarray,
    codes: np.ndarray,
    labelled_places: np.ndarray,
    labelled_codes: np.ndarray,
    names: Sequence[str],
    colours: Sequence[str],
) -> dict[str, Any]:
    """The map of the rows: coloured dots, names of classes over them.

    ``places``, (m, 2), and class ``codes``, (m,), of rows, and the same of labelled ones.
    """
    area = np.array([MAP_WIDTH, MAP_HEIGHT]) - 2 * MARGIN
    positions, marks = (
        MARGIN + np.column_stack([x, 1.0 - y]) * area
        for x, y in (part.T for part in stretched(places, labelled_places))
    )
    # Dots on a transparent ground, in twice the size, so that they are fine.
    scale, radius = 2, 5 if len(positions) <= FEW_DOTS else 3
    shape = (scale * MAP_HEIGHT, scale * MAP_WIDTH)
    steps = np.arange(-radius, radius + 1)
    around = [(dy, dx) for dy in steps for dx in steps if dy * dy + dx * dx <= radius * radius]
    # Of dots that overlap the last one is on top; a random order, so that no class always is.
    order = np.random.default_rng(0).permutation(len(positions))
    rows, columns = np.rint(scale * positions[order][:, ::-1]).astype(np.int64).T
    top = np.full(shape, -1, dtype=np.int32)
    for dy, dx in around:
        inside = (np.clip(rows + dy, 0, shape[0] - 1), np.clip(columns + dx, 0, shape[1] - 1))
        np.maximum.at(top, inside, np.arange(len(order), dtype=np.int32))
    palette = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours])
    # The last line is that of pixels without a dot, whose number is -1: transparent.
    ink = np.zeros((len(order) + 1, 4), dtype=np.uint8)
    ink[:-1, :3], ink[:-1, 3] = palette[codes[order]], 255
    sizes = np.bincount(codes, minlength=len(names))
    named = np.argsort(-sizes, kind="stable")[:MOST_NAMES]
    named = named[sizes[named] > 0]
    centres = [np.median(positions[codes == code], axis=0) for code in named]
    return {
        "width": MAP_WIDTH,
        "height": MAP_HEIGHT,
        "src": data_uri(ink[top]),
        "names": [
            {"x": round(float(x)), "y": round(float(y)), "name": names[code]}
            for code, (x, y) in zip(named.tolist(), centres, strict=True)
        ],
        "marks": [
            {
                "x": round(float(x), 1),
                "y": round(float(y), 1),
                "colour": colours[code],
                "name": names[code],
            }
            for code, (x, y) in zip(
                labelled_codes[:MOST_MARKS].tolist(), marks[:MOST_MARKS], strict=True
            )
        ],
        "n_rows": len(positions),
    }


def stretched(*places: np.ndarray) -> list[np.ndarray]:
    """Positions from 0 to 1 that are farther apart where rows are crowded.  (m, 2) each.

    Partly by value, partly by rank: a class apart from all others would else leave these a corner
    of the map.
    """
    every, axes = np.concatenate(places), []
    for axis in (0, 1):
        known, counts = np.unique(every[:, axis], return_counts=True)
        ranks = np.cumsum(counts) / len(every)
        span, positions = known[-1] - known[0], np.full(len(known), 0.5)
        if span > 0:
            positions = (1.0 - CROWDED) * (known - known[0]) / span + CROWDED * ranks
            positions = (positions - positions[0]) / (positions[-1] - positions[0])
        axes.append([np.interp(part[:, axis], known, positions) for part in places])
    return [np.column_stack(both) for both in zip(*axes, strict=True)]


WIDTH, HEIGHT = 360, 232
LEFT, RIGHT, TOP, BOTTOM = 40, 20, 24, 38
"""Chart and its margins."""
BINS = 20
TAILS = 1.645
"""Standard deviations that hold 90 % of a normal distribution."""


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


FRAME = {
    "width": WIDTH,
    "height": HEIGHT,
    "left": LEFT,
    "right": WIDTH - RIGHT,
    "top": TOP,
    "bottom": HEIGHT - BOTTOM,
}
"""Size and axes."""
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def histogram(values: np.ndarray, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    """Bars of how many values lie where, between the ends of the axis."""
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    top = max(int(counts.max(initial=0)), 1) / max(len(values), 1)
    shares = counts / max(len(values), 1)
    width = (high - low) or 1.0
    ticks = [(share, f"{share:.0%}") for share in QUARTERS]
    if (low, high) != (0.0, 1.0):
        ticks = [(share, f"{low + share * width:.3g}") for share in (0.0, 0.5, 1.0)]
    chart: dict[str, Any] = {**FRAME}
    chart["x_ticks"] = [{"at": _x(share), "text": text} for share, text in ticks]
    chart["y_ticks"] = [{"at": _y(part), "text": f"{part * top:.0%}"} for part in (0.0, 0.5, 1.0)]
    at = [_x((edge - low) / width) for edge in edges]
    chart["bars"] = [
        {
            "x": at[bar],
            "width": round(at[bar + 1] - at[bar] - 1, 1),
            "y": _y(share / top),
            "height": round(HEIGHT - BOTTOM - _y(share / top), 1),
            "title": f"{edges[bar]:.3g} to {edges[bar + 1]:.3g}: {share:.1%}",
        }
        for bar, share in enumerate(shares.tolist())
    ]
    return chart


def reliability(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Points of confidence against the share that was right, with 90 % intervals (Wilson's)."""
    chart: dict[str, Any] = {**FRAME}
    chart["x_ticks"] = [{"at": _x(share), "text": f"{share:.0%}"} for share in QUARTERS]
    chart["y_ticks"] = [{"at": _y(share), "text": f"{share:.0%}"} for share in (0.0, 0.5, 1.0)]
    chart["diagonal"] = {"x1": _x(0), "y1": _y(0), "x2": _x(1), "y2": _y(1)}
    chart["points"] = [
        {
            "x": _x(group["confidence"]),
            "y": _y(group["right"]),
            "low": _y(low),
            "high": _y(high),
            "title": f"{group['labels']} labels: {group['confidence']:.0%} sure, "
            f"{group['right']:.0%} right",
        }
        for group in groups
        for low, high in [wilson(group["right"], group["labels"])]
    ]
    return chart


def wilson(share: float, count: int) -> tuple[float, float]:
    """90 % interval of a share of so many."""
    square = TAILS * TAILS / count
    middle = (share + square / 2) / (1 + square)
    reach = TAILS * np.sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def members(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The members of the committee and their shares of the weight, the heaviest first."""
    items = settings.get("members") or []
    # Members of a regression have a weight and an error for each target.
    weights = [float(np.mean(item["weight"])) for item in items]
    total = sum(weights) or 1.0
    shares = [
        {
            "name": item["member"],
            "what": item.get("what", ""),
            "share": weight / total,
            "accuracy": item.get("accuracy"),
            "error": ", ".join(f"{error:.3g}" for error in item.get("error", ())),
        }
        for item, weight in zip(items, weights, strict=True)
    ]
    return sorted(shares, key=lambda member: -member["share"])


# --------------------------------------------------------------------------------------------------
# Rows as pictures. A row of side² numbers may be a grey square, one of 3·side² a coloured one, its
# channels one after the other or pixel by pixel. It is taken for one when neighbours in both
# directions are much more alike than pixels in general and all share one scale, which no table and
# no embedding does.


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
