"""Many small non-negative least-squares problems with one matrix.

For every row c of C (b × k):  minimise f·H·fᵀ − 2·c·fᵀ over f ≥ 0, with H (k × k) positive
semi-definite. With H = PPᵀ and c = x·Pᵀ this is f ≥ 0 minimising ‖x − f·P‖².

All rows are worked on at once. Cyclic coordinate descent finds which entries of f are positive long
before it finds their values; so every few cycles the values are computed exactly on the present
support, and a row whose exact values are non-negative and leave no other entry a reason to grow
(the KKT conditions) is finished. A row for which coordinate descent alone would need hundreds of
cycles is finished after some tens, and its answer is exact.
"""

from __future__ import annotations

import numpy as np

from biglp._arrays import Array, like, namespace

CYCLES = 10
"""Cycles of coordinate descent between two looks at the support."""
MAX_ROUNDS = 200
"""Looks before the rest is left as coordinate descent has it: feasible and near the minimum."""
TOLERANCE = 1e-10
"""Violation of the KKT conditions, relative to the largest entry of c, that counts as rounding."""
RIDGE = 1e-14
"""Added to a diagonal of 1, so that parallel columns do not make a support singular."""
CELLS = 1 << 21
"""Numbers in the small systems solved at once."""


def nonnegative_least_squares(C: Array, H: np.ndarray) -> Array:
    """Solve every row's problem.

    Parameters
    ----------
    C : array of shape (b, k), float64
        Linear terms, NumPy or torch.
    H : ndarray of shape (k, k)
        Quadratic term; a column of zeros gets f = 0.

    Returns
    -------
    F : array of shape (b, k)
    """
    xp = namespace(C)
    diagonal = np.diag(H)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    unit = H / scale / scale[:, None]
    unit[diagonal <= 0, diagonal <= 0] = 1.0
    H = like(C, unit)
    C = C / like(C, scale)
    F = xp.zeros_like(C)
    open_rows = xp.cumsum(xp.ones_like(C[:, 0]), 0) - 1
    open_rows = xp.asarray(open_rows, dtype=xp.int64)
    # One variable of all rows is a contiguous line, which is what a cycle goes through.
    c = xp.stack(list(C.T))
    f = xp.zeros_like(c)
    for _ in range(MAX_ROUNDS):
        for _ in range(CYCLES):
            for j in range(len(f)):
                f[j] = (f[j] + c[j] - H[j] @ f).clip(min=0)
        exact, finished = _on_support(f.T, c.T, H)
        F[open_rows[finished]] = exact[finished]
        open_rows, f, c = open_rows[~finished], f[:, ~finished], c[:, ~finished]
        if not len(open_rows):
            break
    F[open_rows] = f.T
    return F / like(C, scale)


def _on_support(f: Array, c: Array, H: Array) -> tuple[Array, Array]:
    """Minimise over the positive entries of f only; say where that solves the whole problem.

    (b, k), (b, k), (k, k) → (b, k), (b,).
    """
    xp = namespace(f)
    width = max(1, int(xp.amax((f > 0).sum(1))))
    exact, finished = xp.zeros_like(f), xp.zeros_like(f[:, 0], dtype=xp.bool)
    rows_each = max(1, CELLS // width**2)
    for start in range(0, len(f), rows_each):
        part = slice(start, start + rows_each)
        exact[part], finished[part] = _solve(f[part], c[part], H, width)
    return exact, finished


def _solve(f: Array, c: Array, H: Array, width: int) -> tuple[Array, Array]:
    """Solve on supports of at most ``width`` entries, padded with ones on the diagonal."""
    xp = namespace(f)
    columns = xp.argsort(-f, 1)[:, :width]
    rows = xp.ones_like(columns[:, :1]).cumsum(0) - 1
    used = f[rows, columns] > 0
    systems = H[columns[:, :, None], columns[:, None, :]] * (used[:, :, None] & used[:, None, :])
    systems += like(f, np.eye(width)) * xp.where(used, RIDGE, 1.0)[:, :, None]
    values = xp.linalg.solve(systems, (c[rows, columns] * used)[:, :, None])[:, :, 0]
    exact = xp.zeros_like(f)
    exact[rows, columns] = values.clip(min=0)
    slack = TOLERANCE * xp.amax(xp.abs(c), 1)[:, None]
    finished = (values >= -slack).all(1) & (c - exact @ H <= slack).all(1)
    return exact, finished
