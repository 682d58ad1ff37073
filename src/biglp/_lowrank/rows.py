"""The training rows: prepared, cut into blocks, with an engine to visit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.blocks import Block
from biglp._engines import Engine
from biglp._rows import PreparedRows, Source
from biglp._rows.source import sample_rows
from biglp._transforms.project import PROJECT_ABOVE

SAMPLE_ROWS = 20_000
SAMPLE_BYTES = 16 << 20
"""Rows behind the scaling and the automatic bandwidth: so many, or so much of wide rows."""
WIDE_SAMPLE_ROWS = 2000
"""Rows behind them where there are hundreds of features: more would take longer than a sweep."""


@dataclass(frozen=True)
class TrainingRows:
    """The training rows, ready for the sweeps.

    Attributes
    ----------
    engine : Engine
    source : PreparedRows
        Scaled rows in the type of the arithmetic.
    blocks : sequence of Block
        The cut of the source.
    seed : int
    drawn : array or CSR matrix, optional
        The sample before it is scaled; None in a run that is resumed.
    view : str
        Name of this view of the rows in checkpoints and model files.
    """

    engine: Engine
    source: PreparedRows
    blocks: Sequence[Block]
    seed: int
    drawn: Rows | None = None
    view: str = "rows"

    @cached_property
    def sample(self) -> Rows:
        """Scaled rows behind the automatic bandwidth."""
        drawn = self.drawn
        if drawn is None:
            drawn = draw_sample(self.source.inner, self.source.dtype, self.seed)
        return self.source.chain.apply(drawn)


def draw_sample(source: Source, dtype: np.dtype[Any], seed: int) -> Rows:
    """Draw the rows behind the scaling and the automatic bandwidth, unscaled."""
    size = SAMPLE_ROWS
    if not source.is_sparse:
        size = min(size, max(SAMPLE_BYTES // (source.n_features * dtype.itemsize), 100))
        size = min(size, WIDE_SAMPLE_ROWS) if source.n_features >= PROJECT_ABOVE else size
    return sample_rows(PreparedRows(source, dtype), size, seed)
