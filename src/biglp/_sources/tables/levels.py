"""What only a pass over all rows can tell: categories with their counts, means, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc

from biglp._sources.tables.arrow_columns import text
from biglp._sources.tables.kinds.date import as_numbers
from biglp._sources.tables.table import TableFile, stream

MOST_LEVELS = 1_000_000
"""Different texts that are counted; from then on a column is taken for one of names or IDs."""


@dataclass
class Levels:
    """Categories of one column.

    Attributes
    ----------
    counts : Counter
        Rows of each category.
    missing : int
        Rows without one.
    """

    counts: Counter[str] = field(default_factory=Counter)
    missing: int = 0

    @property
    def too_many(self) -> bool:
        """Whether counting was given up."""
        return len(self.counts) > MOST_LEVELS

    def add(self, values: Any) -> None:
        """Count the texts of some rows."""
        self.missing += int(values.null_count)
        if self.too_many:
            return
        found = pc.value_counts(text(values).drop_null())
        names, counts = found.field("values").to_pylist(), found.field("counts").to_pylist()
        self.counts.update(dict(zip(names, counts, strict=True)))

    def ordered(self) -> list[tuple[str, int]]:
        """Categories with their counts, the most frequent first, ties by name."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass
class Totals:
    """Sum and range of the numbers of one column."""

    sum: float = 0.0
    count: int = 0
    missing: int = 0
    low: float = np.inf
    high: float = -np.inf

    @property
    def mean(self) -> float:
        """Mean of the numbers that are there."""
        return self.sum / max(self.count, 1)

    @property
    def constant(self) -> bool:
        """Whether there is one value, in every row, or none at all."""
        return self.count == 0 or (self.low == self.high and self.missing == 0)

    def add(self, values: Any) -> None:
        """Add the numbers or moments of some rows."""
        array = as_numbers(values).astype(np.float64, copy=False)
        there = array[~np.isnan(array)]
        self.missing += len(array) - len(there)
        self.count += len(there)
        if len(there):
            self.sum += float(there.sum())
            self.low = min(self.low, float(there.min()))
            self.high = max(self.high, float(there.max()))


def tally(
    files: Sequence[TableFile], texts: Sequence[str], totals: Sequence[str]
) -> tuple[dict[str, Levels], dict[str, Totals]]:
    """Count categories and add numbers, in one pass over the columns that need it."""
    levels = {column: Levels() for column in texts}
    sums = {column: Totals() for column in totals}
    wanted = [*texts, *totals]
    for batch in stream(files, wanted) if wanted else ():
        for column in texts:
            levels[column].add(batch.column(column))
        for column in totals:
            sums[column].add(batch.column(column))
    return levels, sums
