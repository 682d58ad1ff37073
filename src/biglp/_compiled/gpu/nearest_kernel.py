"""The few landmarks nearest to each row: a tile of rows is read once, no n × k matrix is written.

A tile of rows meets the landmarks tile by tile. Of each the few smallest ‖l‖² − 2x·l are taken out
one after the other and put in the place of the largest of those kept, where they are smaller.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl

from biglp._compiled.gpu.tiles import dots, in_parts, n_products
from biglp._compiled.gpu.trial import Tiles, launched, n_programs, next_power

SHAPES = (Tiles(64, 4, 1, 32), Tiles(128, 8, 1, 128), Tiles(64, 4, 1, 64))


@triton.jit
def _nearest(
    rows,
    points,
    squares,
    columns,
    values,
    n,
    n_landmarks,
    M: tl.constexpr,
    STRIDE: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
    LANDMARKS: tl.constexpr,
    SLOTS: tl.constexpr,
    COUNT: tl.constexpr,
    PRODUCTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    feature = tl.arange(0, WIDTH)
    within = tl.arange(0, LANDMARKS)
    slot = tl.arange(0, SLOTS)
    infinity = float("inf")
    n_tiles = tl.cdiv(n, TILE)
    for tile in tl.range(tl.program_id(0), n_tiles, tl.num_programs(0), num_stages=1):
        row = tile * TILE + tl.arange(0, TILE).to(tl.int64)
        inside = (row[:, None] < n) & (feature[None, :] < M)
        x = tl.load(rows + row[:, None] * STRIDE + feature[None, :], mask=inside, other=0.0)
        x = x.to(tl.float32)
        # Slots beyond those that are wanted hold less than anything, so that none is put there.
        best = tl.where(slot[None, :] < COUNT, infinity, -infinity) + tl.zeros(
            (TILE, SLOTS), dtype=tl.float32
        )
        chosen = tl.zeros((TILE, SLOTS), dtype=tl.int32)
        for first in tl.range(0, n_landmarks, LANDMARKS, num_stages=STAGES):
            landmark = first + within
            known = landmark < n_landmarks
            place = landmark[None, :] * WIDTH + feature[:, None]
            here = points + place
            mask = known[None, :]
            a = tl.load(here, mask=mask, other=0.0)
            b, c = a, a
            if PRODUCTS > 1:
                b = tl.load(here + n_landmarks * WIDTH, mask=mask, other=0.0)
            if PRODUCTS == 6:
                c = tl.load(here + 2 * n_landmarks * WIDTH, mask=mask, other=0.0)
            distance = tl.zeros((TILE, LANDMARKS), dtype=tl.float32)
            distance = dots(x, a, b, c, distance, PRODUCTS)
            distance += tl.load(squares + landmark, mask=known, other=infinity)[None, :]
            for _ in tl.static_range(COUNT):
                value, index = tl.min(distance, axis=1, return_indices=True)
                worst, where = tl.max(best, axis=1, return_indices=True)
                put = (slot[None, :] == where[:, None]) & (value < worst)[:, None]
                best = tl.where(put, value[:, None], best)
                chosen = tl.where(put, (first + index)[:, None], chosen)
                distance = tl.where(within[None, :] == index[:, None], infinity, distance)
        best = tl.where(slot[None, :] < COUNT, best, infinity)
        for rank in tl.static_range(COUNT):
            value = tl.min(best, axis=1)
            same = (best == value[:, None]) & (slot[None, :] < COUNT)
            column = tl.min(tl.where(same, chosen, 2147483647), axis=1)
            tl.store(values + row * COUNT + rank, value, mask=row < n)
            tl.store(columns + row * COUNT + rank, column, mask=row < n)
            taken = same & (chosen == column[:, None])
            best = tl.where(taken, infinity, best)
            chosen = tl.where(taken, 2147483647, chosen)


def fused_nearest(rows: Any, landmarks: np.ndarray, count: int) -> tuple[Any, Any] | None:
    """Columns (int32) and relative distances, nearest first; None: the kernel cannot be used."""
    torch = sys.modules["torch"]
    k, m = landmarks.shape
    wide, products = next_power(m), n_products(rows)
    filled = np.zeros((k, wide), dtype=np.float32)
    filled[:, :m] = -2.0 * landmarks
    points = in_parts(torch.as_tensor(filled, device=rows.device), products)
    lengths = np.einsum("ij,ij->i", landmarks, landmarks, dtype=np.float64).astype(np.float32)
    squares = torch.as_tensor(lengths, device=rows.device)

    def launch(some: Any, shape: Tiles) -> tuple[Any, Any]:
        size = (some.shape[0], count)
        columns = torch.empty(size, dtype=torch.int32, device=some.device)
        values = torch.empty(size, dtype=torch.float32, device=some.device)
        _nearest[(n_programs(some, shape.rows),)](
            some,
            points,
            squares,
            columns,
            values,
            some.shape[0],
            k,
            M=m,
            STRIDE=some.stride(0),
            TILE=shape.rows,
            WIDTH=wide,
            LANDMARKS=shape.width,
            SLOTS=next_power(count, 2),
            COUNT=count,
            PRODUCTS=products,
            STAGES=shape.stages,
            num_warps=shape.warps,
        )
        return columns, values

    def agrees(some: Any, found: tuple[Any, Any]) -> bool:
        exact = some.double()
        given = torch.as_tensor(landmarks, dtype=torch.float64, device=some.device)
        distances = (given * given).sum(1) - 2.0 * exact @ given.T
        columns, values = found
        expected = distances.topk(count, largest=False).values
        allowed = (2e-3 if products == 1 else 4e-6) * (1.0 + float(distances.abs().max()))
        # A row that is not finite has any columns, and one beyond the last ends the process.
        there = columns.long().clamp(0, len(given) - 1)
        same = (distances.gather(1, there) - values).abs() <= allowed
        return bool((same & ((values - expected).abs() <= allowed)).all())

    key = ("nearest", str(rows.device), str(rows.dtype), m, rows.stride(0), count, products)
    return launched(key, rows, SHAPES, launch, agrees)
