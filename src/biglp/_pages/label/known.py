"""Labels from elsewhere: those of a column or of other files, which may be as many as rows."""

from __future__ import annotations

from collections import Counter

import numpy as np


class Known:
    """Labels by row, a few bytes each.

    Parameters
    ----------
    rows : ndarray of shape (l,)
        Row numbers, increasing; of a row that occurs several times the last counts.
    values : ndarray of shape (l,)
        Their labels.
    """

    def __init__(self, rows: np.ndarray | None = None, values: np.ndarray | None = None) -> None:
        rows = np.empty(0, dtype=np.int64) if rows is None else rows
        values = np.empty(0, dtype=object) if values is None else values
        last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
        self.rows = rows[last]
        distinct, self._codes = np.unique(values[last].astype(str), return_inverse=True)
        self._names = [str(name) for name in distinct]

    def __len__(self) -> int:
        return len(self.rows)

    def get(self, row: int) -> str | None:
        """The label of a row."""
        place = int(np.searchsorted(self.rows, row))
        if place == len(self.rows) or self.rows[place] != row:
            return None
        return self._names[self._codes[place]]

    def counts(self) -> Counter[str]:
        """Rows of each class."""
        counts = np.bincount(self._codes, minlength=len(self._names)).tolist()
        return Counter(dict(zip(self._names, counts, strict=True)))

    def rows_called(self, name: str) -> list[int]:
        """Rows of one class."""
        if name not in self._names:
            return []
        found: list[int] = self.rows[self._codes == self._names.index(name)].tolist()
        return found

    def among(self, rows: np.ndarray) -> dict[int, str]:
        """Labels of those of some rows, increasing, that have one."""
        places = np.flatnonzero(np.isin(self.rows, rows, assume_unique=True))
        codes = self._codes[places]
        names = [self._names[code] for code in codes]
        return dict(zip(self.rows[places].tolist(), names, strict=True))
