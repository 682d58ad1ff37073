"""Normalisation by degrees (Eq. 2.2, Algorithm S.2), with repair.

d = F·(Fᵀ1) holds the degrees and F̄ = D^(−1/2)·F, so that S = F̄·F̄ᵀ. With s = Fᵀ1 a row needs only
its own features: d_i = f_i · s. Where a factor hands out F before mixing, F = P·T, the same is
d_i = p_i · (T·s), and F̄ is found as D^(−1/2)·P.

A low-rank factor with negative entries (Nyström) can give degrees of zero or less, of which the
root would be NaN. A row is repaired when its degree is both far below the mean degree and tiny
beside ‖f_i‖·‖s‖, that is when f_i and s are at a right angle or worse; its degree becomes
``REPAIR_COSINE · ‖f_i‖ · ‖s‖``, which bounds the row's influence. A row without features stays 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from biglp._compiled import column_sums, gram_matrix
from biglp._compiled import gpu as fused
from biglp._core.arrays import Array, like, namespace

REPAIR_COSINE = 1e-3
SUSPECT_SHARE = 1e-2
"""Share of the mean degree below which a row's degree is looked at more closely."""


@dataclass(frozen=True)
class Normalisation:
    """Turns features into normalised features."""

    column_sums: np.ndarray | None  # s = Fᵀ1, (r,); None where degrees are 1
    n_rows: int  # behind the column sums
    mixing: np.ndarray | None = None  # T (p, r), when features come before mixing

    @cached_property
    def weights(self) -> np.ndarray | None:
        """What features are multiplied by to give the degree; None where degrees are 1.  (p,)."""
        sums = self.column_sums
        return sums if sums is None or self.mixing is None else self.mixing @ sums

    @cached_property
    def least(self) -> float:
        """Degree up to which a row is looked at more closely."""
        if self.column_sums is None:
            return 0.0
        return SUSPECT_SHARE * float(np.linalg.norm(self.column_sums)) ** 2 / self.n_rows

    def apply(self, features: Array, *, in_place: bool = False) -> tuple[Array, int]:
        """F̄ of a block (before mixing) and the number of its rows that were repaired."""
        if self.weights is None:
            return features, 0
        factors, n_repaired = self.factors(features)
        if in_place:
            features *= factors[:, None]
            return features, n_repaired
        return features * factors[:, None], n_repaired

    def factors(self, features: Array) -> tuple[Array, int]:
        """1/√d of a block's rows, and the number of those that were repaired.  (b, p) → (b,)."""
        weights = self.weights
        assert weights is not None
        assert self.column_sums is not None
        xp, n_repaired = namespace(features), 0
        # BLAS may raise the flag in lanes it does not use; new rows may be of any size.
        with np.errstate(over="ignore", invalid="ignore"):
            degrees = features @ like(features, weights)
        suspects = ~(degrees > self.least)
        if bool(suspects.any()):
            rows = features[suspects]
            if self.mixing is not None:
                rows = rows @ like(rows, self.mixing)
            with np.errstate(over="ignore"):  # an infinite degree leaves nothing of a row
                norms = xp.sqrt((rows * rows).sum(1))
                floor = REPAIR_COSINE * float(np.linalg.norm(self.column_sums)) * norms
            low = degrees[suspects]
            lifted, empty = ~(low >= floor), norms == 0
            low = xp.where(lifted, floor, low)
            # Where no training row has features there is nothing to be tied to.
            low = xp.where(low > 0, low, xp.full_like(low, xp.inf))
            # A row without features has nothing to divide: any positive degree leaves it at zero.
            degrees[suspects] = xp.where(empty, xp.ones_like(low), low)
            n_repaired = int((lifted & ~empty).sum())
        return 1.0 / xp.sqrt(degrees), n_repaired

    def summed(self, features: Array, *, in_place: bool, ready: bool) -> tuple[Any, ...] | None:
        """Gram matrix and column sums of F̄, and rows that were repaired, in one read on a GPU.

        None where that cannot be done. ``in_place`` turns features into F̄; ``ready`` says that they
        are F̄ already.
        """
        weights = None if ready else self.weights
        sums = fused.gram(features, weights, self.least, in_place=in_place)
        if sums is None or weights is None:
            return sums and (*sums[:2], 0)
        gram, totals, factors = sums
        suspects, n_repaired = factors == 0, 0
        if bool(suspects.any()):
            rows, n_repaired = self.apply(features[suspects])
            if in_place:
                features[suspects] = rows
            gram, totals = gram + gram_matrix(rows), totals + column_sums(rows)
        return gram, totals, n_repaired
