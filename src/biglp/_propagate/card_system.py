"""The Gram matrix H of an anchor graph on a card, factorised there for each α that is asked for.

As :class:`biglp._propagate.systems.DenseSystem`, whose equations these are. A card factorises
thousands of landmarks in milliseconds in float64, where conjugate gradients on a processor take a
second.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from biglp._propagate.sums import GramSums

MOST_LABELLED = 5000
"""Labelled rows that leave-one-out looks at; more change nothing and cost time."""


@dataclass(frozen=True)
class CardSystem:
    """I − αH, dense in float64 on a card.

    Attributes
    ----------
    radius : float
        max(1, a bound on the largest eigenvalue of H): what S is divided by.
    sums : GramSums
        The sums behind it.
    device : str
    """

    radius: float
    sums: GramSums
    device: str
    _latest: dict[float, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def most_labelled(self) -> int:
        """Labelled rows that leave-one-out looks at."""
        return MOST_LABELLED

    def coefficients(self, alpha: float) -> np.ndarray:
        """C, so that F = (1−α)Y + F̄·C.  (r, c)."""
        return self._solved(alpha, self.sums.targets)

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        """What a row with features f gives to all rows is f times this.  (r,)."""
        return self._solved(alpha, self.sums.totals[:, None])[:, 0]

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        torch = sys.modules["torch"]
        columns = features.toarray() if sparse.issparse(features) else features
        factor = self._factor(alpha)
        half = torch.linalg.solve_triangular(factor, self._there(columns.T), upper=False)
        energies: np.ndarray = (half * half).sum(0).cpu().numpy()
        return (1.0 - alpha) * alpha / self.radius * energies

    def _solved(self, alpha: float, right: np.ndarray) -> np.ndarray:
        torch = sys.modules["torch"]
        solved = torch.cholesky_solve(self._there(right), self._factor(alpha)).cpu().numpy()
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved)

    def _there(self, array: np.ndarray) -> Any:
        place = self.device.removeprefix("torch:")
        return sys.modules["torch"].as_tensor(np.ascontiguousarray(array), device=place)

    def _factor(self, alpha: float) -> Any:
        if alpha not in self._latest:
            self._latest.clear()  # r × r numbers each, and they are asked for one after the other
            system = self._gram() * (-alpha / self.radius)
            system.diagonal().add_(1.0)
            self._latest[alpha] = sys.modules["torch"].linalg.cholesky(system)
        return self._latest[alpha]

    def _gram(self) -> Any:
        """H on the card; a sparse one is spread out there."""
        gram = self.sums.gram
        if not sparse.issparse(gram):
            return self._there(gram)
        rank = gram.shape[0]
        places = np.repeat(np.arange(rank), np.diff(gram.indptr)) * rank + gram.indices
        values = self._there(gram.data)
        dense = values.new_zeros(rank * rank)
        dense[self._there(places)] = values
        return dense.reshape(rank, rank)
