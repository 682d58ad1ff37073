"""Label propagation on a graph that is given as S itself, sparse and n × n.

The formulas of :mod:`biglp._algebra.systems` hold for features that are rows of S, if S and Y
stand for H and B (F is n × c, S symmetric without a diagonal, ρ(S) = 1):

    F = (1−α)(I − αS)⁻¹Y = (1−α)Y + S·C,      C = α(1−α)(I − αS)⁻¹Y.

Class mass: Σ_i F_ij = (1−α)ℓ_j + t·C_j with t = S·1. Leave-one-out asks for

- what comes back to row i of its own label, S_i·K·e_i with K = α(1−α)(I − αS)⁻¹. As S_ii = 0, it is
  α times what it would be for features, S_i·K·S_iᵀ: both follow from the diagonal of (I − αS)⁻¹;
- what row i gives to all rows, 1·S·K·e_i = S_i·(K·1).

Poisson learning, (I − S)F = Y − 1_L·ȳᵀ without any part along √d, needs no eigenvectors here. With
ε = SMALLEST_GAP, u = √d/‖√d‖ and P = I − u·uᵀ

    F = (Y − 1_L·ȳᵀ) + S·C,   C = [(1−ε)·P·(I − (1−ε)S)⁻¹·P − u·uᵀ]·(Y − 1_L·ȳᵀ).

ε decides in parts of the graph that are not connected, where Poisson learning has no answer: the
class that has more than its share of the labels of the part wins there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from biglp._algebra.conjugate import conjugate_gradients, energies, solve_in_layers
from biglp._algebra.spreading import SMALLEST_GAP, centred
from biglp._algebra.systems import COLUMNS_AT_ONCE, MOST_SOLVED, SparseSystem

MOST_NUMBERS = 1 << 22
"""Numbers in an array of several columns that are solved for at once."""
MOST_WORK, FEWEST_ROWS = 10_000_000, 50
"""Labelled rows times entries of the graph that leave-one-out may take, which is some seconds; and
rows that it must look at to tell anything."""
FAR, FAR_LAYER = 1e-8, 1e-6
"""Scores, as a fraction of the largest, below which a row is far from all labels; and what is then
settled in one layer."""


def columns_at_once(n_rows: int) -> int:
    """Columns of n numbers that are solved for together."""
    return max(min(COLUMNS_AT_ONCE, MOST_NUMBERS // n_rows), 1)


@dataclass(frozen=True)
class OwnGraphSystem(SparseSystem):
    """Solves with S for each α."""

    @cached_property
    def order(self) -> np.ndarray:
        """Rows in an order in which neighbours are near each other.  (n,).

        A product of S with several columns is then several times as fast.
        """
        from scipy.sparse.csgraph import reverse_cuthill_mckee  # slow to load, and few need it

        return reverse_cuthill_mckee(sparse.csr_matrix(self.sums.gram), symmetric_mode=True)

    @cached_property
    def ordered(self) -> Any:
        """S in that order.  (n, n)."""
        return sparse.csr_array(self.sums.gram[self.order][:, self.order])

    @cached_property
    def reached(self) -> np.ndarray:
        """Whether a row is in one part of the graph with a label.  (n,)."""
        from scipy.sparse.csgraph import connected_components

        n_parts, parts = connected_components(sparse.csr_matrix(self.sums.gram), directed=False)
        labelled = np.zeros(n_parts, dtype=bool)
        labelled[parts[self.sums.targets.any(axis=1)]] = True
        return np.asarray(labelled[parts])

    @property
    def most_labelled(self) -> int:  # type: ignore[override]
        # Each takes a solve with the whole graph.
        most = MOST_WORK // max(self.sums.gram.nnz, 1)
        return 0 if most < FEWEST_ROWS else min(most, MOST_SOLVED)

    def coefficients(self, alpha: float) -> np.ndarray:
        right = self.sums.targets[self.order]
        solved, _ = conjugate_gradients(self.ordered, alpha, right)
        np.maximum(solved, 0.0, out=solved)
        # Layers cost as much again each. They are for rows that are far from all labels, whose
        # largest score would be of the size of the error.
        scores = (solved / np.maximum(solved.max(axis=0), np.finfo(np.float64).tiny)).max(axis=1)
        if (scores < FAR)[self.reached[self.order]].any():
            solved = solve_in_layers(self.ordered, alpha, right, FAR_LAYER)
        return (1.0 - alpha) * alpha * self._as_given(solved)

    solved = coefficients

    def towards_all(self, alpha: float) -> np.ndarray:
        solved, _ = conjugate_gradients(self.ordered, alpha, np.ones((self.sums.n_rows, 1)))
        return (1.0 - alpha) * alpha * self._as_given(solved)[:, 0]

    def returns(self, features: Any, alpha: float) -> np.ndarray:
        energy, width = [np.empty(0)], columns_at_once(self.sums.n_rows)
        for start in range(0, features.shape[0], width):
            columns = features[start : start + width].toarray().T[self.order]
            energy.append(energies(self.ordered, alpha, np.ascontiguousarray(columns)))
        return (1.0 - alpha) * alpha**2 * np.concatenate(energy)

    def poisson(self) -> np.ndarray:
        """C of Poisson learning; 0 where no label reaches.  (n, c)."""
        right = centred(self.sums.targets, self.sums.counts)
        mode = self.sums.constant / (np.linalg.norm(self.sums.constant) or 1.0)
        along = mode @ right
        share = 1.0 - SMALLEST_GAP
        right -= np.outer(mode, along)
        solved, _ = conjugate_gradients(self.ordered, share, right[self.order])
        coefficients = share * self._as_given(solved)
        coefficients -= np.outer(mode, mode @ coefficients + along)
        coefficients[~self.reached] = 0.0
        return coefficients

    def _as_given(self, ordered: np.ndarray) -> np.ndarray:
        """Rows in the order of the graph as it was given."""
        rows = np.empty_like(ordered)
        rows[self.order] = ordered
        return rows
