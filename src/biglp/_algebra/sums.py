"""What the sweeps hand over to the small algebra: sums of r × r, r × c and r numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class GramSums:
    """Sums over all rows of the normalised features Φ̄ (n × r) and the labels Y (n × c).

    Attributes
    ----------
    gram : ndarray or CSR array of shape (r, r)
        H = Φ̄ᵀΦ̄; sparse where many landmarks have few rows in common.
    targets : ndarray of shape (r, c)
        B = Φ̄ᵀY.
    totals : ndarray of shape (r,)
        t = Φ̄ᵀ1.
    counts : ndarray of shape (c,)
        Labelled rows of each class.
    n_rows : int
        Number of rows.
    n_repaired : int
        Rows whose degree had to be repaired.
    mixing : ndarray of shape (p, r) or (r,)
        T, or its diagonal: the sums are those of Φ̄·T for features Φ̄ as they come.
    mode : ndarray of shape (r,), optional
        √d, where H is S itself.
    """

    gram: Any
    targets: np.ndarray
    totals: np.ndarray
    counts: np.ndarray
    n_rows: int
    n_repaired: int = 0
    mixing: np.ndarray = field(default_factory=lambda: np.ones(1))
    mode: np.ndarray | None = None

    @cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, increasing, and eigenvectors of H.  (r,) and (r, r)."""
        values, vectors = np.linalg.eigh(self.gram)
        return values, vectors

    @property
    def constant(self) -> np.ndarray:
        """S with F̄·s = √d: t where degrees are 1, √d itself where F̄ is S.  (r,)."""
        return self.totals if self.mode is None else self.mode

    def with_labels(self, targets: np.ndarray, counts: np.ndarray) -> GramSums:
        """The same rows with other labels: H and what is known of its spectrum stay."""
        sums = replace(self, targets=targets, counts=counts)
        if "eigen" in self.__dict__:
            sums.__dict__["eigen"] = self.eigen
        return sums

    def mixed(self, mixing: np.ndarray) -> GramSums:
        """The same sums for the features Φ̄·T, where T is a matrix or the diagonal of one."""
        gram = apply_mixing(apply_mixing(self.gram, mixing).T, mixing)
        return GramSums(
            _symmetric(gram),
            apply_mixing(self.targets.T, mixing).T,
            apply_mixing(self.totals, mixing),
            self.counts,
            self.n_rows,
            self.n_repaired,
            mixing,
        )

    def mix(self, features: Any) -> Any:
        """Features as they come, mixed like those of the sums.  (..., p) → (..., r)."""
        return apply_mixing(features, self.mixing)

    def unmix(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of mixed features as those of features as they come.  (r, c) → (p, c)."""
        return np.asarray(apply_mixing(coefficients.T, self.mixing.T).T)

    def arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays, for a checkpoint."""
        found = {
            "gram": self.gram,
            "targets": self.targets,
            "totals": self.totals,
            "n_repaired": np.array(self.n_repaired),
            "mixing": self.mixing,
        }
        if sparse.issparse(self.gram):
            found |= {
                "gram": self.gram.data,
                "gram_columns": self.gram.indices,
                "gram_starts": self.gram.indptr,
            }
        return found

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], counts: np.ndarray, n_rows: int
    ) -> GramSums:
        """Rebuild from :meth:`arrays`."""
        gram: Any = arrays["gram"]
        if "gram_columns" in arrays:
            starts = arrays["gram_starts"]
            rank = len(starts) - 1
            gram = sparse.csr_array((gram, arrays["gram_columns"], starts), shape=(rank, rank))
        repaired = int(arrays["n_repaired"])
        targets, totals = arrays["targets"], arrays["totals"]
        return cls(gram, targets, totals, counts, n_rows, repaired, arrays["mixing"])


def apply_mixing(features: Any, mixing: np.ndarray) -> Any:
    """Multiply features by a mixing matrix T, or by the diagonal of one.  (..., p) → (..., r)."""
    if mixing.ndim == 1 and sparse.issparse(features):
        scaled = sparse.csr_array(features, copy=True)
        scaled.data *= mixing[scaled.indices]
        return scaled
    return features * mixing if mixing.ndim == 1 else features @ mixing


def _symmetric(gram: Any) -> Any:
    """Mean of a matrix and its transpose, in sorted rows where it is sparse."""
    mean = (gram + gram.T) / 2.0
    return sparse.csr_array(mean) if sparse.issparse(mean) else mean
