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
    """The size of a problem.

    Attributes
    ----------
    n_rows, n_features, n_classes, n_labelled : int
        For regression, a class is a column of sums.
    values : float
        Numbers that are stored for a row; fewer than features where rows are sparse.
    dtype : numpy.dtype
        Type of the arithmetic.
    decoding : int
        Bytes that decoding a table or text takes, before the first sweep.
    part_bytes : int
        Bytes that a thread holds of the input beside its block.
    n_machines : int
        Machines that share out what is kept of the rows between sweeps.
    directions : int
        Features that sparse rows are projected on, or that rows become if these are more; else 0.
    effort : str
        What is spent on them.
    gpu_row : int
        Bytes that a prepared row takes of a GPU if it stays there; 0 where it is there anyway.
    rank : int
        Features of the graph; 0 where the rows are a graph themselves.
    """

    n_rows: int
    n_features: int
    n_classes: int
    n_labelled: int
    values: float
    dtype: np.dtype[Any]
    decoding: int = 0
    part_bytes: int = 0
    n_machines: int = 1
    directions: int = 0
    effort: str = DEFAULT_EFFORT
    gpu_row: int = 0
    rank: int = 0

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
    """What a part of a fit takes: memory in bytes, and time in seconds.

    Attributes
    ----------
    libraries : mapping of str to int
        What it loads, by name: several parts may load the same, which is there once.
    opening : int
        Held before the first sweep only.
    fitting : int
        Held while it learns from samples of the rows.
    fixed : int
        Held from the sums on: these, and what is computed from them.
    answers : int
        Answers that stay in memory; several processes hold them more than once on their way.
    row : int
        Working memory of a row while its block is worked on. The cut into blocks follows from it.
    read_row : float
        What a row takes while it is read and prepared, which the cut leaves out: it is over when
        the features are made.
    block : int
        Working memory of a block, however many rows it has.
    sums, sums_row : int
        Sums of a block at most, and what a row adds to them where they are sparse; 0 where a block
        has all of ``sums``.
    target : int
        Working set of a block at which sweeps are quickest; 0: the usual one.
    stored_row : int
        Features of a row that wait between two sweeps.
    gpu : int
        What a GPU holds, however many rows a block has.
    seconds : mapping of str to float
        Guesses of what it adds to each step, by the names that progress has for them. They are of
        one core at 2.8 GHz; what counts is how they compare, and how they grow with the size.
    seconds_row : float
        Making the features of a row: in every sweep, or in the first where they are stored.
    """

    libraries: Mapping[str, int] = MappingProxyType({})
    opening: int = 0
    fitting: int = 0
    fixed: int = 0
    answers: int = 0
    row: int = 0
    read_row: float = 0.0
    block: int = 0
    sums: int = 0
    sums_row: int = 0
    target: int = 0
    stored_row: int = 0
    gpu: int = 0
    seconds: Mapping[str, float] = MappingProxyType({})
    seconds_row: float = 0.0


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
