"""A column of few different texts: one feature each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._sources.tables.arrow_columns import text
from biglp._sources.tables.kinds.base import Column


@dataclass(frozen=True)
class OneHot(Column):
    """1 where a row has the category, 0 elsewhere.

    A category that is not in the list is 0 everywhere, and so is a missing one where that may be.

    Attributes
    ----------
    categories : tuple of str
    filled : bool
        Whether a value may be missing.
    missing : bool
        Whether "missing" is a category of its own.
    """

    kind = "onehot"
    expects = "categories"
    categories: tuple[str, ...] = ()
    filled: bool = False
    missing: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``column=category``."""
        names = tuple(f"{self.name}={value}" for value in self.categories)
        return (*names, f"{self.name} is missing") if self.missing else names

    def describe(self) -> str:
        """Say how many features there are."""
        return f"one feature for each of {len(self.categories):,} categories" + (
            " and one for missing ones" if self.missing else ""
        )

    def read_as(self, found: Any) -> Any:
        """Text as it is written."""
        return pa.string()

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Set the ones."""
        codes = level_codes(values, self.categories)
        known = np.flatnonzero(codes >= 0)
        out[:] = 0
        out[codes[known], known] = 1
        if not values.null_count:
            return None
        empty = np.asarray(values.is_null())
        if self.missing:
            out[-1] = empty
        return None if self.filled or self.missing else empty


def level_codes(values: Any, levels: tuple[str, ...]) -> np.ndarray:
    """Place of each value in the list of levels; −1 where it is missing or not in the list."""
    known = pa.array(levels, type=pa.string())
    found = pc.index_in(text(values), value_set=known, skip_nulls=True)
    return np.asarray(found.fill_null(-1).to_numpy())
