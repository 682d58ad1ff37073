"""Label propagation by a Cholesky factor of I − αH for each of a few α.

Notation as in :mod:`.systems`; L·Lᵀ = I − αH is the factor (:mod:`.cholesky`), and

    fᵀ(I − αH)⁻¹f = ‖L⁻¹f‖²

is what comes back to a row with features f.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from biglp._propagate.cholesky import Cholesky
from biglp._propagate.sums import GramSums

MOST_LABELLED, MOST_SOLVED = 5000, 1000
"""Labelled rows that leave-one-out looks at; and where each of them has to be solved for. More
change nothing and cost time."""
KEPT_FACTORS = 2
"""Factors that are kept: those of the α that a committee asks for, side by side."""
DENSE_ROWS_AT_ONCE = 256
"""Labelled rows that are solved for at once."""


@dataclass(frozen=True)
class DenseSystem:
    """The Gram matrix H of an anchor graph, factorised for each α that is asked for.

    A Cholesky factor costs a thirtieth of all eigenvectors, and a committee asks for few α. A
    sparse H becomes dense in its factor only.

    Attributes
    ----------
    radius : float
        max(1, a bound on the largest eigenvalue of H): what S is divided by.
    sums : GramSums
        The sums behind it.
    """

    radius: float
    sums: GramSums
    _latest: dict[float, Any] = field(default_factory=dict, repr=False, compare=False)
    _found: dict[float, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def most_labelled(self) -> int:
        """Labelled rows that leave-one-out looks at."""
        return MOST_SOLVED if sparse.issparse(self.sums.gram) else MOST_LABELLED

    def coefficients(self, alpha: float) -> np.ndarray:
        """C, so that F = (1−α)Y + F̄·C.  (r, c)."""
        found = self._found.get(alpha)
        if found is None:  # the answer asks for it, and leave-one-out again
            found = self._solved(alpha, self.sums.targets)
            keep_latest(self._found, alpha, found)
        return found

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        """What a row with features f gives to all rows is f times this.  (r,)."""
        return self._solved(alpha, self.sums.totals)

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        factor, (n_rows, rank) = self._factor(alpha), features.shape
        is_sparse = sparse.issparse(features)
        # L⁻¹ takes as long as solves for two thirds of r rows; each row then takes hardly any.
        inverse = factor.inverse() if is_sparse and 3 * n_rows > 2 * rank else None
        energies = np.empty(n_rows)
        for start in range(0, n_rows, DENSE_ROWS_AT_ONCE):
            rows = features[start : start + DENSE_ROWS_AT_ONCE]
            if inverse is None:
                half = factor.half(rows.toarray().T if is_sparse else rows.T)
                energies[start : start + DENSE_ROWS_AT_ONCE] = np.einsum("ij,ij->j", half, half)
            else:
                half = rows @ inverse
                energies[start : start + DENSE_ROWS_AT_ONCE] = np.einsum("ij,ij->i", half, half)
        return (1.0 - alpha) * alpha / self.radius * energies

    def _solved(self, alpha: float, right: np.ndarray) -> np.ndarray:
        solved = self._factor(alpha).solve(right)
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved)

    def _factor(self, alpha: float) -> Any:
        found = self._latest.get(alpha)
        if found is None:
            keep_latest(self._latest, alpha, None)  # room first: r × r numbers each
            found = self._latest[alpha] = self._made(alpha)
        return found

    def _made(self, alpha: float) -> Any:
        """The Cholesky factor of I − αH."""
        gram, share = self.sums.gram, alpha / self.radius
        if sparse.issparse(gram):
            system = gram.toarray()
            system *= -share
        else:
            system = gram * -share
        system.flat[:: len(system) + 1] += 1.0
        return Cholesky.of(system)


def keep_latest(latest: dict[float, Any], alpha: float, found: Any) -> None:
    """Keep what was found for an α, and of the others only the latest; threads may do so at once.

    Each α is asked for by one thread.
    """
    for other in list(latest)[: max(len(latest) + 1 - KEPT_FACTORS, 0)]:
        latest.pop(other, None)
    latest[alpha] = found
