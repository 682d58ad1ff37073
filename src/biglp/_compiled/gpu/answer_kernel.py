"""Scores, class probabilities and the likeliest class of each row: one read, one write.

What :func:`biglp._learn.spreading.as_probabilities` does with scores, where these are features
times a few coefficients.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl

from biglp._compiled.gpu.tiles import dots, in_parts
from biglp._compiled.gpu.trial import Tiles, launched, n_programs, next_power

SHAPES = (Tiles(64, 4, 3), Tiles(128, 4, 2))
LARGEST_SHAPES = (Tiles(512, 4, 1),)


@triton.jit
def _shares(
    features,
    coefficients,
    prior,
    out,
    unreached,
    n,
    smallest,
    COLUMNS: tl.constexpr,
    CLASSES: tl.constexpr,
    TILE: tl.constexpr,
    K: tl.constexpr,
    C: tl.constexpr,
    STAGES: tl.constexpr,
):
    columns = tl.arange(0, K)
    classes = tl.arange(0, C)
    place = columns[:, None] * C + classes[None, :]
    a = tl.load(coefficients + place)
    b = tl.load(coefficients + K * C + place)
    usual = tl.load(prior + classes)
    real = classes[None, :] < CLASSES
    left = tl.zeros((TILE,), dtype=tl.int32)
    n_tiles = tl.cdiv(n, TILE)
    for tile in tl.range(tl.program_id(0), n_tiles, tl.num_programs(0), num_stages=STAGES):
        row = tile * TILE + tl.arange(0, TILE).to(tl.int64)
        inside = (row[:, None] < n) & (columns[None, :] < COLUMNS)
        f = tl.load(features + row[:, None] * COLUMNS + columns[None, :], mask=inside, other=0.0)
        scores = dots(f, a, b, b, tl.zeros((TILE, C), dtype=tl.float32), 3)
        shares = tl.maximum(scores, 0.0)
        totals = tl.sum(shares, axis=1)
        reached = totals > smallest
        # Unlike all classes, and then to be compared; or no score at all.
        low = tl.min(tl.where(real, scores, float("inf")), axis=1)
        above = tl.where(real, scores - low[:, None], 0.0)
        sums = tl.sum(above, axis=1)
        compared = sums > smallest
        shares = tl.where(reached[:, None], shares, above)
        totals = tl.where(reached, totals, sums)
        known = reached | compared
        shares = shares / tl.where(known, totals, 1.0)[:, None]
        shares = tl.where(known[:, None], shares, usual[None, :])
        left += tl.where((row < n) & (known == 0), 1, 0)
        kept = (row[:, None] < n) & real
        tl.store(out + row[:, None] * CLASSES + classes[None, :], shares, mask=kept)
    tl.store(unreached + tl.program_id(0), tl.sum(left))


@triton.jit
def _largest(array, out, n, COLUMNS: tl.constexpr, TILE: tl.constexpr, C: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE).to(tl.int64)
    column = tl.arange(0, C)
    inside = (row[:, None] < n) & (column[None, :] < COLUMNS)
    place = array + row[:, None] * COLUMNS + column[None, :]
    values = tl.load(place, mask=inside, other=-float("inf"))
    tl.store(out + row, tl.argmax(values, axis=1), mask=row < n)


def fused_shares(features: Any, coefficients: np.ndarray, prior: np.ndarray) -> Any | None:
    """Class probabilities, and rows that no label reaches; None: the kernel cannot be used."""
    torch = sys.modules["torch"]
    k, c = coefficients.shape
    tall, wide, device = next_power(k), next_power(c), features.device
    filled = np.zeros((tall, wide), dtype=np.float32)
    filled[:k, :c] = coefficients
    usual = np.zeros(wide, dtype=np.float32)
    usual[:c] = prior
    parts = in_parts(torch.as_tensor(filled, device=device), 3)
    beside = torch.as_tensor(usual, device=device)
    smallest = float(np.finfo(np.float32).tiny)

    def launch(some: Any, shape: Tiles) -> tuple[Any, Any]:
        programs = n_programs(some, shape.rows)
        out = torch.empty((some.shape[0], c), dtype=torch.float32, device=device)
        unreached = torch.empty(programs, dtype=torch.int32, device=device)
        _shares[(programs,)](
            some,
            parts,
            beside,
            out,
            unreached,
            some.shape[0],
            smallest,
            COLUMNS=k,
            CLASSES=c,
            TILE=shape.rows,
            K=tall,
            C=wide,
            STAGES=shape.stages,
            num_warps=shape.warps,
        )
        return out, unreached

    def agrees(some: Any, found: tuple[Any, Any]) -> bool:
        scores = some.double() @ torch.as_tensor(coefficients, device=device).double()
        shares = scores.clip(min=0)
        totals = shares.sum(1, keepdim=True)
        # Where hardly anything is positive the quotient says little about the product.
        plain = (totals > 1e-3 * scores.abs().sum(1, keepdim=True)) & (totals > smallest)
        near = (found[0] - shares / totals).abs() <= 1e-2 / 1e3
        return bool((near | ~plain).all())

    found = launched(("shares", str(device), k, c), features, SHAPES, launch, agrees)
    return None if found is None else (found[0], int(found[1].sum()))


def fused_largest(array: Any) -> Any | None:
    """Column of the largest entry of each row, the first of equals; None: it cannot be used."""
    torch = sys.modules["torch"]
    n, c = array.shape

    def launch(some: Any, shape: Tiles) -> Any:
        out = torch.empty(some.shape[0], dtype=torch.int32, device=some.device)
        _largest[(-(-some.shape[0] // shape.rows),)](
            some,
            out,
            some.shape[0],
            COLUMNS=c,
            TILE=shape.rows,
            C=next_power(c, 2),
            num_warps=shape.warps,
        )
        return out

    def agrees(some: Any, found: Any) -> bool:
        values = some.gather(1, found.long()[:, None])[:, 0]
        return bool((values == some.amax(1)).all())

    key = ("largest", str(array.device), str(array.dtype), c)
    return launched(key, array, LARGEST_SHAPES, launch, agrees) if n else None
