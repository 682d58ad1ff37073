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
    """Turns features into normalised features.

    Attributes
    ----------
    column_sums : ndarray of shape (r,) or None
        s = Fᵀ1; None when the features are used as they are (degrees are 1).
    n_rows : int
        Rows behind the column sums.
    mixing : ndarray of shape (p, r) or None
        T, when features come before mixing.
    """

    column_sums: np.ndarray | None
    n_rows: int
    mixing: np.ndarray | None = None

    @cached_property
    def length(self) -> float:
        """‖s‖."""
        return float(np.linalg.norm(self.column_sums)) if self.column_sums is not None else 0.0

    @cached_property
    def weights(self) -> np.ndarray | None:
        """What features are multiplied by to give the degree; None where degrees are 1.  (p,)."""
        sums = self.column_sums
        return sums if sums is None or self.mixing is None else self.mixing @ sums

    @property
    def least(self) -> float:
        """Degree up to which a row is looked at more closely."""
        return SUSPECT_SHARE * self.length**2 / self.n_rows

    @property
    def floor(self) -> float:
        """Degree that such a row has at least, for each unit of the length of its features."""
        return REPAIR_COSINE * self.length

    @cached_property
    def metric(self) -> np.ndarray:
        """M with ‖f‖² = p·M·p for features p before mixing.  (p, p)."""
        assert self.column_sums is not None
        return np.eye(len(self.column_sums)) if self.mixing is None else self.mixing @ self.mixing.T

    @cached_property
    def stretch(self) -> float:
        """How much longer features become by mixing, at most."""
        return float(np.sqrt(np.linalg.norm(self.metric, 2)))

    def apply(self, features: Array, *, in_place: bool = False) -> tuple[Array, int]:
        """Return F̄ of a block (before mixing) and the number of its rows that were repaired."""
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
        # BLAS may raise the flag in lanes it does not use; new rows may be of any size.
        with np.errstate(over="ignore", invalid="ignore"):
            degrees = features @ like(features, weights)
        suspects = ~(degrees > self.least)
        n_repaired = 0
        if bool(suspects.any()):
            n_repaired = self._repair(features, degrees, suspects)
        return 1.0 / namespace(degrees).sqrt(degrees), n_repaired

    def summed(self, features: Array, *, in_place: bool, ready: bool) -> tuple[Any, ...] | None:
        """Gram matrix and column sums of F̄, and rows that were repaired, in one read on a card.

        None where that cannot be done. ``in_place`` turns features into F̄; ``ready`` says that they
        are F̄ already.
        """
        weights = None if ready else self.weights
        found = fused.gram(features, weights, self.least, in_place=in_place)
        if found is None or weights is None:
            return found and (*found[:2], 0)
        gram, totals, factors = found
        suspects, n_repaired = factors == 0, 0
        if bool(suspects.any()):
            part, n_repaired = self.apply(features[suspects])
            if in_place:
                features[suspects] = part
            gram, totals = gram + gram_matrix(part), totals + column_sums(part)
        return gram, totals, n_repaired

    def _repair(self, features: Array, degrees: Array, suspects: Array) -> int:
        """Lift suspect degrees to their floor, in place; return how many were lifted."""
        xp = namespace(degrees)
        part = features[suspects]
        if self.mixing is not None:
            part = part @ like(part, self.mixing)
        with np.errstate(over="ignore"):  # an infinite degree leaves nothing of a row
            norms = xp.sqrt((part * part).sum(1))
            floor = self.floor * norms
        low = degrees[suspects]
        lifted = ~(low >= floor)
        empty = norms == 0
        low = xp.where(lifted, floor, low)
        # Where no training row has features there is nothing to be tied to.
        low = xp.where(low > 0, low, xp.full_like(low, xp.inf))
        # A row without features has nothing to divide: any positive degree leaves it at zero.
        degrees[suspects] = xp.where(empty, xp.ones_like(low), low)
        return int((lifted & ~empty).sum())
