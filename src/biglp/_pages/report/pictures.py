"""Rows that are pixels, recognised and drawn.

A row of side² numbers may be a grey square, one of 3·side² a coloured one, its channels one after
the other or pixel by pixel. It is taken for one when neighbours in both directions are much more
alike than pixels in general and all share one scale, which no table and no embedding does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from biglp._pages.report.png import data_uri

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
