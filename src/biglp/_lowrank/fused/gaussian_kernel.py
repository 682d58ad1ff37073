"""Gaussian kernel between rows and up to 128 landmarks: one read of the rows, one write of it.

exp(−γ‖x − l‖²) = exp(2γ·x·l − γ‖l‖² − γ‖x‖²), tile by tile of rows. The product runs on the matrix
units in tf32, of which three make float32: x = x₁ + x₂ and l = l₁ + l₂ in leading digits and rests,
x·l ≈ x₂·l₁ + x₁·l₂ + x₁·l₁. Rows of half precision have no rest.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl

from biglp._lowrank.fused.trial import (
    Shape,
    launched,
    n_parts,
    n_programs,
    next_power,
    tf32_parts,
)

SHAPES = (Shape(64, 128, 4, 1), Shape(128, 128, 8, 1), Shape(64, 64, 4, 1))


@triton.jit
def _gaussian(
    rows,
    leading,
    rest,
    squares,
    out,
    n,
    m,
    k,
    stride,
    gamma,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
    STEP: tl.constexpr,
    K: tl.constexpr,
    PARTS: tl.constexpr,
):
    columns = tl.arange(0, K)
    square = tl.load(squares + columns)
    if STEP == WIDTH:  # the landmarks stay where they are from tile to tile
        place = tl.arange(0, WIDTH)[:, None] * K + columns[None, :]
        a = tl.load(leading + place)
        if PARTS > 1:
            b = tl.load(rest + place)
    n_tiles = tl.cdiv(n, TILE)
    for tile in range(tl.program_id(0), n_tiles, tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE).to(tl.int64)
        product = tl.zeros((TILE, K), dtype=tl.float32)
        norms = tl.zeros((TILE,), dtype=tl.float32)
        for first in tl.static_range(0, WIDTH, STEP):
            feature = first + tl.arange(0, STEP)
            inside = (row[:, None] < n) & (feature[None, :] < m)
            x = tl.load(rows + row[:, None] * stride + feature[None, :], mask=inside, other=0.0)
            x = x.to(tl.float32)
            norms += tl.sum(x * x, axis=1)
            if STEP < WIDTH:
                place = feature[:, None] * K + columns[None, :]
                a = tl.load(leading + place)
                if PARTS > 1:
                    b = tl.load(rest + place)
            if PARTS == 3:
                x1 = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
                product = tl.dot(x - x1, a, product, input_precision="tf32")
                product = tl.dot(x1, b, product, input_precision="tf32")
                product = tl.dot(x1, a, product, input_precision="tf32")
            elif PARTS == 2:
                product = tl.dot(x, b, product, input_precision="tf32")
                product = tl.dot(x, a, product, input_precision="tf32")
            else:
                product = tl.dot(x, a, product, input_precision="tf32")
        exponent = product - square[None, :] - gamma * norms[:, None]
        # Rounding may take the distance to a landmark near by below zero.
        exponent = tl.where(exponent > 0.0, 0.0, exponent)
        # Rows that are not finite, or too large to square, are for the caller to find.
        exponent = tl.where(norms[:, None] < float("inf"), exponent, float("nan"))
        kept = (row[:, None] < n) & (columns[None, :] < k)
        tl.store(out + row[:, None] * k + columns[None, :], tl.exp(exponent), mask=kept)


def fused_gaussian(rows: Any, landmarks: np.ndarray, bandwidth: float) -> Any | None:
    """Features of rows on a device; None where the kernel cannot be used.  (b, m) → (b, k)."""
    torch = sys.modules["torch"]
    gamma, (k, m) = 0.5 / bandwidth**2, landmarks.shape
    wide, tall = next_power(m), next_power(k)
    points = np.zeros((wide, tall), dtype=np.float32)
    points[:m, :k] = (2.0 * gamma) * landmarks.T
    leading, rest = tf32_parts(torch.as_tensor(points, device=rows.device))
    lengths = np.zeros(tall, dtype=np.float32)
    lengths[:k] = gamma * np.einsum("ij,ij->i", landmarks, landmarks, dtype=np.float64)
    squares = torch.as_tensor(lengths, device=rows.device)
    parts = n_parts(rows)

    def launch(some: Any, shape: Shape) -> Any:
        out = torch.empty((some.shape[0], k), dtype=torch.float32, device=some.device)
        _gaussian[(n_programs(some, shape.rows),)](
            some,
            leading,
            rest,
            squares,
            out,
            some.shape[0],
            m,
            k,
            some.stride(0),
            float(gamma),
            TILE=shape.rows,
            WIDTH=wide,
            STEP=min(shape.width, wide),
            K=tall,
            PARTS=parts,
            num_warps=shape.warps,
            num_stages=shape.stages,
        )
        return out

    def agrees(some: Any, found: Any) -> bool:
        exact = some.double()
        given = torch.as_tensor(landmarks, dtype=torch.float64, device=some.device)
        expected = torch.exp(-gamma * torch.cdist(exact, given) ** 2)
        # An exponent has the rounding of the lengths that it is the difference of.
        size = 1.0 + 2.0 * gamma * float((exact * exact).sum(1).max())
        return bool(((found - expected).abs() <= size * (2e-3 if parts == 1 else 2e-6)).all())

    key = ("gaussian", str(rows.device), str(rows.dtype), wide, tall, parts)
    return launched(key, rows, SHAPES, launch, agrees)
