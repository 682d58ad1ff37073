"""Where a GLNP fit starts, as its parameters say."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.errors import LandmarkWarning, ParameterError, warn_caller
from biglp._lowrank.glnp.descent import ClusterStart, UniformStart
from biglp._lowrank.glnp.iterate import Start
from biglp._lowrank.landmarks import choose_landmarks
from biglp._lowrank.rows import TrainingRows

STARTS = ("clusters", "uniform")


def choose_start(rows: TrainingRows, start: Any, k: int, offsets: np.ndarray) -> tuple[Start, int]:
    """Choose the start and the number of columns."""
    source = rows.source
    if isinstance(start, str) and start == "uniform":
        if k > source.n_rows:
            warn_caller(
                f"n_landmarks={k} is more than the {source.n_rows} rows there are; "
                f"{source.n_rows} columns are used. Give a smaller n_landmarks.",
                LandmarkWarning,
            )
        k = min(k, source.n_rows)
        return UniformStart(k, rows.seed), k
    centres = choose_landmarks(rows, "kmeans" if isinstance(start, str) else start, k)
    return ClusterStart((centres - offsets).astype(source.dtype)), len(centres)


def check_start(k: int, start: Any, max_iter: int, tol: float) -> None:
    """Refuse parameters that mean nothing."""
    if isinstance(start, str) and start not in STARTS:
        raise ParameterError(
            f"start={start!r} is not known; use one of {', '.join(STARTS)}, "
            "or an array of centres of shape (k, n_features)."
        )
    if k < 1:
        raise ParameterError(f"k={k} columns are too few; use 1 or more.")
    if max_iter < 0:
        raise ParameterError(f"max_iter={max_iter} is not a number of iterations; use 0 or more.")
    if not tol >= 0:
        raise ParameterError(f"tol={tol} is not a tolerance; use a number of 0 or more.")
