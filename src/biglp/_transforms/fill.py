"""Missing values of dense rows replaced by the mean of their feature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from biglp._core.arrays import Rows, like, namespace, to_numpy
from biglp._core.errors import BadRowsError
from biglp._core.size import Size
from biglp._transforms.base import RowTransform


@dataclass(frozen=True)
class Fill(RowTransform):
    """NaN becomes ``means`` of its feature; NaN where it stays.  (m,)."""

    name: ClassVar[str] = "fill"
    means: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def embeds(self) -> bool:
        return False

    def fit(self, sample: Rows, size: Size | None = None) -> Self:
        return self.from_pieces([to_numpy(sample)], sample.shape[1], "X")

    @classmethod
    def from_pieces(cls, pieces: Iterable[np.ndarray], n_features: int, name: str) -> Self:
        """Take the mean of what is there of each feature, over all pieces of the rows."""
        sums, counts = np.zeros(n_features), np.zeros(n_features)
        for rows in pieces:
            there = ~np.isnan(rows)
            with np.errstate(over="ignore", invalid="ignore"):  # infinite rows are refused later
                sums += np.sum(rows, axis=0, where=there, dtype=np.float64)
            counts += there.sum(axis=0)
        empty = np.flatnonzero(counts == 0)
        if empty.size:
            raise BadRowsError(
                f"{name}: features {', '.join(map(str, empty[:8]))} (counted from 0) have no "
                "value at all, so there is no mean to fill them with; leave them out."
            )
        return cls(np.asarray(sums / counts))

    def apply(self, rows: Rows) -> Rows:
        xp = namespace(rows)
        missing = xp.isnan(rows)
        return xp.where(missing, like(rows, self.means), rows) if missing.any() else rows

    def width(self, n_features: int) -> int:
        return n_features

    def state(self) -> dict[str, np.ndarray]:
        return {"means": self.means}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        return cls(state["means"])
