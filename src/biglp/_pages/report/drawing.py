"""The map of the rows: a picture of coloured dots, with the names of classes over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from biglp._fit.evidence import Evidence
from biglp._pages.report.png import data_uri

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
"""How much of a place on the map is told by rank, the rest by value."""
FEW_DOTS = 6000
"""Rows up to which dots are large."""


def class_colours(found: np.ndarray) -> list[str]:
    """A colour for each class: of its own for the largest ones, grey for the others."""
    largest = np.sort(np.argsort(-found, kind="stable")[: len(COLOURS)])
    colours = [OTHERS] * len(found)
    for colour, code in zip(COLOURS, largest.tolist(), strict=False):
        colours[code] = colour
    return colours


def draw_map(evidence: Evidence, names: list[str], colours: list[str]) -> dict[str, Any] | None:
    """What the page shows of the map; None where there is none.

    Parameters
    ----------
    evidence : Evidence
    names, colours : list of str
        Of the classes.
    """
    if not len(evidence.places):
        return None
    stretch = stretching(np.concatenate([evidence.places, evidence.labelled_places]))

    def on_page(places: np.ndarray) -> np.ndarray:
        x, y = stretch(places).T
        sizes = np.array([MAP_WIDTH, MAP_HEIGHT]) - 2 * MARGIN
        return np.asarray(MARGIN + np.column_stack([x, 1.0 - y]) * sizes)

    places, marks = on_page(evidence.places), on_page(evidence.labelled_places)
    sizes = np.bincount(evidence.codes, minlength=len(names))
    named = np.argsort(-sizes, kind="stable")[:MOST_NAMES]
    named = named[sizes[named] > 0]
    centres = [np.median(places[evidence.codes == code], axis=0) for code in named]
    return {
        "width": MAP_WIDTH,
        "height": MAP_HEIGHT,
        "src": data_uri(_dots(places, evidence.codes, colours)),
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
        "n_rows": len(places),
    }


def stretching(every: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """How places become places from 0 to 1 that are farther apart where rows are crowded."""
    steps = [_stretched(every[:, axis]) for axis in (0, 1)]

    def stretch(places: np.ndarray) -> np.ndarray:
        return np.column_stack([np.interp(places[:, axis], *steps[axis]) for axis in (0, 1)])

    return stretch


def _stretched(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values in order and their places from 0 to 1: partly by value, partly by rank.

    A class apart from all others would else leave these a corner of the map.
    """
    known, counts = np.unique(values, return_counts=True)
    ranks = np.cumsum(counts) / len(values)
    span = known[-1] - known[0]
    if span <= 0:
        return known, np.full(len(known), 0.5)
    places = (1.0 - CROWDED) * (known - known[0]) / span + CROWDED * ranks
    return known, (places - places[0]) / (places[-1] - places[0])


def _dots(places: np.ndarray, codes: np.ndarray, colours: list[str]) -> np.ndarray:
    """Dots on a transparent ground, in twice the size, so that they are fine.  (h, w, 4)."""
    size = 2
    shape = (size * MAP_HEIGHT, size * MAP_WIDTH)
    radius = 5 if len(places) <= FEW_DOTS else 3
    steps = np.arange(-radius, radius + 1)
    around = [(dy, dx) for dy in steps for dx in steps if dy * dy + dx * dx <= radius * radius]
    # Of dots that overlap the last one is on top; a random order, so that no class always is.
    order = np.random.default_rng(0).permutation(len(places))
    y, x = np.rint(size * places[order][:, ::-1]).astype(np.int64).T
    top = np.full(shape, -1, dtype=np.int32)
    for dy, dx in around:
        inside = (np.clip(y + dy, 0, shape[0] - 1), np.clip(x + dx, 0, shape[1] - 1))
        np.maximum.at(top, inside, np.arange(len(order), dtype=np.int32))
    palette = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours])
    # The last line is that of places without a dot, whose number is -1: transparent.
    ink = np.zeros((len(order) + 1, 4), dtype=np.uint8)
    ink[:-1, :3], ink[:-1, 3] = palette[codes[order]], 255
    return ink[top]
