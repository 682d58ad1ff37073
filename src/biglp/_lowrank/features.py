"""Rows to normalised features φ̄ = φ/√d: the part of a graph that travels to other processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Array, Rows, to_numpy
from biglp._core.blocks import Block
from biglp._lowrank.base import Factor
from biglp._lowrank.fused import FEW_COLUMNS, compiled_blocks
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

    def summed(self, block: Block) -> tuple[np.ndarray, int, np.ndarray, np.ndarray] | None:
        """As :meth:`of_block`, with F̄ᵀF̄ and F̄ᵀ1; None where NumPy is as quick."""
        if not self.factor.compiled or "repaired" in block.memory:
            return None
        features = self.factor.block_features(block)
        if features.shape[1] <= FEW_COLUMNS:
            return None
        gram, totals, repaired = compiled_blocks().gram(features, self.normalisation)
        if self.factor.store.in_place:
            block.memory["repaired"] = repaired
        return features, repaired, gram, totals

    def of_chosen(self, block: Block, rows: np.ndarray) -> Any:
        """Normalised features of those of some rows, by number, that a training block holds."""
        first, last = np.searchsorted(rows, [block.start, block.stop])
        features, _ = self.of_block(block)
        return float64_features(features[rows[first:last] - block.start])


def float64_features(features: Array) -> Any:
    """Features of a few rows, from any device, for the small algebra; CSR remains CSR."""
    features = to_numpy(features)
    if sparse.issparse(features):
        return sparse.csr_array(features, dtype=np.float64)
    return np.asarray(features, dtype=np.float64)
