"""Faster ways to the numbers of :mod:`biglp._lowrank.kernels` for rows on a CUDA GPU, in Triton.

Each function returns what its plain counterpart does, or None where it cannot be used: the caller
goes on in plain torch then, which is the reference. Triton comes with torch's CUDA builds and is
loaded here only. Before a kernel is used it has to agree with plain torch on some rows
(:mod:`.trial`); whatever goes wrong with it is told once, and plain torch goes on.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from biglp._core.arrays import Rows, is_torch

PLACES = ["cuda"]
"""Types of devices whose rows may be taken; Triton's interpreter takes those of a processor."""
TYPES = ("torch.float32", "torch.float16", "torch.bfloat16")
FEWEST_ROWS = 4096
"""Rows of a block from which on a kernel is worth its launch."""
MOST_ROWS = 1 << 30
"""Rows of a block up to which their numbers are counted in 32 bits."""
MOST_LANDMARKS, MOST_FEATURES, MOST_NEAREST = 128, 256, 8
"""Landmarks of the Gaussian kernel, features of a row, and nearest landmarks, at most: what a tile
holds at once."""


def gaussian(rows: Rows, landmarks: np.ndarray, bandwidth: float) -> Any | None:
    """As :func:`biglp._lowrank.kernels.gaussian`; NaN for rows that are not finite."""
    if len(landmarks) > MOST_LANDMARKS or not _usable(rows):
        return None
    from biglp._lowrank.fused.gaussian_kernel import fused_gaussian

    return fused_gaussian(rows, landmarks, bandwidth)


def nearest(rows: Rows, landmarks: np.ndarray, count: int) -> tuple[Any, Any] | None:
    """As :func:`biglp._lowrank.kernels.nearest_landmarks`, without the n × k distances."""
    if count > MOST_NEAREST or not _usable(rows):
        return None
    from biglp._lowrank.fused.nearest_kernel import fused_nearest

    return fused_nearest(rows, landmarks, count)


def _usable(rows: Rows) -> bool:
    return (
        is_torch(rows)
        and rows.device.type in PLACES
        and str(rows.dtype) in TYPES
        and FEWEST_ROWS <= rows.shape[0] < MOST_ROWS
        and rows.shape[1] <= MOST_FEATURES
        and rows.stride(1) == 1
        and find_spec("triton") is not None
    )
