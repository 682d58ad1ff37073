"""What only a pass over all rows can tell: categories, means, medians, missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.errors import BadRowsError
from biglp._sources.tables.arrow_columns import text
from biglp._sources.tables.kinds.number import Number
from biglp._sources.tables.median import Median
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
    """Sum, range and missing values of one column of numbers or moments.

    Attributes
    ----------
    column : Number
        Reads the numbers.
    summed : bool
        Whether the mean is asked for.
    middle : Median or None
        Where the median is asked for.
    """

    column: Number
    summed: bool = False
    middle: Median | None = None
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
        try:
            there = self.column.numbers(values)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {self.column.name!r} must hold {self.column.expects}, as its first rows "
                f"do: {error}. Repair that row, or leave the column out (drop=, --drop)."
            ) from error
        low, high = there.min(), there.max()
        if np.isnan(low):  # the least is NaN where any number is
            given = there[~np.isnan(there)]
            self.missing += len(there) - len(given)
            if not len(given):
                return
            there, low, high = given, given.min(), given.max()
        self.count += len(there)
        self.low, self.high = min(self.low, float(low)), max(self.high, float(high))
        if self.summed:
            with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are refused later
                self.sum += float(there.sum(dtype=np.float64))
        if self.middle is not None:
            self.middle.add(there.astype(np.float64, copy=False))


def tally(
    files: Sequence[TableFile], texts: Sequence[str], sums: Mapping[str, Totals]
) -> dict[str, Levels]:
    """Count categories and add numbers, in one pass over the columns that need it.

    Parameters
    ----------
    files : sequence of TableFile
    texts : sequence of str
        Columns whose categories are counted.
    sums : dict of str to Totals
        Columns whose numbers are added, to these totals.
    """
    levels = {column: Levels() for column in texts}
    wanted = [*texts, *sums]
    for batch in stream(files, wanted) if wanted else ():
        for column in texts:
            levels[column].add(batch.column(column))
        for column, total in sums.items():
            total.add(batch.column(column))
    return levels
