"""A matrix with a few entries a row on a device: what CSR is to rows in NumPy.

torch's own sparse matrices have no quick product of a matrix with itself, and a dense matrix of
10 M rows and 1,000 landmarks takes 40 GB where its entries take 240 MB.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

ROWS_AT_ONCE, PAIR_BYTES = 1 << 18, 40
"""Rows whose pairs of entries are held at once, and what a pair takes."""
DENSE_WIDTH = 8192
"""Columns up to which sums over all pairs are added up in a dense matrix, of half a gigabyte."""


class Ties:
    """A matrix (b × k) of which each row has s entries, in different columns.

    Parameters
    ----------
    columns : torch tensor of shape (b, s)
        Integers.
    weights : torch tensor of shape (b, s)
    width : int
        k.
    """

    def __init__(self, columns: Any, weights: Any, width: int) -> None:
        self.columns, self.weights = columns, weights
        self.shape = (weights.shape[0], width)

    def __getitem__(self, rows: Any) -> Ties:
        """Some of the rows."""
        if isinstance(rows, np.ndarray):
            rows = sys.modules["torch"].as_tensor(rows, device=self.weights.device)
        return Ties(self.columns[rows], self.weights[rows], self.shape[1])

    def __matmul__(self, matrix: Any) -> Any:
        """Product with a small tensor, dense.  (b, k)·(k, c) → (b, c)."""
        return sys.modules["torch"].nn.functional.embedding_bag(
            self.columns, matrix.contiguous(), per_sample_weights=self.weights, mode="sum"
        )

    def column_sums(self) -> Any:
        """Sum of every column, in float64.  (k,)."""
        weights = self.weights.double().reshape(-1)
        return self.columns.reshape(-1).bincount(weights, self.shape[1])

    def gram(self) -> Any:
        """ZᵀZ in float64: a dense tensor, or CSR where it would be too large.  (k, k)."""
        width, n_entries = self.shape[1], self.weights.shape[1]
        if width > DENSE_WIDTH:
            host = self.csr().astype(np.float64)
            return host.T @ host
        total: Any = 0.0
        for start in range(0, self.shape[0], ROWS_AT_ONCE):
            columns = self.columns[start : start + ROWS_AT_ONCE].long()
            weights = self.weights[start : start + ROWS_AT_ONCE].double()
            # Each pair of entries once; the other half is the same.
            pairs = [(i, j) for i in range(n_entries) for j in range(i, n_entries)]
            first, second = (list(part) for part in zip(*pairs, strict=True))
            cells = columns[:, first] * width + columns[:, second]
            products = weights[:, first] * weights[:, second]
            total = total + cells.reshape(-1).bincount(products.reshape(-1), width * width)
        half = total.reshape(width, width)
        return half + half.T - half.diagonal().diag()

    def csr(self) -> Any:
        """The same matrix in the computer's memory."""
        b, s = self.weights.shape
        columns = self.columns.cpu().numpy().astype(np.int32).ravel()
        starts = np.arange(0, b * s + 1, s, dtype=np.int32)
        return sparse.csr_matrix((self.weights.cpu().numpy().ravel(), columns, starts), self.shape)
