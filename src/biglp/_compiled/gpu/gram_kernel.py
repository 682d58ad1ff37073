"""Features normalised by their degrees, and the sums over them: one read and one write.

A program works on 16,384 rows, tile by tile: d = f·w, f̄ = f/√d, f̄ᵀf̄ and Σf̄. Its sums are one of
many partial ones, which are added in float64, so that 100 M rows lose no digits. Rows whose degree
is suspect are left as they are, for plain torch to look at.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl

from biglp._compiled.gpu.trial import Tiles, launched, next_power

GROUP = 1 << 14
"""Rows whose sums are added in float32."""
SHAPES = (Tiles(64, 2, 3), Tiles(64, 4, 2))
TALL_SHAPES = (Tiles(32, 4, 2), Tiles(64, 8, 2))
SUM_SHAPES = (Tiles(128, 4, 1), Tiles(256, 8, 1))


@triton.jit
def _normalised(
    features,
    weights,
    factors,
    grams,
    totals,
    n,
    least,
    COLUMNS: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    K: tl.constexpr,
    NORMALISE: tl.constexpr,
    WRITE: tl.constexpr,
    STAGES: tl.constexpr,
):
    group = tl.program_id(0)
    columns = tl.arange(0, K)
    weight = tl.load(weights + columns)
    gram = tl.zeros((K, K), dtype=tl.float32)
    total = tl.zeros((K,), dtype=tl.float64)
    for tile in tl.range(0, TILES, num_stages=STAGES):
        row = (group * TILES + tile) * TILE + tl.arange(0, TILE).to(tl.int64)
        inside = (row[:, None] < n) & (columns[None, :] < COLUMNS)
        place = features + row[:, None] * COLUMNS + columns[None, :]
        f = tl.load(place, mask=inside, other=0.0)
        if NORMALISE:
            degree = tl.sum(f * weight[None, :], axis=1)
            sure = degree > least
            factor = tl.where(sure, 1.0 / tl.sqrt(tl.where(sure, degree, 1.0)), 0.0)
            tl.store(factors + row, factor, mask=row < n)
            f *= factor[:, None]
            if WRITE:
                tl.store(place, f, mask=inside & sure[:, None])
        total += tl.sum(f, axis=0).to(tl.float64)
        # Three parts as in .products. Of two products that are each other's transpose one is taken
        # twice: the mean of the sum and its transpose is what is wanted.
        f1 = f.to(tl.bfloat16)
        left = f - f1.to(tl.float32)
        f2 = left.to(tl.bfloat16)
        f3 = (left - f2.to(tl.float32)).to(tl.bfloat16)
        turned = tl.trans(f1)
        gram = tl.dot(turned, f3 * 2, gram)
        gram = tl.dot(tl.trans(f2), f2, gram)
        gram = tl.dot(turned, f2 * 2, gram)
        gram = tl.dot(turned, f1, gram)
    square = columns[:, None] * K + columns[None, :]
    tl.store(grams + group * K * K + square, gram)
    tl.store(totals + group * K + columns, total)


@triton.jit
def _sums(
    features,
    totals,
    n,
    COLUMNS: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    K: tl.constexpr,
    STAGES: tl.constexpr,
):
    group = tl.program_id(0)
    columns = tl.arange(0, K)
    total = tl.zeros((K,), dtype=tl.float64)
    for tile in tl.range(0, TILES, num_stages=STAGES):
        row = (group * TILES + tile) * TILE + tl.arange(0, TILE).to(tl.int64)
        inside = (row[:, None] < n) & (columns[None, :] < COLUMNS)
        f = tl.load(features + row[:, None] * COLUMNS + columns[None, :], mask=inside, other=0.0)
        total += tl.sum(f, axis=0).to(tl.float64)
    tl.store(totals + group * K + columns, total)


def fused_gram(
    features: Any, weights: np.ndarray | None, least: float, *, in_place: bool
) -> tuple[Any, ...] | None:
    """Gram matrix and column sums of normalised features.

    Parameters
    ----------
    features : torch tensor of shape (b, p)
    weights : ndarray of shape (p,) or None
        A row's degree is its features times these; None: they are normalised already.
    least : float
        Degree up to which a row is suspect: it is left as it is, and not in the sums.
    in_place : bool
        Whether the features become normalised ones.

    Returns
    -------
    gram, totals, factors : tensors of shape (p, p), (p,) and (b,), or None
        In float64, and what rows were multiplied by: 0 for suspects.
    """
    torch = sys.modules["torch"]
    n, p = features.shape
    tall, device = next_power(p), features.device
    groups = -(-n // GROUP)
    filled = np.zeros(tall, dtype=np.float32)
    filled[:p] = 0.0 if weights is None else weights
    beside = torch.as_tensor(filled, device=device)

    def launch(some: Any, shape: Tiles) -> tuple[Any, ...]:
        n_groups = -(-some.shape[0] // GROUP)
        grams = torch.empty((n_groups, tall, tall), dtype=torch.float32, device=device)
        totals = torch.empty((n_groups, tall), dtype=torch.float64, device=device)
        factors = torch.empty(some.shape[0] if weights is not None else 1, device=device)
        _normalised[(n_groups,)](
            some,
            beside,
            factors,
            grams,
            totals,
            some.shape[0],
            float(least),
            COLUMNS=p,
            TILE=shape.rows,
            TILES=GROUP // shape.rows,
            K=tall,
            NORMALISE=weights is not None,
            WRITE=in_place,
            STAGES=shape.stages,
            num_warps=shape.warps,
        )
        gram = grams.sum(0, dtype=torch.float64)[:p, :p]
        return (gram + gram.T) / 2, totals.sum(0)[:p], factors

    def on_a_copy(some: Any, shape: Tiles) -> tuple[Any, ...]:
        return launch(some.clone(), shape)

    def agrees(some: Any, found: tuple[Any, ...]) -> bool:
        exact = some.double()
        if weights is not None:
            exact = exact * found[2].double()[:, None]
            degrees = some.double() @ beside[:p].double()
            sure = degrees > least * (1 + 1e-5)
            wrong = (found[2] - degrees.rsqrt()).abs() > 1e-5 * degrees.rsqrt()
            if bool((wrong & sure).any()):
                return False
        gram, totals, _ = found
        near = (gram - exact.T @ exact).abs() <= 1e-5 * (exact.T @ exact).diagonal().max()
        return bool(near.all()) and torch.allclose(totals, exact.sum(0), rtol=1e-5, atol=1e-5)

    key = ("gram", str(device), p, weights is None, in_place)
    shapes = SHAPES if tall <= 32 else TALL_SHAPES
    return launched(key, features, shapes, launch, agrees, on_a_copy) if groups else None


def fused_sums(features: Any) -> Any | None:
    """Sum of every column in float64; None where the kernel cannot be used.  (b, p) → (p,)."""
    torch = sys.modules["torch"]
    p, device = features.shape[1], features.device
    tall = next_power(p)

    def launch(some: Any, shape: Tiles) -> Any:
        n_groups = -(-some.shape[0] // GROUP)
        totals = torch.empty((n_groups, tall), dtype=torch.float64, device=device)
        _sums[(n_groups,)](
            some,
            totals,
            some.shape[0],
            COLUMNS=p,
            TILE=shape.rows,
            TILES=GROUP // shape.rows,
            K=tall,
            STAGES=shape.stages,
            num_warps=shape.warps,
        )
        return totals.sum(0)[:p]

    def agrees(some: Any, found: Any) -> bool:
        return bool(torch.allclose(found, some.double().sum(0), rtol=1e-5, atol=1e-5))

    return launched(("sums", str(device), p), features, SUM_SHAPES, launch, agrees)
