"""Pictures and charts of a report: positions and sizes in the units of their SVG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from biglp._fit.evidence import ReportSample

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


def draw_map(evidence: ReportSample, names: list[str], colours: list[str]) -> dict[str, Any] | None:
    """The map of the rows: coloured dots, names of classes over them; None where there is none."""
    if not len(evidence.places):
        return None
    stretch = stretching(np.concatenate([evidence.places, evidence.labelled_places]))

    def on_page(positions: np.ndarray) -> np.ndarray:
        x, y = stretch(positions).T
        sizes = np.array([MAP_WIDTH, MAP_HEIGHT]) - 2 * MARGIN
        return np.asarray(MARGIN + np.column_stack([x, 1.0 - y]) * sizes)

    positions, marks = on_page(evidence.places), on_page(evidence.labelled_places)
    sizes = np.bincount(evidence.codes, minlength=len(names))
    named = np.argsort(-sizes, kind="stable")[:MOST_NAMES]
    named = named[sizes[named] > 0]
    centres = [np.median(positions[evidence.codes == code], axis=0) for code in named]
    return {
        "width": MAP_WIDTH,
        "height": MAP_HEIGHT,
        "src": data_uri(_dots(positions, evidence.codes, colours)),
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
                evidence.labelled_codes[:MOST_MARKS].tolist(), marks[:MOST_MARKS], strict=True
            )
        ],
        "n_rows": len(positions),
    }


def stretching(every: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """How positions become ones from 0 to 1 that are farther apart where rows are crowded.

    Partly by value, partly by rank: a class apart from all others would else leave these a corner
    of the map.
    """
    steps = []
    for values in every.T:
        known, counts = np.unique(values, return_counts=True)
        ranks = np.cumsum(counts) / len(values)
        span = known[-1] - known[0]
        if span > 0:
            positions = (1.0 - CROWDED) * (known - known[0]) / span + CROWDED * ranks
            steps.append((known, (positions - positions[0]) / (positions[-1] - positions[0])))
        else:
            steps.append((known, np.full(len(known), 0.5)))

    def stretch(positions: np.ndarray) -> np.ndarray:
        return np.column_stack([np.interp(positions[:, axis], *steps[axis]) for axis in (0, 1)])

    return stretch


def _dots(positions: np.ndarray, codes: np.ndarray, colours: list[str]) -> np.ndarray:
    """Dots on a transparent ground, in twice the size, so that they are fine.  (h, w, 4)."""
    size = 2
    shape = (size * MAP_HEIGHT, size * MAP_WIDTH)
    radius = 5 if len(positions) <= FEW_DOTS else 3
    steps = np.arange(-radius, radius + 1)
    around = [(dy, dx) for dy in steps for dx in steps if dy * dy + dx * dx <= radius * radius]
    # Of dots that overlap the last one is on top; a random order, so that no class always is.
    order = np.random.default_rng(0).permutation(len(positions))
    y, x = np.rint(size * positions[order][:, ::-1]).astype(np.int64).T
    top = np.full(shape, -1, dtype=np.int32)
    for dy, dx in around:
        inside = (np.clip(y + dy, 0, shape[0] - 1), np.clip(x + dx, 0, shape[1] - 1))
        np.maximum.at(top, inside, np.arange(len(order), dtype=np.int32))
    palette = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours])
    # The last line is that of pixels without a dot, whose number is -1: transparent.
    ink = np.zeros((len(order) + 1, 4), dtype=np.uint8)
    ink[:-1, :3], ink[:-1, 3] = palette[codes[order]], 255
    return ink[top]


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


def _frame() -> dict[str, Any]:
    """Size and axes."""
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "x_ticks": [{"at": _x(share), "text": f"{share:.0%}"} for share in ticks],
    }


def histogram(values: np.ndarray, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    """Bars of how many values lie where, between the ends of the axis."""
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    top = max(int(counts.max(initial=0)), 1) / max(len(values), 1)
    shares = counts / max(len(values), 1)
    width = (high - low) or 1.0
    chart = _frame()
    if (low, high) != (0.0, 1.0):
        chart["x_ticks"] = [
            {"at": _x(share), "text": f"{low + share * width:.3g}"} for share in (0.0, 0.5, 1.0)
        ]
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
    chart = _frame()
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


def interval(estimate: Mapping[str, Any]) -> dict[str, float]:
    """Places, in percent of a line, of an estimate, its interval and the simplest answer."""
    low, high = estimate["interval"]
    return {
        "low": round(100 * low, 1),
        "width": round(100 * (high - low), 1),
        "at": round(100 * estimate["accuracy"], 1),
        "base": round(100 * estimate["base_rate"], 1),
    }
