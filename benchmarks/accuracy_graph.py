"""Graph peers of the accuracy table, on the exact graph of ten nearest neighbours.

Linear systems are solved by conjugate gradients, all classes at once. Scores become probabilities
in the plainest way; rows that no label reaches get the class shares of the labels.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS = 10
LEAK = 1e-4
"""Share of a row's mass that Poisson learning loses a step, see :func:`poisson`."""


def nearest(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances and numbers of the nearest rows of each row, itself first."""
    found = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(rows)
    return found.kneighbors(rows)


def graph_of(near: np.ndarray, weights: np.ndarray | None = None) -> sparse.csr_matrix:
    """Directed graph from each row to those in its line of ``near``, with weights 1 by default."""
    n, each = near.shape
    values = np.ones(near.size) if weights is None else weights.ravel()
    starts = np.arange(0, near.size + 1, each)
    return sparse.csr_matrix((values, near.ravel(), starts), shape=(n, n))


def symmetric(graph: sparse.csr_matrix) -> sparse.csr_matrix:
    """D^(−1/2) W D^(−1/2) with the larger weight of each pair for W."""
    graph = graph.maximum(graph.T)
    root = sparse.diags(1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    return sparse.csr_matrix(root @ graph @ root)


def solve(graph: sparse.csr_matrix, alpha: float, right: np.ndarray) -> np.ndarray:
    """(I − α S) F = right by conjugate gradients, to 1e-4 of the right side or 300 steps."""
    found = np.zeros_like(right)
    rest = right.copy()
    way, square = rest.copy(), (rest**2).sum(axis=0)
    enough = 1e-8 * np.maximum(square, 1e-30)
    for _ in range(300):
        if (square <= enough).all():
            break
        step = way - alpha * (graph @ way)
        length = square / np.maximum((way * step).sum(axis=0), 1e-300)
        found += length * way
        rest -= length * step
        old, square = square, (rest**2).sum(axis=0)
        way = rest + square / np.maximum(old, 1e-300) * way
    return found


def given(labels: np.ndarray, classes: int) -> np.ndarray:
    """Indicator of the labels."""
    return (labels[:, None] == np.arange(classes)).astype(float)


def shares(labels: np.ndarray, classes: int) -> np.ndarray:
    """Class shares of the labels."""
    return given(labels[labels >= 0], classes).mean(axis=0)


def normalised(scores: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Scores of 0 and more as probabilities; ``otherwise`` in rows that have none."""
    scores = np.nan_to_num(np.maximum(scores, 0))
    total = scores.sum(axis=1, keepdims=True)
    return np.where(total > 0, scores / np.where(total > 0, total, 1), otherwise)


def spreading(graph: sparse.csr_matrix, labels: np.ndarray, classes: int) -> np.ndarray:
    """Label spreading with α = 0.99 and class mass: each class has the share its labels have."""
    scores = np.maximum(solve(graph, 0.99, given(labels, classes)), 0)
    prior, mass = shares(labels, classes), scores.sum(axis=0)
    return normalised(scores * prior / np.where(mass > 0, mass, 1), prior)


def poisson_weights(distances: np.ndarray, near: np.ndarray) -> sparse.csr_matrix:
    """Weights exp(−4 d²/d₁₀²), the mean of both directions, as GraphLearning has them."""
    far = distances[:, -1:]
    # Ten copies of a row are at distance 0: all of them count as 1.
    weights = np.exp(-4 * np.square(distances / np.where(far > 0, far, 1)))
    graph = graph_of(near[:, 1:], weights[:, 1:])
    return sparse.csr_matrix((graph + graph.T) / 2)


def poisson(weights: sparse.csr_matrix, labels: np.ndarray, classes: int) -> np.ndarray:
    """Poisson learning: L u = label − mean of the labels at labelled rows, 0 elsewhere.

    L = D − W is singular, once for each part of the graph, and a part often has labels of one
    class only. So D − (1−ε) W stands for L, with a small ε: then no part needs a sum of zero.
    Scores are of both signs. Probabilities are the softmax of the scores, which are divided by the
    middle row's largest one before.
    """
    prior = shares(labels, classes)
    source = np.where((labels >= 0)[:, None], given(labels, classes) - prior, 0)
    root = np.sqrt(np.asarray(weights.sum(axis=1)))
    scores = solve(symmetric(weights), 1 - LEAK, source / root) / root
    scores = scores / max(float(np.median(scores.max(axis=1))), 1e-300)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    powers[:, prior == 0] = 0
    return normalised(powers, prior)
