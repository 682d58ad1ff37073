"""GLNP written out in the paper's letters, dense n × n, float64, for comparison only.

Everything is computed from X and F alone, as the paper writes it: no sums over blocks, no shared
scale, no formula for Q from P and M. The policy of the line search (first step, halving, growing)
is that of biglp, because a comparison step by step needs the same steps.
"""

import numpy as np

FIRST_STEP, SHRINK, GROW = 1.0, 0.5, 1.2


def objective(X, F):
    """‖X − FFᵀX‖² / ‖X‖² (Eq. GL_F)."""
    return np.linalg.norm(X - F @ F.T @ X) ** 2 / np.linalg.norm(X) ** 2


def gradient(X, F):
    """2D + 2G − 4B over ‖X‖², with B = XXᵀF, D = FFᵀB, G = B·FᵀF (Algorithm 4)."""
    B = X @ X.T @ F
    D = F @ F.T @ B
    G = B @ F.T @ F
    return (2 * D + 2 * G - 4 * B) / np.linalg.norm(X) ** 2


def multiplicative_update(X, F, exponent=0.5):
    """Eq. GL_F_update."""
    K = X @ X.T
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = 2 * K @ F / (F @ F.T @ K @ F + K @ F @ F.T @ F)
    return F * np.where(F > 0, ratio, 0) ** exponent


def multiplicative(X, F, iterations):
    """Algorithm 3; a step that raises Q is taken again with exponent 1/4."""
    history = [objective(X, F)]
    for _ in range(iterations):
        trial = multiplicative_update(X, F)
        if objective(X, trial) > history[-1]:
            trial = multiplicative_update(X, F, exponent=0.25)
        F = trial
        history.append(objective(X, F))
    return F, history


def accelerated_gradient(X, F, iterations):
    """Algorithm 1, corrected: own counter γ, restart, a line search that ends."""
    before, gamma, beta, eta = F, 1.0, 0.0, FIRST_STEP
    history = [objective(X, F)]
    for _ in range(iterations):
        Y = F + beta * (F - before)
        trial, eta_next = _line_search(X, Y, eta)
        if objective(X, trial) > history[-1]:
            gamma = 1.0
            trial, eta_next = _line_search(X, F, eta)
        before, F, eta = F, trial, eta_next
        history.append(objective(X, F))
        gamma_next = (1 + np.sqrt(1 + 4 * gamma**2)) / 2
        gamma, beta = gamma_next, (gamma - 1) / gamma_next
    return F, history


def _line_search(X, Y, eta):
    slope, first = gradient(X, Y), True
    while True:
        trial = np.maximum(Y - eta * slope, 0)
        move = trial - Y
        bound = objective(X, Y) + np.sum(slope * move) + np.sum(move**2) / (2 * eta)
        if objective(X, trial) <= bound:
            return trial, eta * GROW if first else eta
        eta, first = eta * SHRINK, False
