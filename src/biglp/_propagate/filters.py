"""Every method as a spectral filter: one eigendecomposition of H serves them all.

With H = U·diag(λ)·Uᵀ the coefficients are C = U·diag(g(λ))·UᵀB, and the scores F̄·C, to which a
labelled row's own label is added. λ is within [0, 1] after S was divided by its radius ρ.

===========  =====================================================  ===============================
filter       g(λ) · ρ                                               what it is
===========  =====================================================  ===============================
Spreading    α(1−α) / (1 − αλ)                                      label spreading, Eq. 2.5
Iterated     α((αλ)^t + (1−α)(1 − (αλ)^t) / (1 − αλ))               Algorithm S.5 after t steps
Poisson      1 / (1 − λ), with the constant mode taken out          Poisson learning
===========  =====================================================  ===============================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from biglp._propagate.systems import Spectrum

SMALLEST_GAP = 1e-6
"""1 − λ below which two parts of the graph count as hardly connected: sums of float32 numbers do
not tell smaller gaps from none, and Poisson learning has no answer where there is none."""


class Filter(Protocol):
    """A gain for every eigenvalue."""

    def gain(self, spectrum: Spectrum) -> np.ndarray:
        """g(λ), with the division of S by its radius folded in.  (r,)."""


@dataclass(frozen=True)
class Spreading:
    """Label spreading to the end."""

    alpha: float

    def gain(self, spectrum: Spectrum) -> np.ndarray:
        """α(1−α) / (1 − αλ)."""
        return spectrum.gain(self.alpha)


@dataclass(frozen=True)
class Iterated:
    """Label spreading after t steps from the labels, as :func:`..iteration.iterate` does them."""

    alpha: float
    steps: int

    def gain(self, spectrum: Spectrum) -> np.ndarray:
        """Geometric sum of t steps."""
        decay = (self.alpha * spectrum.values) ** self.steps
        arrived = (1.0 - self.alpha) * (1.0 - decay) / (1.0 - self.alpha * spectrum.values)
        return self.alpha * (decay + arrived) / spectrum.radius


@dataclass(frozen=True)
class Poisson:
    """Poisson learning, for columns without a constant mode (:mod:`.poisson`)."""

    def gain(self, spectrum: Spectrum) -> np.ndarray:
        """1 / (1 − λ), bounded."""
        return 1.0 / np.maximum(1.0 - spectrum.values, SMALLEST_GAP) / spectrum.radius


def filtered(spectrum: Spectrum, chosen: Filter, columns: np.ndarray | None = None) -> np.ndarray:
    """C = U·g(λ)·Uᵀ·columns; the columns are B by default.  (r, c)."""
    turned = spectrum.rotated_targets if columns is None else spectrum.vectors.T @ columns
    return spectrum.vectors @ (chosen.gain(spectrum)[:, None] * turned)
