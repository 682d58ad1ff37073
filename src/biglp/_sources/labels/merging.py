"""Labels from several places made one: votes of several people, and later labels over earlier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biglp._rows.encoding import some
from biglp._sources.labels.codes import LabelCodes


@dataclass(frozen=True)
class Part:
    """Labels from one place.

    Attributes
    ----------
    codes : LabelCodes
        What was read.
    rows, coded : ndarrays of shape (l,)
        Rows, increasing, and the codes of their labels; a row may occur several times.
    weights : ndarray of shape (l,), optional
    told : list of str
        What the user should hear of them.
    """

    codes: LabelCodes
    rows: np.ndarray
    coded: np.ndarray
    weights: np.ndarray | None = None
    told: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, codes: LabelCodes, rows: np.ndarray, coded: np.ndarray, weights: np.ndarray | None
    ) -> Part:
        """Take labels as they were read; without weights, several of a row are votes."""
        told = []
        numbers = codes.whole_numbers() is not None  # then -1 is what one expects
        missing = {mark: n for mark, n in codes.missing.items() if mark != "-1" or not numbers}
        if missing:
            counted = ", ".join(f"{mark!r} ({n:,})" for mark, n in missing.items())
            told.append(
                f"{codes.name}: taken for no label: {counted}. If that is a class, say what marks "
                "rows without a label with --unlabelled VALUE."
            )
        if codes.skipped:
            told.append(f"{codes.name}: {codes.skipped:,} entries without an answer were left out.")
        if weights is None and not codes.by_line:
            rows, coded, weights, several, differing = votes(rows, coded)
            if several:
                told.append(
                    f"{codes.name}: {several:,} rows have several labels; in {differing:,} of them "
                    "they differ" + ("." if not differing else ", and became label distributions.")
                )
        return cls(codes, rows, coded, weights, told)


@dataclass(frozen=True)
class Merged:
    """Labels from all places: rows, increasing, their classes, and weights or None."""

    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    told: list[str]


def merge(parts: Sequence[Part]) -> Merged:
    """Join labels; a row has those of the last place that has any for it."""
    # One type for all: 7 in a table and "7" in a text file are the same class.
    as_text = any(-1 in (part.codes.whole_numbers() or [-1]) for part in parts if len(part.rows))
    told: list[str] = []
    plain = all(part.weights is None for part in parts)
    rows, values, weights = _labels_of(parts[0], as_text, plain)
    for number, part in enumerate(parts):
        told += part.told
        if len(parts) == 1:
            break  # nothing is copied: labels may be as many as rows
        part_rows, fresh, part_weights = _labels_of(part, as_text, plain)
        told.append(_overlap(number, part, (rows, values), fresh))
        if number == 0:
            continue
        kept = ~np.isin(rows, part_rows)
        rows = np.concatenate([rows[kept], part_rows])
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], np.concatenate([values[kept], fresh])[order]
        if weights is not None and part_weights is not None:
            weights = np.concatenate([weights[kept], part_weights])[order]
    return Merged(rows, values, weights, told)


def _labels_of(
    part: Part, as_text: bool, plain: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows, classes and weights of a part; None where no part has weights."""
    values = part.codes.classes(as_text=as_text)[part.coded]
    values = values.astype(object if as_text else np.int64, copy=False)
    if plain:
        return part.rows, values, None
    weights = np.ones(len(part.rows)) if part.weights is None else part.weights
    return part.rows, values, weights


def votes(
    rows: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int, int]:
    """Count the labels of each row.

    Returns
    -------
    rows, codes : ndarrays
        Rows, increasing, and each of their labels once.
    weights : ndarray or None
        The share that a label has among those of its row; None where no row has two.
    several, differing : int
        Rows with several labels, and with different ones.
    """
    if len(rows) < 2 or (np.diff(rows) > 0).all():
        return rows, codes, None, 0, 0
    width = int(codes.max()) + 1
    pairs, counts = np.unique(rows.astype(np.int64) * width + codes, return_counts=True)
    distinct, places, labels = np.unique(pairs // width, return_inverse=True, return_counts=True)
    totals = np.bincount(places, counts)
    several, differing = int((totals > 1).sum()), int((labels > 1).sum())
    weights = counts / totals[places] if differing else None
    return distinct[places], pairs % width, weights, several, differing


def _overlap(
    number: int, part: Part, known: tuple[np.ndarray, np.ndarray], fresh: np.ndarray
) -> str:
    """How many labels of a place there are, and how many of them replace others."""
    rows, first = np.unique(part.rows, return_index=True)
    line = f"{part.codes.name}: {len(rows):,} labelled rows"
    if number == 0:
        return f"{line}."
    known_rows, known_first = np.unique(known[0], return_index=True)
    _, old, new = np.intersect1d(known_rows, rows, assume_unique=True, return_indices=True)
    other = int((known[1][known_first[old]] != fresh[first[new]]).sum())
    if not len(old):
        return f"{line}, none of them labelled before."
    return f"{line}, {len(old):,} of them labelled before and replaced ({other:,} differ)."


def told_of_ids(name: str, unknown: list[Any], repeated: list[Any]) -> list[str]:
    """What is wrong with the IDs of labels."""
    found = []
    if unknown:
        found.append(
            f"{name}: {len(unknown):,} IDs are those of no row, and their labels were left out: "
            f"{some(unknown, 5)}."
        )
    if repeated:
        found.append(
            f"{name}: {len(repeated):,} IDs are those of several rows, and all of these got the "
            f"label: {some(repeated, 5)}. If a row should have an ID of its own, look for rows "
            "that occur twice."
        )
    return found
