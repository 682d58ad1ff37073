"""What the sweeps hand over to the small algebra: sums of r × r, r × c and r numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class GramSums:
    """Sums over all rows of the normalised features Φ̄ (n × r) and the labels Y (n × c)."""

    gram: Any  # H = Φ̄ᵀΦ̄, (r, r); CSR where many landmarks have few rows in common
    targets: np.ndarray  # B = Φ̄ᵀY, (r, c)
    totals: np.ndarray  # t = Φ̄ᵀ1, (r,)
    counts: np.ndarray  # labelled rows of each class, (c,)
    n_rows: int
    n_repaired: int = 0  # rows whose degree had to be repaired
    # T (p, r), or its diagonal (r,): the sums are those of Φ̄·T for features Φ̄ as they come.
    mixing: np.ndarray = field(default_factory=lambda: np.ones(1))
    mode: np.ndarray | None = None  # √d, where H is S itself

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
        gram = (gram + gram.T) / 2.0
        return replace(
            self,
            gram=sparse.csr_array(gram) if sparse.issparse(gram) else gram,  # in sorted rows
            targets=apply_mixing(self.targets.T, mixing).T,
            totals=apply_mixing(self.totals, mixing),
            mixing=mixing,
        )

    def mix(self, features: Any) -> Any:
        """Features as they come, mixed like those of the sums.  (..., p) → (..., r)."""
        return apply_mixing(features, self.mixing)

    def unmix(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of mixed features as those of features as they come.  (r, c) → (p, c)."""
        return np.asarray(apply_mixing(coefficients.T, self.mixing.T).T)

    def arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays, for a checkpoint."""
        arrays = {
            "gram": self.gram,
            "targets": self.targets,
            "totals": self.totals,
            "n_repaired": np.array(self.n_repaired),
            "mixing": self.mixing,
        }
        if sparse.issparse(self.gram):
            gram = self.gram
            arrays |= {"gram": gram.data, "gram_columns": gram.indices, "gram_starts": gram.indptr}
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], counts: np.ndarray, n_rows: int
    ) -> GramSums:
        """Rebuild from :meth:`arrays`."""
        gram: Any = arrays["gram"]
        if "gram_columns" in arrays:
            starts = arrays["gram_starts"]
            shape = (len(starts) - 1, len(starts) - 1)
            gram = sparse.csr_array((gram, arrays["gram_columns"], starts), shape=shape)
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
