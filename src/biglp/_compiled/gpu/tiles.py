"""Products with the digits of float32 on matrix units that multiply shorter numbers.

A number is the sum of three with 8 digits each (bfloat16), x = x₁ + x₂ + x₃, and a product that of
six: x₁y₁ + x₁y₂ + x₂y₁ + x₂y₂ + x₁y₃ + x₃y₁, smallest first; what is left out is below the rounding
of float32. Rows of half precision have 11 digits or less and go into one tf32 number, so that two
products with the two tf32 parts of y are enough. Where tf32 will do, one is. With few columns, as
those of answers, three products of tf32 parts are quicker than six, and as good.
"""

from __future__ import annotations

import sys
from typing import Any

import triton
import triton.language as tl

TF32_MASK = -8192
"""Bits that tf32 keeps of a float32 number: sign, exponent and 10 of 23 digits."""
FLOAT32_PRODUCTS = 6


@triton.jit
def dots(x, y1, y2, y3, total, PRODUCTS: tl.constexpr):
    """Total + x·y, where y is in parts."""
    if PRODUCTS == 6:
        x1 = x.to(tl.bfloat16)
        left = x - x1.to(tl.float32)
        x2 = left.to(tl.bfloat16)
        x3 = (left - x2.to(tl.float32)).to(tl.bfloat16)
        total = tl.dot(x3, y1, total)
        total = tl.dot(x1, y3, total)
        total = tl.dot(x2, y2, total)
        total = tl.dot(x2, y1, total)
        total = tl.dot(x1, y2, total)
        total = tl.dot(x1, y1, total)
    elif PRODUCTS == 3:
        x1 = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
        total = tl.dot(x - x1, y1, total, input_precision="tf32")
        total = tl.dot(x1, y2, total, input_precision="tf32")
        total = tl.dot(x1, y1, total, input_precision="tf32")
    elif PRODUCTS == 2:
        total = tl.dot(x, y2, total, input_precision="tf32")
        total = tl.dot(x, y1, total, input_precision="tf32")
    else:
        total = tl.dot(x, y1, total, input_precision="tf32")
    return total


def n_products(rows: Any) -> int:
    """Products of parts that give float32's digits; one where torch is to multiply in tf32."""
    if sys.modules["torch"].backends.cuda.matmul.allow_tf32:
        return 1
    return 2 if rows.element_size() == 2 else FLOAT32_PRODUCTS


def in_parts(values: Any, products: int) -> Any:
    """Numbers as sums of three, of which the third is zero for tf32.  (...) → (3, ...)."""
    torch = sys.modules["torch"]
    if products == 6:
        first = values.bfloat16()
        left = values - first.float()
        second = left.bfloat16()
        return torch.stack([first, second, (left - second.float()).bfloat16()])
    leading = (values.view(torch.int32) & TF32_MASK).view(torch.float32)
    return torch.stack([leading, values - leading, torch.zeros_like(values)])
