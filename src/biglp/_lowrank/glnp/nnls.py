"""Many small non-negative least-squares problems with one matrix.

For every row c of C (b × k):  minimise f·H·fᵀ − 2·c·fᵀ over f ≥ 0, with H (k × k) positive
semi-definite. With H = PPᵀ and c = x·Pᵀ this is f ≥ 0 minimising ‖x − f·P‖².

All rows are worked on at once. Cyclic coordinate descent finds which entries of f are positive long
before it finds their values; so every few cycles the minimum over the present support is computed
exactly, entries that would turn negative being dropped one after the other (the inner loop of
Lawson and Hanson). A row whose minimum leaves no other entry a reason to grow (the KKT conditions)
is finished; the others go on. Both parts lower the objective, so no support comes back, and where
coordinate descent alone would need thousands of cycles some tens are enough.
"""

from __future__ import annotations

import numpy as np

from biglp._core.arrays import Array, like, namespace

CYCLES = 5
"""Cycles of coordinate descent between two looks at the support."""
MAX_ROUNDS = 100
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
        Quadratic term; where it is zero, C is too, and f stays zero.

    Returns
    -------
    F : array of shape (b, k)
    """
    xp = namespace(C)
    diagonal = np.diag(H)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    H = like(C, H / scale / scale[:, None])
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
        best = _on_support(f.T, c.T, H)
        slack = TOLERANCE * xp.amax(xp.abs(c), 0)[:, None]
        finished = (c.T - best @ H <= slack).all(1)
        F[open_rows[finished]] = best[finished]
        open_rows, c = open_rows[~finished], c[:, ~finished]
        f = xp.stack(list(best[~finished].T))
        if not len(open_rows):
            break
    F[open_rows] = f.T
    return F / like(C, scale)


def _on_support(f: Array, c: Array, H: Array) -> Array:
    """Find the minimum over the positive entries of f, less those that would turn negative.

    (b, k), (b, k), (k, k) → (b, k).
    """
    xp = namespace(f)
    f = f + 0.0  # a copy, which is written to
    blocked = f[:, 0] >= 0
    while bool(blocked.any()):
        todo = xp.where(blocked)[0]
        width = max(1, int(xp.amax((f[todo] > 0).sum(1))))
        rows_each = max(1, CELLS // width**2)
        for first in range(0, len(todo), rows_each):
            part = todo[first : first + rows_each]
            f[part], blocked[part] = _move(f[part], c[part], H, width)
    return f


def _move(f: Array, c: Array, H: Array, width: int) -> tuple[Array, Array]:
    """Go towards the minimum over the positive entries, ``width`` at most, until one is zero.

    Returns the new f and whether something was in the way. The systems of rows with fewer entries
    are padded with ones on the diagonal.
    """
    xp = namespace(f)
    columns = xp.argsort(-f, 1)[:, :width]
    rows = xp.ones_like(columns[:, :1]).cumsum(0) - 1
    old = f[rows, columns]
    used = old > 0
    systems = H[columns[:, :, None], columns[:, None, :]] * (used[:, :, None] & used[:, None, :])
    systems += like(f, np.eye(width)) * xp.where(used, RIDGE, 1.0)[:, :, None]
    new = xp.linalg.solve(systems, (c[rows, columns] * used)[:, :, None])[:, :, 0]
    falling = new < 0
    way = xp.where(falling, old / xp.where(falling, old - new, 1.0), 1.0)
    share = xp.amin(way, 1)[:, None]
    moved = xp.zeros_like(f)
    # The entry that is first to reach zero is put there, not merely near it: it leaves the support.
    moved[rows, columns] = xp.where(falling & (way <= share), 0.0, old + share * (new - old))
    return moved, falling.any(1)
