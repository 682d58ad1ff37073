"""The plain truth: label propagation on the dense n × n graph, in float64 and the paper's letters.

Nothing here is fast, blocked or shared with the package: kernels come from explicit differences,
degrees from row sums of W, F* from an n × n solve.

Letters: X the rows (n × m), L the landmarks (k × m), W the graph, D its degrees,
S = D^(−1/2)WD^(−1/2), Y the labels as one-hot rows (n × c), F the scores (n × c).
"""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

REPAIR_COSINE, SUSPECT_SHARE = 1e-3, 1e-2
"""The constants of the repair rule."""


def squared_distances(A, B):
    """‖a − b‖² from the differences themselves, so that nothing cancels."""
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    return np.array([((B - a) ** 2).sum(axis=1) for a in A])


def gaussian_kernel(A, B, sigma):
    """w(a, b) = exp(−‖a − b‖² / 2σ²), section 2.1."""
    return np.exp(-squared_distances(A, B) / (2.0 * sigma**2))


def rbf_graph(X, sigma):
    """W of the exact method."""
    return gaussian_kernel(X, X, sigma)


def linear_graph(X):
    """W = (X − min(X, 0))(X − min(X, 0))ᵀ: the rows shifted as in Algorithm S.1."""
    X = np.asarray(X, dtype=np.float64)
    shifted = X - np.minimum(X.min(axis=0), 0.0)
    return shifted @ shifted.T


def nystrom_graph(X, L, sigma, cutoff):
    """W = C·G⁺·Cᵀ, eigenvalues of G below ``cutoff`` times the largest counted as zero."""
    C, G = gaussian_kernel(X, L, sigma), gaussian_kernel(L, L, sigma)
    return C @ np.linalg.pinv(G, rcond=cutoff, hermitian=True) @ C.T


def anchor_weights(X, L, sigma, s):
    """Z: Gaussian weights to the s nearest landmarks, rows adding up to 1."""
    distances = squared_distances(X, L)
    Z = np.zeros_like(distances)
    for i, row in enumerate(distances):
        nearest = np.argsort(row, kind="stable")[:s]
        weights = np.exp(-(row[nearest] - row[nearest[0]]) / (2.0 * sigma**2))
        Z[i, nearest] = weights / weights.sum()
    return Z


def anchor_graph(X, L, sigma, s):
    """W = Z·Λ⁻¹·Zᵀ with Λ = diag(Zᵀ1)."""
    Z = anchor_weights(X, L, sigma, s)
    mass = Z.sum(axis=0)
    used = mass > 0
    return (Z[:, used] / mass[used]) @ Z[:, used].T


def own_graph(A):
    """S of a graph that is given: W = (A + Aᵀ)/2 without its diagonal; rows without ties stay 0."""
    A = np.asarray(A, dtype=np.float64)
    W = (A + A.T) / 2.0
    np.fill_diagonal(W, 0.0)
    d = W.sum(axis=1)
    d[d == 0] = 1.0
    return W / np.sqrt(np.outer(d, d)), d


def repaired_degrees(W):
    """Row sums of W, lifted where they are far too small or negative; how many were lifted.

    With W = FFᵀ the rule of the package reads, in n-space: ‖f_i‖² = W_ii and ‖Fᵀ1‖² = 1ᵀW1.
    """
    d = W.sum(axis=1)
    total = d.sum()
    norms = np.sqrt(np.maximum(np.diag(W), 0.0))
    floor = REPAIR_COSINE * norms * np.sqrt(total)
    lifted = (d < SUSPECT_SHARE * total / len(d)) & (d < floor) & (norms > 0)
    d = np.where(lifted, floor, d)
    return np.where(norms > 0, d, 1.0), int(lifted.sum())


def normalised_graph(W):
    """S = D^(−1/2)·W·D^(−1/2), divided by its largest eigenvalue when that is above 1."""
    d, _ = repaired_degrees(W)
    S = W / np.sqrt(np.outer(d, d))
    return S / max(1.0, np.linalg.eigvalsh(S)[-1])


def one_hot(codes, n_classes=None):
    """Y: row i has a one in column codes[i], and nothing but zeros where codes[i] is -1."""
    codes = np.asarray(codes)
    Y = np.zeros((len(codes), n_classes or codes.max() + 1))
    Y[codes >= 0, codes[codes >= 0]] = 1.0
    return Y


def closed_form(S, Y, alpha):
    """F* = (1−α)(I − αS)⁻¹Y, Eq. LP3."""
    return (1.0 - alpha) * np.linalg.solve(np.eye(len(S)) - alpha * S, Y)


def iterative(S, Y, alpha, tol=1e-14, max_iter=100_000):
    """F ← αSF + (1−α)Y on n-vectors until nothing moves, Eq. LP1 and Algorithm S.5."""
    F = Y
    for _ in range(max_iter):
        fresh = alpha * (S @ F) + (1.0 - alpha) * Y
        if np.abs(fresh - F).max() <= tol * np.abs(fresh).max():
            return fresh
        F = fresh
    raise AssertionError("the reference iteration did not converge")


def class_mass(F, Y, alpha):
    """Σ_i F_ij, where what the graph adds to the labels counts only if it is positive."""
    labels_alone = (1.0 - alpha) * Y.sum(axis=0)
    return labels_alone + np.maximum(F.sum(axis=0) - labels_alone, 0.0)


def balanced(F, Y, alpha, prior):
    """F_ij·q_j / mass_j, up to one common factor: the largest weight is 1."""
    weights = np.asarray(prior) / class_mass(F, Y, alpha)
    return F * (weights / weights.max())


def share_thresholds(G, shares):
    """τ for which column j of G − τ is the largest in a share q_j of the rows.

    As a linear programme: least Σ_i u_i / n + q·τ with u_i ≥ G_ij − τ_j, and Σ τ_j = 0.
    """
    (n, c), unit = G.shape, G.std()  # the solver has an absolute tolerance
    costs = np.concatenate([np.full(n, 1.0 / n), shares])
    rows = sparse.kron(sparse.eye(n), np.ones((c, 1)))
    limits = sparse.hstack([-rows, sparse.vstack([-sparse.eye(c)] * n)])
    sums_to_zero = np.concatenate([np.zeros(n), np.ones(c)])[None]
    found = linprog(costs, limits, -G.ravel() / unit, sums_to_zero, [0.0], bounds=(None, None))
    return unit * found.x[n:]


def with_shares(F, Y, d, alpha):
    """F_ij − τ_j·√d_i, τ from what the graph says of all rows, labels' own scores left out."""
    root = np.sqrt(d)[:, None]
    tau = share_thresholds((F - (1.0 - alpha) * Y) / root, Y.sum(axis=0) / Y.sum())
    return F - root * tau


def probabilities(scores, prior):
    """Positive parts of the scores, rows adding up to 1.

    Where nothing is positive, what they are above the lowest; the prior where all are the same.
    """
    lifted = scores - scores.min(axis=1, keepdims=True)
    parts = np.where((scores > 0).any(axis=1, keepdims=True), np.maximum(scores, 0.0), lifted)
    totals = parts.sum(axis=1, keepdims=True)
    return np.where(totals > 0, parts / np.where(totals > 0, totals, 1.0), prior)


def leave_one_out(S, Y, alpha):
    """Refit without each label in turn: that row's scores and the class masses.  Two (l, c)."""
    scores, masses = [], []
    for i in np.flatnonzero(Y.any(axis=1)):
        without = Y.copy()
        without[i] = 0.0
        F = closed_form(S, without, alpha)
        scores.append(F[i])
        masses.append(class_mass(F, without, alpha))
    return np.array(scores), np.array(masses)


def centred_labels(Y):
    """Y − 1_L·ȳᵀ: the mean label taken off the (weighted) label of every labelled row."""
    weights = Y.sum(axis=1, keepdims=True)
    return Y - weights * (Y.sum(axis=0) / Y.sum())


def poisson(W, Y):
    """Poisson learning: L·u = Σ_j (y_j − ȳ)δ_j with L = D − W and Σ_i d_i·u_i = 0."""
    d = W.sum(axis=1)
    u = np.linalg.pinv(np.diag(d) - W, hermitian=True, rcond=1e-10) @ centred_labels(Y)
    return u - (d @ u) / d.sum()


def normalised_poisson(S, Y):
    """The same on the normalised graph: (I − S)⁺(Y − 1_L·ȳᵀ)."""
    return np.linalg.pinv(np.eye(len(S)) - S, hermitian=True, rcond=1e-10) @ centred_labels(Y)


def leave_one_out_poisson(solve, graph, Y):
    """Refit without each label in turn: that row's scores.  (l, c)."""
    scores = []
    for i in np.flatnonzero(Y.any(axis=1)):
        without = Y.copy()
        without[i] = 0.0
        scores.append(solve(graph, without)[i])
    return np.array(scores)


def class_mean_logits(X, Y, x):
    """−½‖x − μ_j‖² + ½σ²/n_j, up to what all classes share; σ² is the variance within classes."""
    n = Y.sum(axis=0)
    means = (Y.T @ X) / n[:, None]
    variance = (Y * squared_distances(X, means)).sum() / (n.sum() - len(n))
    logits = -0.5 * squared_distances(x[None], means)[0] + 0.5 * variance / n
    return logits - logits.mean(), variance


def dense_smoothing(S, y, weights, alpha):
    """Σ_l K_il·w_l·y_l / Σ_l K_il·w_l with K = ((I − αS)⁻¹ − I)/α, in n-space."""
    K = (np.linalg.inv(np.eye(len(S)) - alpha * S) - np.eye(len(S))) / alpha
    known = ~np.isnan(y)
    return K[:, known] @ (weights * y)[known] / (K[:, known] @ weights[known])


def field_covariance(Phi, alpha, labelled, noise):
    """Covariance of a Gaussian field over rows, K = Φ(I − αΦᵀΦ)⁻¹Φᵀ, given noisy labels of some.

    The conditional covariance as textbooks have it, n × n: K − K_L(K_LL + σ²I)⁻¹K_Lᵀ.
    """
    K = Phi @ np.linalg.inv(np.eye(Phi.shape[1]) - alpha * Phi.T @ Phi) @ Phi.T
    L = np.asarray(labelled, dtype=int)
    inner = K[np.ix_(L, L)] + noise * np.eye(len(L))
    return K - K[:, L] @ np.linalg.inv(inner) @ K[L]
