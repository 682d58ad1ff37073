"""The dense graph that each factor approximates, from the same landmarks."""

import numpy as np

import reference as ref
from biglp._lowrank.nystrom import eigenvalue_cutoff

FACTORS = ("anchors", "nystrom", "linear")
SIGMA = 1.5


def landmarks_of(X, count=20):
    return X[np.random.default_rng(1).choice(len(X), count, replace=False)]


def graph(factor, X, L, sigma=SIGMA, nearest=3):
    """W of the reference."""
    if factor == "anchors":
        return ref.anchor_graph(X, L, sigma, nearest)
    if factor == "nystrom":
        return ref.nystrom_graph(X, L, sigma, eigenvalue_cutoff(len(L), X.dtype))
    return ref.linear_graph(X)
