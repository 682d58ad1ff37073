"""The Gram matrix H of an anchor graph on a card, factorised there for each α that is asked for.

A card factorises thousands of landmarks in milliseconds in float64, where conjugate gradients on a
processor take a second.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biglp._propagate.dense_system import DenseSystem

GPU_ROWS_AT_ONCE = 1024
"""Labelled rows that are solved for at once: together they take less than a factor."""


@dataclass(frozen=True)
class CardSystem(DenseSystem):
    """A dense system whose matrix and factors are on a card.

    Attributes
    ----------
    device : str
        A device of torch.
    """

    device: str = "cuda"

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        """What comes back to each row of its own label through the graph.  (l, r) → (l,)."""
        torch, factor = sys.modules["torch"], self._factor(alpha)
        energies = np.empty(features.shape[0])
        for start in range(0, len(energies), GPU_ROWS_AT_ONCE):
            rows = features[start : start + GPU_ROWS_AT_ONCE]
            columns = self._there((rows.toarray() if sparse.issparse(rows) else rows).T)
            half = torch.linalg.solve_triangular(factor, columns, upper=False)
            energies[start : start + GPU_ROWS_AT_ONCE] = (half * half).sum(0).cpu().numpy()
        return (1.0 - alpha) * alpha / self.radius * energies

    def _solved(self, alpha: float, right: np.ndarray) -> np.ndarray:
        torch = sys.modules["torch"]
        columns = self._there(right.reshape(len(right), -1))
        solved = torch.cholesky_solve(columns, self._factor(alpha)).cpu().numpy()
        return np.asarray((1.0 - alpha) * alpha / self.radius * solved.reshape(right.shape))

    def _made(self, alpha: float) -> Any:
        system = self._gram() * (-alpha / self.radius)
        system.diagonal().add_(1.0)
        return sys.modules["torch"].linalg.cholesky(system)

    def _there(self, array: np.ndarray) -> Any:
        place = self.device.removeprefix("torch:")
        return sys.modules["torch"].as_tensor(np.ascontiguousarray(array), device=place)

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
