"""Many small non-negative least-squares problems with one matrix.

For every row c of C (b × k):  minimise f·H·fᵀ − 2·c·fᵀ over f ≥ 0, with H (k × k) positive
semi-definite. With H = PPᵀ and c = x·Pᵀ this is f ≥ 0 minimising ‖x − f·P‖².

All rows are worked on at once. Cyclic coordinate descent finds which entries of f are positive long
before it finds their values; so every few cycles the minimum over the present support is computed
exactly. A row whose minimum is non-negative and leaves no other entry a reason to grow (the KKT
conditions) is finished; the others go towards theirs until an entry becomes zero, as in the method
of Lawson and Hanson, and on with coordinate descent. Each part lowers the objective, so no support
comes back, and where coordinate descent alone would need thousands of cycles some tens are enough.
"""

from __future__ import annotations

import numpy as np

from biglp._arrays import Array, like, namespace

CYCLES = 10
"""Cycles of coordinate descent between two looks at the support."""
MAX_ROUNDS = 200
"""Looks before the rest is left as it is: feasible and near the minimum."""
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
        moved, finished = _on_support(f.T, c.T, H)
        F[open_rows[finished]] = moved[finished]
        open_rows, c = open_rows[~finished], c[:, ~finished]
        f = xp.stack(list(moved[~finished].T))
        if not len(open_rows):
            break
    F[open_rows] = f.T
    return F / like(C, scale)


def _on_support(f: Array, c: Array, H: Array) -> tuple[Array, Array]:
    """Go to the minimum over the positive entries of f, or as far towards it as f ≥ 0 allows.

    Returns the new f and whether it solves the whole problem.  (b, k), (b, k), (k, k) → (b, k), (b,)
    """
    xp = namespace(f)
    width = max(1, int(xp.amax((f > 0).sum(1))))
    moved, finished = xp.zeros_like(f), xp.zeros_like(f[:, 0], dtype=xp.bool)
    rows_each = max(1, CELLS // width**2)
    for start in range(0, len(f), rows_each):
        part = slice(start, start + rows_each)
        moved[part], finished[part] = _move(f[part], c[part], H, width)
    return moved, finished


def _move(f: Array, c: Array, H: Array, width: int) -> tuple[Array, Array]:
    """Solve on supports of at most ``width`` entries, padded with ones on the diagonal."""
    xp = namespace(f)
    slack = TOLERANCE * xp.amax(xp.abs(c), 1)[:, None]
    columns = xp.argsort(-f, 1)[:, :width]
    rows = xp.ones_like(columns[:, :1]).cumsum(0) - 1
    old = f[rows, columns]
    used = old > 0
    systems = H[columns[:, :, None], columns[:, None, :]] * (used[:, :, None] & used[:, None, :])
    systems += like(f, np.eye(width)) * xp.where(used, RIDGE, 1.0)[:, :, None]
    new = xp.linalg.solve(systems, (c[rows, columns] * used)[:, :, None])[:, :, 0]
    # The share of the way after which the first entry would turn negative; it stays at zero.
    blocked = new < -slack
    way = xp.where(blocked, old / xp.where(blocked, old - new, 1.0), 1.0)
    share = xp.amin(way, 1)[:, None]
    new = xp.where(blocked & (way <= share), 0.0, old + share * (new - old))
    moved = xp.zeros_like(f)
    moved[rows, columns] = new.clip(min=0)
    finished = ~blocked.any(1) & (c - moved @ H <= slack).all(1)
    return moved, finished
