"""The size of a problem, what parts of a fit cost at such a size, and what a fit may spend.

Rows, factor, method, members, engine and sink each say ``cost(size)``. :mod:`biglp._fit.plan` adds
these up: memory, the cut into blocks and the shares of the progress bar follow from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # help texts do without NumPy
    import numpy as np

# How much time a fit may take for how much accuracy: one line from "fast" to "best".
#
# What costs time for every row (landmarks to compare it with, labelled rows that vote on it, trees
# to walk down, members that say little) is chosen from counted operations, never by a clock: the
# same rows get the same method on every machine, with any number of threads. Everything grows and
# shrinks smoothly with the number of rows: as many comparisons as the effort allows, and never
# fewer for a row than are needed to be good. Seconds in reports are operations times what each took
# on one core of a server at 2.8 GHz.


TREE_STEP = 0.8e-9
"""Seconds of one step down a tree, compiled."""


@dataclass(frozen=True)
class Effort:
    """What a fit may spend."""

    fine: int  # landmarks up to which every other row of few is one
    landmarks: tuple[int, int]  # fewest of very many rows, and most of all
    landmark_pairs: int  # comparisons of all rows with landmarks, above which these become fewer
    voter_pairs: int  # the same with labelled rows that vote
    trees: int
    worth: float  # what a member's weight must be to be worth its time, in units of Member.worth

    def voters_for(self, n_rows: int, within: tuple[int, int]) -> int:
        """Labelled rows that may vote on so many rows."""
        least, most = within
        return max(min(self.voter_pairs // n_rows, most), least)


EFFORTS = {
    "fast": Effort(
        fine=1000,
        landmarks=(500, 1000),
        landmark_pairs=60_000_000,
        voter_pairs=75_000_000,
        trees=16,
        worth=4.0,
    ),
    "balanced": Effort(
        fine=2000,
        landmarks=(1000, 4000),
        landmark_pairs=500_000_000,
        voter_pairs=300_000_000,
        trees=64,
        worth=1.0,
    ),
    "best": Effort(
        fine=4000,
        landmarks=(2000, 8000),
        landmark_pairs=1_000_000_000,
        voter_pairs=2_400_000_000,
        trees=128,
        worth=0.0,
    ),
}
"""By name. "balanced" is the default; docs/benchmarks.md has what each takes and brings."""
DEFAULT_EFFORT = "balanced"


# --------------------------------------------------------------------------------------------------

OPTIMIZE = MappingProxyType({"scipy.optimize": 12 << 20})
"""What finds the weights of a committee, and its straight lines."""
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

    width: int = field(init=False)  # features of a row in the sweeps
    kept_rows: int = field(init=False)  # of which one machine keeps something between sweeps
    row_bytes: float = field(init=False)  # of a row as it is stored

    def __post_init__(self) -> None:
        for name, value in (
            ("width", self.directions or self.n_features),
            ("kept_rows", -(-self.n_rows // self.n_machines)),
            ("row_bytes", self.values * self.dtype.itemsize),
        ):
            object.__setattr__(self, name, value)


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


def add_up(costs: Sequence[Cost]) -> Cost:
    """What several parts cost together."""
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
