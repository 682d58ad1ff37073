"""Gaussian kernel between rows and up to 128 landmarks: one read of the rows, one write of it.

exp(−γ‖x − l‖²) = exp(2γ·x·l − γ‖l‖² − γ‖x‖²), tile by tile of rows. The products are those of
:mod:`.products`.

Sizes and strides are constants of the compiled kernel: only so are whole groups of numbers loaded
at once. The features are taken in two halves, so that a tile's numbers stay in registers.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl

from biglp._compiled.gpu.tiles import dots, in_parts, n_products
from biglp._compiled.gpu.trial import Tiles, launched, n_programs, next_power

MOST_TF32 = 1 << 13
"""Numbers of half of the landmarks that fit a multiprocessor's memory in two tf32 parts."""
SHAPES = (Tiles(64, 4, 1), Tiles(64, 4, 2), Tiles(128, 8, 2), Tiles(128, 4, 3))


@triton.jit
def _gaussian(
    rows,
    points,
    squares,
    out,
    bad,
    n,
    gamma,
    M: tl.constexpr,
    STRIDE: tl.constexpr,
    COLUMNS: tl.constexpr,
    TILE: tl.constexpr,
    HALF: tl.constexpr,
    K: tl.constexpr,
    PRODUCTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    columns = tl.arange(0, K)
    feature = tl.arange(0, HALF)
    square = tl.load(squares + columns)
    # The landmarks stay where they are from tile to tile.
    place = points + feature[:, None] * K + columns[None, :]
    a1 = tl.load(place)
    a2 = tl.load(place + 2 * HALF * K)
    a3 = tl.load(place + 4 * HALF * K)
    b1 = tl.load(place + HALF * K)
    b2 = tl.load(place + 3 * HALF * K)
    b3 = tl.load(place + 5 * HALF * K)
    wrong = tl.zeros((TILE,), dtype=tl.int32)
    n_tiles = tl.cdiv(n, TILE)
    for tile in tl.range(tl.program_id(0), n_tiles, tl.num_programs(0), num_stages=STAGES):
        row = tile * TILE + tl.arange(0, TILE).to(tl.int64)
        there = rows + row[:, None] * STRIDE + feature[None, :]
        inside = (row[:, None] < n) & (feature[None, :] < M)
        x = tl.load(there, mask=inside, other=0.0).to(tl.float32)
        inside = (row[:, None] < n) & (feature[None, :] < M - HALF)
        y = tl.load(there + HALF, mask=inside, other=0.0).to(tl.float32)
        norms = tl.sum(x * x, axis=1) + tl.sum(y * y, axis=1)
        product = dots(x, a1, a2, a3, tl.zeros((TILE, K), dtype=tl.float32), PRODUCTS)
        product = dots(y, b1, b2, b3, product, PRODUCTS)
        exponent = product - square[None, :] - gamma * norms[:, None]
        # Rounding may take the distance to a landmark near by below zero.
        values = tl.exp(tl.minimum(exponent, 0.0))
        # Rows that are not finite, or too large to square, are for the caller to find.
        wrong += tl.where(norms < float("inf"), 0, 1)
        kept = (row[:, None] < n) & (columns[None, :] < COLUMNS)
        tl.store(out + row[:, None] * COLUMNS + columns[None, :], values, mask=kept)
    if tl.sum(wrong) > 0:
        tl.store(bad, 1)


def fused_gaussian(rows: Any, landmarks: np.ndarray, bandwidth: float) -> tuple[Any, Any] | None:
    """Features of rows on a device, and whether a row is not finite; None: it cannot be used."""
    torch = sys.modules["torch"]
    gamma, (k, m) = 0.5 / bandwidth**2, landmarks.shape
    half, tall = next_power(-(-m // 2)), next_power(k)
    filled = np.zeros((2 * half, tall), dtype=np.float32)
    filled[:m, :k] = (2.0 * gamma) * landmarks.T
    lengths = np.zeros(tall, dtype=np.float32)
    lengths[:k] = gamma * np.einsum("ij,ij->i", landmarks, landmarks, dtype=np.float64)
    products = n_products(rows)
    if products == 2 and half * tall > MOST_TF32:
        products = 6
    points = in_parts(torch.as_tensor(filled, device=rows.device), products)
    squares = torch.as_tensor(lengths, device=rows.device)

    def launch(some: Any, shape: Tiles) -> tuple[Any, Any]:
        out = torch.empty((some.shape[0], k), dtype=torch.float32, device=some.device)
        bad = torch.zeros(1, dtype=torch.int32, device=some.device)
        _gaussian[(n_programs(some, shape.rows),)](
            some,
            points,
            squares,
            out,
            bad,
            some.shape[0],
            float(gamma),
            M=m,
            STRIDE=some.stride(0),
            COLUMNS=k,
            TILE=shape.rows,
            HALF=half,
            K=tall,
            PRODUCTS=products,
            STAGES=shape.stages,
            num_warps=shape.warps,
        )
        return out, bad

    def agrees(some: Any, found: tuple[Any, Any]) -> bool:
        exact = some.double()
        given = torch.as_tensor(landmarks, dtype=torch.float64, device=some.device)
        expected = torch.exp(-gamma * torch.cdist(exact, given) ** 2)
        # An exponent has the rounding of the lengths that it is the difference of.
        size = 1.0 + 2.0 * gamma * float((exact * exact).sum(1).max())
        allowed = size * (2e-3 if products == 1 else 2e-6)
        return bool(((found[0] - expected).abs() <= allowed).all())

    key = ("gaussian", str(rows.device), str(rows.dtype), m, rows.stride(0), k, products)
    return launched(key, rows, SHAPES, launch, agrees)
