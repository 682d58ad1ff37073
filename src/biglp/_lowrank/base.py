"""What a low-rank factor is: a map from rows to features φ(x) ∈ R^r with W ≈ ΦΦᵀ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from biglp._arrays import Array, Rows, Shelf, namespace
from biglp._blocks import Block

_shelf = Shelf()


class NonFiniteRowsError(Exception):
    """A block holds NaN, infinity or values too large to square; caught and explained in fit."""


class Factor(ABC):
    """A low-rank factor of the similarity graph.

    Attributes
    ----------
    rank : int
        Number of features r.
    fresh_features : bool
        True when :meth:`features` makes a new array that may be overwritten.
    unit_degrees : bool
        True when every row's degree is 1 once the columns are scaled (anchor graphs). The sweep
        for the degrees is then not needed.
    mixing : ndarray of shape (p, r) or None
        T with φ = p·T, for a factor that hands out p: multiplying r × r sums by T afterwards is
        cheaper than multiplying every row. None when :meth:`features` returns φ itself.
    remember : bool
        Keep the features of each block between sweeps. They are computed again otherwise.
    """

    kind: ClassVar[str]
    fresh_features: ClassVar[bool] = True
    unit_degrees: ClassVar[bool] = False
    rank: int
    mixing: np.ndarray | None = None
    remember: bool = False

    @abstractmethod
    def features(self, rows: Rows) -> Array:
        """Return the features of any rows, before mixing.  (b, m) → (b, p)."""

    def block_features(self, block: Block) -> Array:
        """Return the features of a training block, remembered where allowed.  (b, p)."""
        features = block.memory.get("features")
        if features is None:
            features = self.features(block.rows())
            if self.remember:
                features = block.memory["features"] = _shelf.keep(features)
        return features

    def bytes_per_row(self, n_features: int, itemsize: int) -> int:
        """Working memory of one row while its block is processed."""
        return itemsize * (n_features + 3 * self.rank)

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`from_state` rebuilds the factor for new rows."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Factor:
        """Rebuild a factor that scores new rows."""

    def describe(self) -> dict[str, Any]:
        """Facts about the factor worth reporting."""
        return {"factor": self.kind, "rank": self.rank}


def check_finite(values: Array) -> None:
    """Raise when a number computed from each row shows NaN, infinity or overflow in the row."""
    if not bool(namespace(values).isfinite(values).all()):
        raise NonFiniteRowsError
