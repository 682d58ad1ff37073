"""Sums whose bits depend on the numbers alone, not on where or in which order they were added.

Floating-point addition rounds, so (a + b) + c and a + (b + c) differ, and a sum shared out over
processes would change with their number. Here nothing rounds until the end. Every number x is cut
on one fixed grid of binary digits, level L having the unit u_L = 2^(32·L):

    x = q_T + q_(T−1) + q_(T−2) + rest,      q_L a multiple of u_L,  |rest| ≤ u_(T−2) / 2,

where T is the level of the largest number met so far in that place of the array. Slices of one
level are multiples of one unit and at most 2³² of them, so 2²⁰ of them add up below 2⁵³ units: each
addition is exact, hence in any order the same. When a larger number moves T up, the lowest slices
are dropped; they would have been dropped in any other order too.

What is lost is known: the rest is at most 2⁻⁶⁵ of the largest number in that place, 4,000 times
finer than float64 itself, so a single number comes back as it was. Numbers from 2⁹⁹² (4·10²⁹⁸) on
count as infinite, and whatever is not finite makes its place of the sum NaN.

The grid and the cutting follow the idea of Demmel and Nguyen, "Parallel reproducible summation"
(IEEE Transactions on Computers, 2015), with levels kept for each place of the array.
"""

from __future__ import annotations

import numpy as np

WIDTH = 32
SLICES = 3
MAX_TERMS = 2**20
"""Numbers that may be added in one place; base.py cuts its runs so that there are never more."""
_LOWEST_LEVEL = -31  # two levels lower the unit is 2⁻¹⁰⁵⁶, still above the smallest float64
_LOWEST_UNIT = 2.0 ** (WIDTH * _LOWEST_LEVEL)
_HIGHEST = 2.0**992  # from here on the constant that rounds to a unit would overflow
_ROUNDER = 3.0 * 2.0**51  # x + r·u − r·u rounds x to a multiple of u
TILE = 1 << 14  # numbers worked on at a time: the temporaries stay in the cache


class Slices:
    """Exact sum of flat arrays of one size.

    Attributes
    ----------
    units : ndarray of shape (size,)
        Unit of the highest slice in each place.
    slices : ndarray of shape (3, size)
        Sums of the slices, highest first.
    """

    def __init__(self, size: int) -> None:
        self.units = np.full(size, _LOWEST_UNIT)
        self.slices = np.zeros((SLICES, size))

    def add(self, values: np.ndarray, first: int = 0) -> None:
        """Add float64 ``values`` from place ``first`` on."""
        for start in range(0, len(values), TILE):
            part = values[start : start + TILE]
            here = slice(first + start, first + start + len(part))
            _absorb(self.units[here], self.slices[:, here], part)

    def add_at(self, places: np.ndarray, values: np.ndarray) -> None:
        """Add float64 ``values`` at distinct ``places``."""
        units, slices = self.units[places], self.slices.take(places, axis=1)
        _absorb(units, slices, values)
        self.units[places] = units
        for level, changed in zip(self.slices, slices, strict=True):  # twice as fast as all at once
            level[places] = changed

    def lift(self, units: np.ndarray) -> None:
        """Move every place up to the level of ``units``, where that is higher than its own."""
        _lift(self.units, self.slices, np.maximum(units, self.units))

    def merge(self, other: Slices) -> None:
        """Add another sum; both end at the higher level."""
        self.lift(other.units)
        other.lift(self.units)
        self.slices += other.slices

    def levels(self) -> np.ndarray:
        """Levels of the highest slices as int8, for sending."""
        return _levels(self.units).astype(np.int8)

    def lift_to_levels(self, levels: np.ndarray) -> None:
        """As :meth:`lift`, with levels as they were sent."""
        self.lift(_units(levels))

    def values(self) -> np.ndarray:
        """Return the sum, rounded to float64.

        A number just below a unit counts as that unit or as 2³² of the next, depending on the level
        when it came. The total is the same; carrying upwards makes its digits the same too.
        """
        values = np.empty(len(self.units))
        for start in range(0, len(values), TILE):
            here = slice(start, start + TILE)
            units = self.units[here]
            lower_units = units * 2.0**-WIDTH
            highest, middle, lowest = self.slices[:, here]
            # Units are powers of two, so that rounding down to a multiple of one is exact.
            carry = np.floor(lowest / lower_units) * lower_units
            middle, lowest = middle + carry, lowest - carry
            carry = np.floor(middle / units) * units
            highest, middle = highest + carry, middle - carry
            lower = middle + lowest
            total = highest + lower
            # What the two additions lost matters when the highest slice and the lower ones cancel.
            lost = (lowest - (lower - middle)) + (lower - (total - highest))
            values[here] = total + lost
        return values


def _levels(values: np.ndarray) -> np.ndarray:
    """Level of each number, read from the exponent bits."""
    # 2⁵ is the width, and a shift rounds down, also below zero; dividing is several times slower.
    return (((values.view(np.int64) >> 52) & 0x7FF) - 1023) >> 5


def _units(levels: np.ndarray) -> np.ndarray:
    """Make the unit of each level from its exponent bits."""
    return ((levels.astype(np.int64) * WIDTH + 1023) << 52).view(np.float64)


def _absorb(units: np.ndarray, slices: np.ndarray, values: np.ndarray) -> None:
    """Cut ``values`` into slices and add them, in place."""
    size = np.abs(values)
    too_large = size >= units * 2.0**WIDTH
    if too_large.any():
        infinite = size >= _HIGHEST
        if infinite.any():
            values = np.where(infinite, np.nan, values)
        too_large &= ~infinite
        _lift(units, slices, np.where(too_large, _units(_levels(values)), units))
    rounder = units * _ROUNDER
    rest, part = values, size
    for level in range(SLICES):
        np.add(rest, rounder, out=part)
        np.subtract(part, rounder, out=part)
        slices[level] += part
        if level < SLICES - 1:
            rest = np.subtract(rest, part, out=None if level == 0 else rest)
            rounder *= 2.0**-WIDTH


def _lift(units: np.ndarray, slices: np.ndarray, raised: np.ndarray) -> None:
    """Move places up to the units ``raised``, dropping the slices that fall off, in place."""
    if slices.any():  # the first numbers meet empty slices
        moved = np.flatnonzero(raised != units)
        old = slices[:, moved]
        steps = np.minimum(_levels(raised[moved]) - _levels(units[moved]), SLICES)
        # Times zero rather than zero, so that a place that is NaN remains so.
        stacked = np.concatenate([old[:1] * 0.0] * SLICES + [old])
        rows = np.arange(SLICES)[:, None] + SLICES - steps
        slices[:, moved] = np.take_along_axis(stacked, rows, axis=0)
    units[:] = raised
