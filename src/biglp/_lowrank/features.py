"""Rows to normalised features φ̄ = φ/√d: the part of a graph that travels to other processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, to_numpy
from biglp._core.blocks import Block
from biglp._lowrank.base import Factor
from biglp._lowrank.fused import compiled_blocks
from biglp._propagate.normalise import Normalisation


@dataclass(frozen=True)
class Features:
    """A factor and the degrees of its graph.

    Attributes
    ----------
    factor : Factor
    normalisation : Normalisation
    """

    factor: Factor
    normalisation: Normalisation

    def of_rows(self, rows: Rows) -> Array:
        """Normalised features of any rows, before mixing.  (b, m) → (b, p)."""
        return self.normalisation.apply(self.factor.features(rows))[0]

    def of_block(self, block: Block) -> tuple[Array, int]:
        """Normalised features of a training block, and its rows whose degree was repaired.

        Stored features are overwritten.
        """
        features = self.factor.block_features(block)
        repaired = block.memory.get("repaired")
        if repaired is not None:
            return features, repaired  # an earlier sweep has left them normalised
        overwritable = self.factor.overwritable
        features, repaired = self.normalisation.apply(features, in_place=overwritable)
        if overwritable and self.factor.store.in_place:
            block.memory["repaired"] = repaired
        return features, repaired

    def products_of_block(self, block: Block) -> Array:
        """Normalised features of a training block, of which products are wanted.  (b, p).

        Where sweeps are compiled they are not made: see :class:`Unmade`.
        """
        features = self._as_kept(block)
        return self.of_block(block)[0] if features is None else Unmade(self, block, features)

    def gram_of_block(self, block: Block) -> tuple[np.ndarray, np.ndarray] | None:
        """F̄ᵀF̄ and F̄ᵀ1 where sweeps are compiled; None: they are to be found by NumPy."""
        features, normalisation = self._as_kept(block), self.normalisation
        if features is None:
            return None
        weights, suspect = normalisation.weights, normalisation.suspect_degree
        found: tuple[np.ndarray, np.ndarray] | None
        found = compiled_blocks().gram(features, weights, suspect)
        return found

    def _as_kept(self, block: Block) -> np.ndarray | None:
        """Features before they are normalised, for the compiled loops; None: NumPy's turn."""
        if not self.factor.compiled or "repaired" in block.memory:
            return None
        features: np.ndarray = self.factor.block_features(block)
        return features

    def of_chosen(self, block: Block, rows: np.ndarray) -> Any:
        """Normalised features of those of some rows, by number, that a training block holds."""
        first, last = np.searchsorted(rows, [block.start, block.stop])
        features, _ = self.of_block(block)
        return float64_features(features[rows[first:last] - block.start])


@dataclass(frozen=True)
class Unmade:
    """Normalised features of a block that are made only where more than a product is asked for.

    Attributes
    ----------
    features : Features
    block : Block
    kept : ndarray of shape (b, p)
        Features of the block before they are normalised.
    """

    features: Features
    block: Block
    kept: np.ndarray

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.kept.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and features."""
        return self.kept.shape

    def __matmul__(self, matrix: np.ndarray) -> np.ndarray:
        """F̄·C; by NumPy where a row has a degree that is to be repaired."""
        normalisation = self.features.normalisation
        weights, suspect = normalisation.weights, normalisation.suspect_degree
        found = compiled_blocks().scores(self.kept, weights, suspect, matrix)
        return np.asarray(self[:] @ matrix if found is None else found)

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Normalised features of some rows."""
        return np.asarray(self.features.normalisation.apply(self.kept[rows])[0])


def float64_features(features: Array) -> Any:
    """Features of a few rows, from any device, for the small algebra; CSR remains CSR."""
    features = to_numpy(features)
    if sparse.issparse(features):
        return sparse.csr_array(features, dtype=np.float64)
    return np.asarray(features, dtype=np.float64)
