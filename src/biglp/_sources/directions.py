"""Leading directions of rows: the subspace in which distances are the better neighbours."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows

PROJECT_ABOVE = 200
PROJECT_TO = 40
PROJECT_SHARE = 0.6
"""Rows of so many features or more are projected on so many principal directions, where these hold
that share of the variance."""
COVARIANCE_FEATURES = 2000
"""Features up to which principal directions come from the covariance matrix."""
COVARIANCE_ROWS = 1000
"""Rows behind the covariance matrix, about."""
OVERSAMPLED, SUBSPACE_STEPS = 10, 4
"""Directions beyond those asked for, and steps, in the randomised decomposition."""


def principal_directions(sample: Rows, seed: int, count: int) -> tuple[np.ndarray, float]:
    """The first principal directions of rows (m × count), and their share of the variance."""
    count = min(count, *sample.shape)
    sample = _of_usual_size(sample)
    if not sparse.issparse(sample) and sample.shape[1] <= COVARIANCE_FEATURES:
        part = sample[:: max(len(sample) // max(COVARIANCE_ROWS, 2 * count), 1)]
        centred = part - part.mean(axis=0)
        covariance = np.asarray(centred.T @ centred, dtype=np.float64)
        values, vectors = _largest_eigenpairs(covariance, seed, count)
        share = values.sum() / max(float(np.trace(covariance)), np.finfo(np.float64).tiny)
        return np.ascontiguousarray(vectors[:, ::-1]), float(share)
    centred = sample if sparse.issparse(sample) else sample - sample.mean(axis=0)
    directions, lengths = leading_directions(centred, seed, count)
    entries = centred.data if sparse.issparse(centred) else centred
    whole = float(np.square(entries, dtype=np.float64).sum())
    return directions, float(np.square(lengths).sum() / max(whole, np.finfo(np.float64).tiny))


def _of_usual_size(sample: Rows) -> Rows:
    """The rows times a power of two, where their fourth powers would leave the range of numbers.

    Directions and shares remain what they are, to the last bit.
    """
    entries = sample.data if sparse.issparse(sample) else sample
    largest, limits = float(np.abs(entries).max(initial=0.0)), np.finfo(sample.dtype)
    if largest == 0.0 or float(limits.tiny) ** 0.2 < largest < float(limits.max) ** 0.2:
        return sample
    power = -int(np.frexp(largest)[1])
    if not sparse.issparse(sample):
        return np.ldexp(sample, power)
    scaled = sample.copy()
    scaled.data = np.ldexp(scaled.data, power)
    return scaled


def leading_directions(
    rows: Rows,
    seed: int,
    count: int,
    oversampled: int = OVERSAMPLED,
    steps: int = SUBSPACE_STEPS,
) -> tuple[np.ndarray, np.ndarray]:
    """Right singular vectors of the largest singular values, and these.  (m, count), (count,).

    A random subspace is multiplied by XᵀX a few times and made orthonormal in between: products
    with sparse rows only, which stay sparse.
    """
    n_rows, n_features = rows.shape
    count = min(count, n_rows, n_features)
    width = min(count + oversampled, n_rows, n_features)
    start = np.random.default_rng(seed).standard_normal((n_features, width))
    across = rows.T.tocsr() if sparse.issparse(rows) else rows.T
    basis = _orthonormal(start.astype(rows.dtype))
    for _ in range(steps):
        basis = _orthonormal(across @ (rows @ basis))
    seen = np.asarray(rows @ basis)
    values, turn = np.linalg.eigh(np.asarray(seen.T @ seen, dtype=np.float64))
    largest = slice(None, -count - 1, -1)
    directions = basis @ turn[:, largest].astype(basis.dtype)
    # A direction has two signs, and rounding must not choose between them.
    places = np.abs(directions).argmax(axis=0)
    directions *= np.sign(directions[places, np.arange(count)])
    return np.ascontiguousarray(directions), np.sqrt(np.maximum(values[largest], 0.0))


def _orthonormal(basis: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the same subspace; zeros where it has fewer dimensions.

    By the eigenvectors of BᵀB, a product where Householder's steps are many: twenty times faster
    for ten thousand rows, and the loss of half the digits is made up for by the next step.
    """
    values, turn = np.linalg.eigh(np.asarray(basis.T @ basis, dtype=np.float64))
    least = values[-1] * len(values) * np.finfo(basis.dtype).eps
    known = values > max(least, 0.0)  # no dimension at all where all rows are zero
    scales = np.where(known, 1.0 / np.sqrt(np.where(known, values, 1.0)), 0.0)
    return np.asarray(basis @ (turn * scales).astype(basis.dtype))


def _largest_eigenpairs(matrix: np.ndarray, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues, increasing, and their eigenvectors."""
    from scipy.linalg import eigh  # slow to load, and seldom needed
    from scipy.sparse.linalg import ArpackError, eigsh

    m = len(matrix)
    if count < m // 2:
        start = np.random.default_rng(seed).normal(size=m)
        try:
            found: tuple[np.ndarray, np.ndarray] = eigsh(matrix, count, v0=start, tol=1e-4)
        except ArpackError:  # fewer directions than are asked for have any variance
            pass
        else:
            return found
    return eigh(matrix, subset_by_index=(m - count, m - 1))
