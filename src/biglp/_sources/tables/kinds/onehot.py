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
    """

    kind = "onehot"
    expects = "categories"
    as_text = True
    categories: tuple[str, ...] = ()
    filled: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``column=category``."""
        return tuple(f"{self.name}={value}" for value in self.categories)

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Set the ones."""
        categories = pa.array(self.categories, type=pa.string())
        found = pc.index_in(text(values), value_set=categories, skip_nulls=True)
        codes = found.fill_null(-1).to_numpy()
        known = np.flatnonzero(codes >= 0)
        out[:] = 0
        out[codes[known], known] = 1
        refused = values.null_count and not self.filled
        return np.asarray(values.is_null()) if refused else None
