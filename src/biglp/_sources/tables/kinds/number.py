"""A column of numbers: one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._sources.tables.arrow_columns import content_of, numbers
from biglp._sources.tables.kinds.base import Column


@dataclass(frozen=True)
class Number(Column):
    """A number, truth value or decimal as it is.

    Attributes
    ----------
    filling : float or None
        What a missing value becomes; None when it is refused.
    """

    kind = "number"
    plain = True
    filling: float | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The column's name."""
        return (self.name,)

    @property
    def fillings(self) -> tuple[float | None, ...]:
        """What a missing value becomes."""
        return (self.filling,)

    def takes(self, kind: Any) -> bool:
        """Everything but text."""
        return content_of(kind) != "text"

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Copy the numbers."""
        if out.dtype.kind != "f":
            if values.null_count:
                return np.asarray(values.is_null())
            out[0] = numbers(values)
            return None
        out[0] = numbers(values)
        empty = np.isnan(out[0])
        if not empty.any():
            return None
        if self.filling is None:
            return empty
        out[0][empty] = self.filling
        return None
