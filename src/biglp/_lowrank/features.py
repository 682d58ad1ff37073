"""Rows to normalised features φ̄ = φ/√d: the part of a graph that travels to other processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biglp._compiled import column_sums, compiled_blocks, gram_matrix
from biglp._core.arrays import Array, Rows, to_numpy
from biglp._core.blocks import Block
from biglp._lowrank.base import DENSE_COLUMNS, FeatureMap
from biglp._propagate.normalise import Normalisation


@dataclass(frozen=True)
class Features:
    """A feature map and the degrees of its graph.

    Attributes
    ----------
    factor : FeatureMap
    normalisation : Normalisation
    """

    factor: FeatureMap
    normalisation: Normalisation

    def for_new_rows(self) -> Features:
        """The same without what belongs to the training rows."""
        return replace(self, factor=self.factor.for_new_rows())

    def of_rows(self, rows: Rows) -> Array:
        """Normalised features of any rows, before mixing.  (b, m) → (b, p)."""
        return self.normalisation.apply(self.factor.features(rows))[0]

    def of_block(self, block: Block) -> tuple[Array, int]:
        """Normalised features of a training block, and its rows whose degree was repaired.

        Stored features are overwritten.
        """
        return self._normalised(self.factor.block_features(block), block)

    def to_answer(self, block: Block) -> Array:
        """As :meth:`of_block`, in the type whose products the factor's way of sweeping makes."""
        return quick_to_multiply(self.of_block(block)[0], self.factor.compiled)

    def _normalised(self, features: Array, block: Block) -> tuple[Array, int]:
        repaired = block.memory.get("repaired")
        if repaired is not None:
            return features, repaired  # an earlier sweep has left them normalised
        overwritable = self.factor.overwritable
        features, repaired = self.normalisation.apply(features, in_place=overwritable)
        if self._stays(block):
            block.memory["repaired"] = repaired
        return features, repaired

    def _stays(self, block: Block) -> bool:
        """Whether a block's features stay as a sweep leaves them."""
        return self.factor.overwritable and self.factor.store.stays(block.memory.get("features"))

    def summed(self, block: Block, rows: np.ndarray) -> tuple[Array, Array, Array, int]:
        """What a training block adds to the sums over all rows.

        Returns
        -------
        features : array of shape (l, p)
            Normalised features of ``rows``, counted from the block's first.
        gram, totals : arrays of shape (p, p) and (p,)
            Of all of its rows.
        n_repaired : int
        """
        factor = self.factor
        features = factor.block_features(block)
        ready = "repaired" in block.memory or self.normalisation.weights is None
        stays = self._stays(block)
        found = None if ready else gram(features, self.normalisation, factor.compiled)
        if found is not None:
            matrix, totals, repaired = found
            if stays:
                block.memory["repaired"] = repaired
            return features[rows], matrix, totals, repaired
        fast = self.normalisation.summed(features, in_place=stays, ready=ready)
        if fast is None:
            features, repaired = self._normalised(features, block)
            if sparse.issparse(features) and features.shape[1] <= DENSE_COLUMNS:
                features = features.toarray()
            return features[rows], gram_matrix(features), column_sums(features), repaired
        matrix, totals, repaired = fast
        if stays and not ready:
            block.memory["repaired"] = repaired
        chosen = features[rows]
        if not (ready or stays):
            chosen = self.normalisation.apply(chosen)[0]
        return chosen, matrix, totals, block.memory.get("repaired", repaired)

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


def gram(
    features: Array, normalisation: Normalisation, compiled: bool
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Gram matrix, column sums and repaired rows of features, which are normalised on the way.

    None where that is left to NumPy.
    """
    if not (compiled and isinstance(features, np.ndarray)):
        return None
    matrix, totals, repaired = compiled_blocks().gram(features, normalisation)
    return matrix, totals, repaired


def quick_to_multiply(features: Array, compiled: bool) -> Array:
    """Features whose products with a few columns go the way of the fit."""
    if compiled and isinstance(features, np.ndarray):
        return features.view(compiled_blocks().Multiplied)
    return features
