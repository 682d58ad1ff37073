"""A column of numbers: one feature, and a second one where values are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._sources.tables.arrow_columns import content_of, numbers, written_numbers
from biglp._sources.tables.kinds.base import Column


@dataclass(frozen=True)
class Number(Column):
    """A number, truth value or decimal as it is.

    Attributes
    ----------
    filling : float or None
        What a missing value becomes; None when it is refused.
    indicator : bool
        Whether a second feature is 1 where the value is missing, 0 elsewhere.
    texts : bool
        Whether the numbers are written as text; texts that are no numbers count as missing.
    thousands : bool
        Whether commas stand between their thousands.
    """

    kind = "number"
    filling: float | None = None
    indicator: bool = False
    texts: bool = False
    thousands: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The column's name."""
        return (self.name, f"{self.name} is missing") if self.indicator else (self.name,)

    @property
    def plain(self) -> bool:
        """Numbers as they are."""
        return not self.indicator and not self.texts

    @property
    def fillings(self) -> tuple[float | None, ...]:
        """What a missing value becomes."""
        return (self.filling, None) if self.indicator else (self.filling,)

    def describe(self) -> str:
        """Say what it is, and what becomes of missing values."""
        kind = f"{self.kind}, written as text" if self.texts else self.kind
        if not self.indicator:
            return kind
        return f"{kind}; missing ones become {self.filling:.6g}, marked by a second feature"

    def takes(self, kind: Any) -> bool:
        """Everything but text, unless that is expected, and moments."""
        return content_of(kind) not in (("time",) if self.texts else ("text", "time"))

    def read_as(self, found: Any) -> Any:
        """Truth values stay what they are, everything else must be a number."""
        if self.texts:
            return pa.string()
        return found if pa.types.is_boolean(found) else pa.float64()

    def numbers(self, values: Any) -> np.ndarray:
        """Values as numbers, missing ones as NaN."""
        if self.texts and content_of(values.type) == "text":
            values = written_numbers(values, thousands=self.thousands)
        return numbers(values)

    def fill(self, values: Any, out: np.ndarray) -> np.ndarray | None:
        """Copy the numbers."""
        if out.dtype.kind == "f":
            out[0] = self.numbers(values)
            empty = np.isnan(out[0])
        else:
            found = self.numbers(values)
            empty = np.isnan(found) if found.dtype.kind == "f" else np.zeros(1, dtype=bool)
            out[0] = np.where(empty, 0, found) if empty.any() else found
        if self.indicator:
            out[1] = empty
        if not empty.any():
            return None
        if self.filling is None:
            return empty
        out[0][empty] = self.filling
        return None
