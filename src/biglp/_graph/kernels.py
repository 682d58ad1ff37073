"""Kernels and distances between a block of rows and k landmarks.

Notation: x a row (b × m block X), l a landmark (k × m matrix L), σ the bandwidth.
Gaussian kernel (section 2.1 of the paper):  w(x, l) = exp(−‖x − l‖² / 2σ²).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from biglp._compiled import gpu as fused
from biglp._compiled import native
from biglp._core.arrays import (
    Array,
    Rows,
    check_finite,
    is_torch,
    like,
    namespace,
    smallest,
    squared_norms,
    widened,
)
from biglp._core.errors import NonFiniteRowsError, ParameterError

SPARSE_LANDMARKS = 0.1
"""Share of the entries of landmarks, up to which those of sparse rows are taken sparse too."""
SEARCH_CELLS, SEARCH_ROWS = 1 << 18, 128
"""Distances that are held at once on a processor: what stays in the cache near a core while its
smallest are found, but those of enough rows that BLAS does not spend its time on the landmarks."""
DEVICE_CELLS = 1 << 24
"""Distances that are held at once on a card, by plain torch."""
WIDEST = 1e150
"""Widest bandwidth: its square is still a number."""
PAIR, PAIR_FEATURE = 2.2e-9, 0.02e-9
"""Seconds to compare a row with one other and keep the nearest five, and more for each feature."""


def pair_seconds(n_features: int) -> float:
    """Seconds to compare a row with one other."""
    return PAIR + PAIR_FEATURE * n_features


def products(rows: Rows, matrix: np.ndarray) -> Array:
    """X·Mᵀ, dense, for dense or CSR rows.  (b, m), (k, m) → (b, k)."""
    # Rows that are not finite are found out by what comes of them, and explained then.
    with np.errstate(over="ignore", invalid="ignore"):
        # Asking for (k, m)ᵀ rather than a copy lets BLAS read the small matrix as it is.
        return rows @ like(rows, matrix).T


def gaussian(rows: Rows, landmarks: np.ndarray, bandwidth: float) -> Array:
    """Gaussian kernel between rows and landmarks.  (b, m), (k, m) → (b, k).

    The exponent −γ(‖x‖² − 2x·l + ‖l‖²) with γ = 1/2σ² is built in place from one matrix product.
    """
    fast = fused.gaussian(rows, landmarks, bandwidth) if is_torch(rows) else None
    if fast is not None:
        kernel, bad = fast
        if bool(bad):
            raise NonFiniteRowsError
        return kernel
    gamma = 0.5 / bandwidth**2
    rows = widened(rows)
    norms = squared_norms(rows)
    check_finite(norms)
    exponent = products(rows, landmarks * (2.0 * gamma))
    exponent -= like(exponent, gamma * np.einsum("ij,ij->i", landmarks, landmarks))
    exponent -= (norms * gamma)[:, None]
    xp = namespace(exponent)
    if gamma * float(norms.max()) * float(xp.finfo(exponent.dtype).eps) > 1e-3:
        # A row far out loses the digits of its distance to a landmark near it, which may then come
        # out negative: without this its kernel could be infinite.
        xp.clip(exponent, None, 0, out=exponent)
    xp.exp(exponent, out=exponent)
    return exponent


def check_bandwidth(bandwidth: float, sample: Rows, factor: float | None = None) -> float:
    """Refuse a bandwidth that the precision of the rows cannot resolve.

    With a ``factor`` that made it, one that vanishes or is larger than any distance.
    """
    limits = np.finfo(sample.dtype)
    norms = squared_norms(sample).astype(np.float64)
    narrowest = max(8.0 * float(norms.max()) / float(limits.max), float(limits.tiny))
    if factor is None:
        narrowest = max(narrowest, 4.0 * float(limits.eps) * float(np.median(norms)))
    narrowest = float(np.sqrt(narrowest))
    if narrowest <= bandwidth <= WIDEST:
        return bandwidth
    if factor is None:
        raise ParameterError(
            f"bandwidth={bandwidth:g} is outside [{narrowest:.2g}, {WIDEST:g}], which is what "
            f"{sample.dtype} rows of this size (‖x‖ = {np.sqrt(np.median(norms)):.2g} after "
            "scaling) can resolve; use 'auto', or the distance between neighbouring rows."
        )
    raise ParameterError(
        f"factor_params={{'bandwidth_factor': {factor:g}}} makes a bandwidth of {bandwidth:g}, "
        f"outside [{narrowest:.2g}, {WIDEST:g}], which is what {sample.dtype} rows can "
        "resolve; give a factor near 1, or none."
    )


def gaussian_matrix(landmarks: np.ndarray, bandwidth: float) -> np.ndarray:
    """The k × k kernel G between landmarks, in float64, symmetric with ones on the diagonal."""
    points = np.asarray(landmarks, dtype=np.float64)
    norms = np.einsum("ij,ij->i", points, points)
    squared = np.maximum(norms[:, None] + norms - 2.0 * points @ points.T, 0.0)
    np.fill_diagonal(squared, 0.0)
    kernel: np.ndarray = np.exp(-0.5 / bandwidth**2 * squared)
    return kernel


def searchable(landmarks: np.ndarray) -> Rows:
    """Landmarks as sparse rows are compared with them: CSR where nearly all entries are 0."""
    if np.count_nonzero(landmarks) > SPARSE_LANDMARKS * landmarks.size:
        return landmarks
    return sparse.csr_matrix(landmarks)


def nearest_landmarks(
    rows: Rows, landmarks: Rows, count: int, *, whole: bool = False
) -> tuple[Array, Array]:
    """Landmarks nearest to each row, nearest first, and ‖x − l‖² − ‖x‖².  2 × (b, count).

    Of equally near ones the first. For CSR rows, landmarks may be as :func:`searchable` has made
    them once for many blocks. ``whole`` takes all rows at once, and landmarks as they are.

    All distances are computed. Cells of landmarks that the triangle inequality could rule out were
    tried: in 40 or 50 dimensions 85 to 100 % of the landmarks remain, and a matrix product is ten
    times faster than a tree that skips the others.
    """
    step, tensors, sparse_rows = rows.shape[0], is_torch(rows), sparse.issparse(rows)
    if not whole:
        fast = fused.nearest(rows, landmarks, count) if tensors else None
        if fast is not None:
            return fast
        k = landmarks.shape[0]
        step = max(DEVICE_CELLS // k, 1) if tensors else max(SEARCH_CELLS // k, SEARCH_ROWS)
        if sparse_rows and not sparse.issparse(landmarks):
            landmarks = searchable(landmarks)
    columns, values = [], []
    # Rows that are not finite are found out by what comes of them, as in products.
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(landmarks):
            doubled = (landmarks * landmarks.dtype.type(-2)).T
            sizes = np.asarray(landmarks.multiply(landmarks).sum(axis=1)).ravel()
        else:
            doubled, sizes = landmarks * -2.0, np.einsum("ij,ij->i", landmarks, landmarks)
            if sparse_rows:
                doubled, sizes = like(rows, doubled).T, sizes.astype(rows.dtype)
            else:
                # −2·x·l + 1·‖l‖²: within the product the last term costs no pass of its own.
                doubled = np.concatenate([doubled, sizes[:, None]], axis=1)
                # (k, m)ᵀ rather than a copy: BLAS reads the small matrix as it is.
                doubled = like(widened(rows[:1]), doubled).T
        for start in range(0, max(rows.shape[0], 1), step or 1):
            some = rows if step >= rows.shape[0] else rows[start : start + step]
            if not sparse_rows:
                some, shape = widened(some), (some.shape[0], 1)
                ones = some.new_ones(shape) if tensors else np.ones(shape, some.dtype)
                distances = namespace(some).concatenate([some, ones], 1) @ doubled
            elif sparse.issparse(landmarks):
                distances = (some @ doubled).toarray()
                distances = np.asarray(distances + sizes.astype(distances.dtype))
            else:
                distances = some @ doubled
                distances += sizes
            found = smallest(distances, count)
            columns.append(found[0])
            values.append(found[1])
    if len(columns) == 1:
        return columns[0], values[0]
    xp = namespace(values[0])
    return xp.concatenate(columns), xp.concatenate(values)


def scatter(columns: Array, weights: Array, width: int) -> Array:
    """A matrix with ``weights`` at ``columns`` of each row: CSR for NumPy, dense for torch."""
    if is_torch(weights):
        matrix = weights.new_zeros((weights.shape[0], width))
        return matrix.scatter_(1, columns.long(), weights)
    b, s = weights.shape
    starts = np.arange(0, b * s + 1, s, dtype=np.int32)
    return sparse.csr_matrix((weights.ravel(), columns.ravel(), starts), shape=(b, width))


@dataclass(eq=False)
class Search:
    """The search for the landmarks (k, m) nearest to rows."""

    landmarks: np.ndarray
    compiled: bool

    @cached_property
    def _panels(self) -> native.Panels:
        native.check_can_run()
        return native.panels(self.landmarks)

    @cached_property
    def _searchable(self) -> Rows:
        return searchable(self.landmarks)

    def nearest(self, rows: Rows, count: int) -> tuple[Array, Array]:
        """Numbers of the ``count`` nearest, and ‖x − l‖² − ‖x‖².  (b, m) → (b, s), (b, s)."""
        if self.compiled and isinstance(rows, np.ndarray):
            return native.nearest(rows, self._panels, count)
        compared = self._searchable if sparse.issparse(rows) else self.landmarks
        return nearest_landmarks(rows, compared, count)

    def __getstate__(self) -> dict[str, Any]:
        # Another process makes for itself what is made of these.
        return {"landmarks": self.landmarks, "compiled": self.compiled}


@dataclass(eq=False)
class Gaussians:
    """Gaussian similarities of rows to landmarks (k, m), times a root (k, r) if there is one."""

    landmarks: np.ndarray
    bandwidth: float
    root: np.ndarray | None
    compiled: bool  # features are summed while they are made

    @cached_property
    def _tables(self) -> native.Made:
        native.check_can_run()
        return native.tables(self.landmarks, self.bandwidth, self.root)

    def features(self, rows: Rows) -> Array:
        """(b, m) → (b, k) or (b, r)."""
        if self.compiled and isinstance(rows, np.ndarray):
            return self.summed(rows)[0]
        kernel = gaussian(rows, self.landmarks, self.bandwidth)
        return kernel if self.root is None else kernel @ like(kernel, self.root)

    def summed(
        self, rows: np.ndarray, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features, in ``out`` if it is given, and the sums of their columns."""
        return native.features(rows, self._tables, out)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_tables"}
