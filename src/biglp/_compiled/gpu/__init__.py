"""Faster ways to some numbers of rows on a CUDA GPU, in Triton.

Each function returns what its plain counterpart does, or None where it cannot be used: the caller
goes on in plain torch then, which is the reference. Triton comes with torch's CUDA builds and is
loaded here only. Before a kernel is used it has to agree with plain torch on some rows
(:mod:`.trial`); whatever goes wrong with it is told once, and plain torch goes on.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

Tensor = Any

PLACES = ["cuda"]
"""Types of devices whose rows may be taken."""
WIDE, HALVES = ("torch.float32",), ("torch.float32", "torch.float16", "torch.bfloat16")
FEWEST_ROWS = 1 << 18
"""Rows of a block from which on a kernel is worth the seconds that compiling it takes once."""
MOST_ROWS = 1 << 30
"""Rows of a block up to which their numbers are counted in 32 bits."""
MOST_LANDMARKS, MOST_FEATURES, MOST_NEAREST, MOST_CLASSES = 128, 256, 8, 64
"""Columns of features, features of a row, nearest landmarks and classes, at most: what a tile holds
at once."""


def gaussian(rows: Tensor, landmarks: np.ndarray, bandwidth: float) -> tuple[Tensor, Tensor] | None:
    """As :func:`biglp._graph.kernels.gaussian`; and whether a row is not finite."""
    if len(landmarks) > MOST_LANDMARKS or not usable(rows, MOST_FEATURES, HALVES):
        return None
    from biglp._compiled.gpu.gaussian_kernel import fused_gaussian

    return fused_gaussian(rows, landmarks, bandwidth)


def nearest(rows: Tensor, landmarks: np.ndarray, count: int) -> tuple[Tensor, Tensor] | None:
    """As :func:`biglp._graph.kernels.nearest_landmarks`, without the n × k distances."""
    if count > MOST_NEAREST or not usable(rows, MOST_FEATURES, HALVES):
        return None
    from biglp._compiled.gpu.nearest_kernel import fused_nearest

    return fused_nearest(rows, landmarks, count)


def gram(
    features: Tensor, weights: np.ndarray | None, least: float, *, in_place: bool
) -> tuple[Tensor, ...] | None:
    """Gram matrix and column sums of normalised features; see :func:`.gram.fused_gram`."""
    if not usable(features, MOST_LANDMARKS):
        return None
    from biglp._compiled.gpu.gram_kernel import fused_gram

    return fused_gram(features, weights, least, in_place=in_place)


def column_sums(array: Tensor) -> Tensor | None:
    """As :func:`biglp._compiled.column_sums`."""
    if not usable(array, MOST_LANDMARKS):
        return None
    from biglp._compiled.gpu.gram_kernel import fused_sums

    return fused_sums(array)


def shares(
    features: Tensor, coefficients: np.ndarray, prior: np.ndarray
) -> tuple[Tensor, int] | None:
    """As :func:`biglp._learn.spreading.as_probabilities` of features times coefficients."""
    if coefficients.shape[1] > MOST_CLASSES or not usable(features, MOST_LANDMARKS):
        return None
    from biglp._compiled.gpu.answer_kernel import fused_shares

    return fused_shares(features, coefficients, prior)


def largest(array: Tensor) -> Tensor | None:
    """As :func:`biglp._compiled.largest_column`."""
    if not usable(array, MOST_CLASSES):
        return None
    from biglp._compiled.gpu.answer_kernel import fused_largest

    return fused_largest(array)


def usable(array: Tensor, most_columns: int, types: tuple[str, ...] = WIDE) -> bool:
    """Whether an array is a matrix on a card that kernels take."""
    return (
        type(array).__module__.partition(".")[0] == "torch"
        and array.device.type in PLACES
        and str(array.dtype) in types
        and FEWEST_ROWS <= array.shape[0] < MOST_ROWS
        and array.shape[1] <= most_columns
        and array.stride(1) == 1
        and (types == HALVES or array.is_contiguous())
        and find_spec("triton") is not None
    )
