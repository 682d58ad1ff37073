"""A column of many different texts: the most frequent ones, and how frequent each one is.

One feature for each of hundreds of categories would be as many columns that are nearly always 0,
and codes learnt from the labels would have a handful of labels to learn from. How often a category
occurs needs no label: it tells the usual from the rare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._sources.tables.kinds.base import Column
from biglp._sources.tables.kinds.onehot import level_codes


@dataclass(frozen=True)
class Frequency(Column):
    """The logarithm of a category's count, and one feature for each of the most frequent ones.

    Attributes
    ----------
    categories : tuple of str
        The most frequent first.
    counts : tuple of int
        Rows that each of them has.
    shown : int
        Categories at the beginning of the list that have a feature of their own; all others,
        those that are not in the list among them, share one.
    n_levels : int
        Categories of the table, of which the list may hold the most frequent only.
    filled : bool
        Whether a value may be missing; it counts as one of the others.
    missing : bool
        Whether "missing" is a category of its own.
    """

    kind = "frequency"
    expects = "categories"
    categories: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    shown: int = 0
    n_levels: int = 0
    filled: bool = False
    missing: bool = False

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

    def read_as(self, found: Any) -> Any:
        """Text as it is written."""
        return pa.string()

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Look up the counts and set the ones."""
        codes = level_codes(values, self.categories)
        # What is not in the list is as rare as can be; −1 finds the last place.
        logs = np.log(np.append(np.array(self.counts, dtype=np.float64), 1.0))
        out[0] = logs[codes]
        out[1:] = 0
        ones = np.where((codes < 0) | (codes >= self.shown), self.shown, codes)
        out[1 + ones, np.arange(len(codes))] = 1
        if not values.null_count:
            return None
        empty = np.asarray(values.is_null())
        if self.missing:
            out[1:, empty] = 0
            out[-1] = empty
        return None if self.filled or self.missing else empty
