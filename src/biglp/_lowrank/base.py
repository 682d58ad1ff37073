"""What a low-rank factor is: a map from rows to features φ(x) ∈ R^r with W ≈ ΦΦᵀ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from biglp._core.arrays import Array, Rows, namespace
from biglp._core.blocks import Block
from biglp._lowrank.stores import FeatureStore, NoStore, Packed


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
    store : FeatureStore
        Where the features of a block wait between sweeps.
    """

    kind: ClassVar[str]
    fresh_features: ClassVar[bool] = True
    unit_degrees: ClassVar[bool] = False
    rank: int
    mixing: np.ndarray | None = None
    store: FeatureStore = NoStore()

    @abstractmethod
    def features(self, rows: Rows) -> Array:
        """Return the features of any rows, before mixing.  (b, m) → (b, p)."""

    def block_features(self, block: Block) -> Array:
        """Return the features of a training block, remembered where allowed.  (b, p)."""
        kept = block.memory.get("features")
        if kept is None:
            features = self.features(block.rows())
            kept = self.store.keep(self.pack(features))
            if kept is None:
                return features
            block.memory["features"] = kept
            if not self.store.in_place:
                return features
        return self.unpack(self.store.load(kept))

    def pack(self, features: Array) -> Packed:
        """Turn features into plain arrays for the store."""
        return (features,)

    def unpack(self, packed: Packed) -> Array:
        """Undo :meth:`pack`."""
        return packed[0]

    def stored_bytes_per_row(self, itemsize: int) -> int:
        """Bytes of one row in the store."""
        return itemsize * (self.rank if self.mixing is None else len(self.mixing))

    def bytes_per_row(self, n_features: int, itemsize: int, device: str = "cpu") -> int:
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
