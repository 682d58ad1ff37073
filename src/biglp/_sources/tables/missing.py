"""Missing values: counted so that one message can say how many there are and where."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from biglp._core.errors import BadRowsError

FIRST_ROWS = 5


@dataclass
class MissingValues:
    """Missing values seen so far: how many in each column, and the first rows that have one.

    Values that are wrong in another way count as well, and are told first: what is wrong with a
    column, in how many rows and in which first.
    """

    counts: dict[str, int] = field(default_factory=dict)
    first_rows: list[int] = field(default_factory=list)
    wrong: dict[tuple[str, str], tuple[int, list[int]]] = field(default_factory=dict)

    def add(self, column: str, rows: np.ndarray) -> None:
        """Count the missing values of one column at ``rows``."""
        self.counts[column] = self.counts.get(column, 0) + len(rows)
        known = sorted({*self.first_rows, *(int(row) for row in rows[:FIRST_ROWS])})
        self.first_rows = known[:FIRST_ROWS]

    def add_wrong(self, column: str, problem: str, rows: np.ndarray) -> None:
        """Count the rows of one column that cannot be features."""
        self.counts[column] = self.counts.get(column, 0) + len(rows)
        count, first = self.wrong.get((column, problem), (0, []))
        first = (first + rows[:FIRST_ROWS].tolist())[:FIRST_ROWS]
        self.wrong[column, problem] = count + len(rows), first

    def error(self, name: str, whole: bool = True) -> BadRowsError:
        """Say how many values are missing and where.

        Parameters
        ----------
        name : str
            What the message calls the table.
        whole : bool
            Whether all rows have been looked at, so that the count is the count of the table.
        """
        if self.wrong:
            return self._wrong_error(name, whole)
        total = sum(self.counts.values())
        worst = sorted(self.counts, key=lambda column: -self.counts[column])
        columns = ", ".join(f"{column!r} ({self.counts[column]:,})" for column in worst[:5])
        more = f" and {len(worst) - 5} more columns" if len(worst) > 5 else ""
        error = BadRowsError(
            f"{name} has {'' if whole else 'at least '}{total:,} missing values, in "
            f"{columns}{more}; first in rows {', '.join(f'{row:,}' for row in self.first_rows)} "
            "(counted from 0). Fill and mark them with missing='auto' (--missing auto), only fill "
            "them with missing='mean' (--missing mean), or leave those columns or rows out."
        )
        error.rows = tuple(self.first_rows)
        return error

    def _wrong_error(self, name: str, whole: bool) -> BadRowsError:
        (column, problem), (count, rows) = next(iter(self.wrong.items()))
        error = BadRowsError(
            f"{name}: column {column!r} {problem} in {'' if whole else 'at least '}{count:,} rows, "
            f"first in rows {', '.join(f'{row:,}' for row in rows)} (counted from 0). Every row "
            "needs a list of the same length, with a number at each place; leave those rows out, "
            "or the column (drop=, --drop)."
        )
        error.rows = tuple(rows)
        return error
