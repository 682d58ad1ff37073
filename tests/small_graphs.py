"""Small graphs with labels on some of their rows, and their sums as the sweeps would find them."""

import numpy as np
from scipy import sparse

import reference as ref
from biglp._algebra import SparseSystem, Spectrum
from biglp._algebra.sums import GramSums
from biglp._graph import Normalisation
from helpers import blobs


def sums_of(features, labels):
    Y = ref.one_hot(labels) if labels.ndim == 1 else labels
    counts = Y.sum(axis=0)
    return GramSums(
        features.T @ features,
        features.T @ Y,
        features.sum(axis=0),
        counts.astype(int) if labels.ndim == 1 else counts,
        len(labels),
    )


def sparse_sums_of(features, codes):
    sums = sums_of(features, codes)
    gram = sparse.csr_array(sums.gram)
    return GramSums(gram, sums.targets, sums.totals, sums.counts, sums.n_rows)


def dense_of(sums):
    return GramSums(sums.gram.toarray(), sums.targets, sums.totals, sums.counts, sums.n_rows)


def solve(sums, alpha, radius):
    if sparse.issparse(sums.gram):
        return SparseSystem(radius, sums).solved(alpha)
    return Spectrum(np.empty(0), np.empty(0), radius, sums).solved(alpha)


def scores_of(normalised, codes, coefficients, alpha):
    return (1 - alpha) * ref.one_hot(codes) + normalised @ coefficients


def factor_problem(n=60, rank=8, classes=3, seed=0, signed=False):
    rng = np.random.default_rng(seed)
    F = rng.random((n, rank)) ** 3 - (0.1 if signed else 0.0)
    codes = np.where(np.arange(n) % 3 == 0, rng.permutation(np.arange(n) % classes), -1)
    normalised, _ = Normalisation(F.sum(axis=0), n).apply(F)
    return F, normalised, codes


def positive_factor(n=80, rank=8, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.random((n, rank)) ** 3
    features, _ = Normalisation(F.sum(axis=0), n).apply(F)
    Y = ref.one_hot(np.where(np.arange(n) % 4 == 0, np.arange(n) // 4 % 3, -1))
    return F @ F.T, features, F.sum(axis=0), Y


def anchor_blobs(n=150, k=15, seed=0, weighted=False):
    X, y, _ = blobs(n=n, seed=seed)
    rng = np.random.default_rng(seed)
    L = X[rng.choice(n, k, replace=False)]
    Z = ref.anchor_weights(X, L, 1.5, 3)
    Y = ref.one_hot(y)
    if weighted:
        Y = Y * rng.integers(1, 4, n)[:, None] + 0.1 * (Y.any(axis=1))[:, None]
    return Z / np.sqrt(Z.sum(axis=0)), ref.anchor_graph(X, L, 1.5, 3), Y


def anchor_problem(n=200, k=40, classes=3, seed=0, apart=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if apart:  # two parts that no row ties together
        X[n // 2 :] += 100.0
    L = X[rng.choice(n, k, replace=False)]
    Z = ref.anchor_weights(X, L, 0.3, 3)
    mass = Z.sum(axis=0)
    features = Z * np.where(mass > 0, 1.0, 0.0) / np.sqrt(np.where(mass > 0, mass, 1.0))
    codes = np.where(np.arange(n) % 10 == 0, rng.permutation(n) % classes, -1)
    if apart:
        codes[n // 2 :] = -1
    return features, codes
