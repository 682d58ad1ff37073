"""Cholesky's factor of a dense matrix, a few columns at a time, by products that let others work.

A = L·Lᵀ. With the columns in groups, of which k is one and those before it are done,

    A_ik ← A_ik − Σ_{j<k} L_ij·L_kjᵀ,    A_kk = L_kk·L_kkᵀ,    L_ik = A_ik·L_kk⁻ᵀ for i > k.

SciPy's LAPACK does the same a tenth faster, but it keeps the interpreter's lock all the while:
factors that two threads make are then made one after the other, and whatever else waits. NumPy's
products let go of it.

Where A is an M-matrix, L has its signs and L_kk⁻¹ none that are negative: every sum is one of
numbers of one sign, nothing cancels, and what was an exact zero remains one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

COLUMNS = 64
"""Columns of a group: with 2,000 in all, 32 to 96 are equally quick and 256 a fifth slower."""

GROUP = 4 * COLUMNS
"""Columns of the inverse that are found at once."""


@dataclass(frozen=True)
class Cholesky:
    """The factor L of a positive definite matrix.

    Attributes
    ----------
    lower : ndarray of shape (r, r)
        L; above its diagonal is what was there before.
    inverses : list of ndarrays of shape (b, b)
        L_kk⁻¹ of each group of columns.
    """

    lower: np.ndarray
    inverses: list[np.ndarray]

    @classmethod
    def of(cls, matrix: np.ndarray) -> Cholesky:
        """Factorise a matrix, in place; only its lower half is looked at."""
        found = cls(matrix, [])
        for start in range(0, len(matrix), COLUMNS):
            stop = start + COLUMNS
            own, below = matrix[start:stop, start:stop], matrix[stop:, start:stop]
            if start:
                before = matrix[start:stop, :start].T
                matrix[start:, start:stop] -= matrix[start:, :start] @ before
            own[:] = np.linalg.cholesky(own)
            inverse, _ = linalg.lapack.dtrtri(own, lower=1)
            found.inverses.append(inverse)
            below[:] = below @ inverse.T
        return found

    def half(self, right: np.ndarray) -> np.ndarray:
        """L⁻¹·R, so that RᵀA⁻¹R is the product of this with itself.  (r, q)."""
        solved = np.array(right, order="C")
        for number, inverse in enumerate(self.inverses):
            start = number * COLUMNS
            stop = start + COLUMNS
            part = solved[start:stop]
            part -= self.lower[start:stop, :start] @ solved[:start]
            part[:] = inverse @ part
        return solved

    def solve(self, right: np.ndarray) -> np.ndarray:
        """A⁻¹·R.  (r, q)."""
        solved = self.half(right)
        for number in reversed(range(len(self.inverses))):
            start = number * COLUMNS
            stop = start + COLUMNS
            part = solved[start:stop]
            part -= self.lower[stop:, start:stop].T @ solved[stop:]
            part[:] = self.inverses[number].T @ part
        return solved

    def inverse(self) -> np.ndarray:
        """L⁻ᵀ, an upper triangle: rows with features f times this are (L⁻¹f)ᵀ.  (r, r)."""
        found = np.zeros_like(self.lower)
        for number, inverse in enumerate(self.inverses):
            start = number * COLUMNS
            stop = start + COLUMNS
            for left in range(0, start, GROUP):  # what is below the diagonal adds nothing
                right = min(left + GROUP, start)
                before = found[left:right, left:start] @ self.lower[start:stop, left:start].T
                found[left:right, start:stop] = -(before @ inverse.T)
            found[start:stop, start:stop] = inverse.T
        return found
