"""Leading directions of rows: the subspace in which distances are the better neighbours."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, largest_size

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
RESTARTS = 3
"""Of ARPACK in float32, which seldom needs more than one."""


def principal_directions(sample: Rows, seed: int, count: int) -> tuple[np.ndarray, float]:
    """The first principal directions of rows (m × count), and their share of the variance."""
    count = min(count, *sample.shape)
    sample = _of_usual_size(sample)
    if not sparse.issparse(sample) and sample.shape[1] <= COVARIANCE_FEATURES:
        part = sample[:: max(len(sample) // max(COVARIANCE_ROWS, 2 * count), 1)]
        used = np.flatnonzero((part != part[0]).any(axis=0))
        if 2 * count < len(used) < part.shape[1]:  # a quarter of the pixels of digits is never used
            part = part[:, used]
        else:
            used = np.arange(part.shape[1])
        centred = part - part.mean(axis=0)
        covariance = centred.T @ centred
        values, vectors = _largest_eigenpairs(covariance, seed, count)
        whole = float(np.trace(covariance, dtype=np.float64))
        directions = np.zeros((sample.shape[1], count))
        directions[used] = vectors[:, ::-1]
        return directions, float(values.sum() / max(whole, np.finfo(np.float64).tiny))
    centred = sample if sparse.issparse(sample) else sample - sample.mean(axis=0)
    directions, lengths = leading_directions(centred, seed, count)
    entries = centred.data if sparse.issparse(centred) else centred
    whole = float(np.square(entries, dtype=np.float64).sum())
    return directions, float(np.square(lengths).sum() / max(whole, np.finfo(np.float64).tiny))


def _of_usual_size(sample: Rows) -> Rows:
    """The rows times a power of two, where their fourth powers would leave the range of numbers.

    Directions and shares remain what they are, to the last bit.
    """
    largest = largest_size(sample)
    limits = np.finfo(sample.dtype)
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
    """The ``count`` largest eigenvalues, increasing, and their eigenvectors.

    In float32 ARPACK takes half of the time, and rows in float32 are multiplied by directions in
    float32. But it would not end where the last of the eigenvalues are below the rounding of the
    first: after a few restarts float64 takes over.
    """
    from scipy.linalg import eigh  # slow to load, and seldom needed
    from scipy.sparse.linalg import ArpackError, eigsh

    m = len(matrix)
    exact = matrix.astype(np.float64, copy=False)
    if count < m // 2:
        start = np.random.default_rng(seed).normal(size=m)
        # Of a size at which what ARPACK takes for zero in float32 is far below its tolerance.
        size = max(float(np.trace(exact)), np.finfo(np.float64).tiny) / m
        tries = [] if matrix is exact else [(matrix / matrix.dtype.type(size), RESTARTS, size)]
        for each, most, scale in (*tries, (exact, None, 1.0)):
            first = start.astype(each.dtype)
            try:
                values, vectors = eigsh(each, count, v0=first, tol=1e-4, maxiter=most)
            except ArpackError:  # fewer directions than are asked for have any variance
                continue
            return scale * values.astype(np.float64), vectors
    values, vectors = eigh(exact, subset_by_index=(m - count, m - 1))
    return values, vectors
