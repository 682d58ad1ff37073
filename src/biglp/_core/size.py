"""The size of a problem, and what parts of a fit cost at such a size.

Rows, factor, method, members, engine and sink each say ``cost(size)``. :mod:`biglp._fit.plan` adds
these up: memory, the cut into blocks and the shares of the progress bar follow from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.parameters import DEFAULT_EFFORT

SKLEARN = MappingProxyType({"scikit-learn": 80 << 20})
"""What scikit-learn takes: the committee loads it, and an estimator has loaded it already."""
TORCH = MappingProxyType({"torch": 140 << 20})
"""torch, where the arithmetic runs through it; without what a GPU's driver takes on the host."""


@dataclass(frozen=True)
class Size:
    """The size of a problem."""

    n_rows: int
    n_features: int
    n_classes: int  # for regression, columns of sums
    n_labelled: int
    values: float  # numbers stored for a row; fewer than features where rows are sparse
    dtype: np.dtype[Any]  # of the arithmetic
    decoding: int = 0  # bytes that decoding a table or text takes, before the first sweep
    part_bytes: int = 0  # bytes that a thread holds of the input beside its block
    n_machines: int = 1  # that share out what is kept of the rows between sweeps
    directions: int = 0  # features that rows are projected on, if they are; else 0
    effort: str = DEFAULT_EFFORT
    gpu_row: int = 0  # bytes of a prepared row that stays on a GPU; 0 where it is there anyway
    rank: int = 0  # features of the graph; 0 where the rows are a graph themselves

    @property
    def width(self) -> int:
        """Features of a row in the sweeps."""
        return self.directions or self.n_features

    @property
    def kept_rows(self) -> int:
        """Rows of which one machine keeps something between sweeps."""
        return -(-self.n_rows // self.n_machines)

    @property
    def row_bytes(self) -> float:
        """Bytes of a row as it is stored."""
        return self.values * self.dtype.itemsize


class Cost(NamedTuple):
    """What a part of a fit takes: memory in bytes, and time in seconds."""

    libraries: Mapping[str, int] = MappingProxyType({})  # by name: what several load is there once
    opening: int = 0  # held before the first sweep only
    fitting: int = 0  # held while it learns from samples of the rows
    fixed: int = 0  # held from the sums on
    answers: int = 0  # that stay in memory; several processes hold them more than once on the way
    row: int = 0  # working memory while its block is worked on; the cut into blocks follows from it
    read_row: float = 0.0  # while it is read; the cut leaves it out, being over before the features
    block: int = 0  # working memory of a block, however many rows it has
    sums: int = 0  # of a block at most …
    sums_row: int = 0  # … and what a row adds where they are sparse; 0 where a block has them all
    target: int = 0  # working set of a block at which sweeps are quickest; 0: the usual one
    stored_row: int = 0  # features of a row that wait between two sweeps
    gpu: int = 0  # what a GPU holds, however many rows a block has
    # Guesses by step, of one core at 2.8 GHz: what counts is how they compare, and how they grow.
    seconds: Mapping[str, float] = MappingProxyType({})
    seconds_row: float = 0.0  # features of a row: in each sweep, or in the first where it is stored


HasCost = Callable[[Size], Cost]
"""The ``cost`` of a part."""


def add_up(costs: Iterable[Cost]) -> Cost:
    """What several parts cost together."""
    costs = list(costs)
    libraries: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for cost in costs:
        for name, size in cost.libraries.items():
            libraries[name] = max(libraries.get(name, 0), size)
        for step, more in cost.seconds.items():
            seconds[step] = seconds.get(step, 0.0) + more
    names = [name for name in Cost._fields if name not in ("libraries", "seconds")]
    totals = {name: sum(getattr(cost, name) for cost in costs) for name in names}
    return Cost(**totals, libraries=libraries, seconds=seconds)


def values_per_row(sample: Rows) -> float:
    """Numbers that are stored for a row: all of a dense one, three for each entry of a sparse."""
    if sparse.issparse(sample):
        return 3.0 * sample.nnz / sample.shape[0]
    return float(sample.shape[1])
