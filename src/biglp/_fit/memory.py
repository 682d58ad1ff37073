"""What a run needs of memory, known before it begins.

The budget covers the whole process: Python and its libraries, the labels, the sample behind scaling
and landmarks, the blocks in work, the r × r arrays, and the features that are remembered between
sweeps with what is left. Blocks are cut by the budget alone; how many are in work at once is what
gives way when memory is short.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biglp._answers.committee.nearest import DISTANCES, count_voters
from biglp._answers.spreading import MAX_LABELLED
from biglp._core.blocks import BLOCKS_AT_ONCE, MIN_BLOCK_ROWS, rows_per_block
from biglp._core.errors import MemoryBudgetError
from biglp._core.memory import format_bytes
from biglp._fit.prepare import (
    ANCHOR_NEIGHBOURS,
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    automatic_landmarks,
    bytes_per_row,
    check_small_arrays,
    small_bytes,
)
from biglp._fit.settings import Settings
from biglp._lowrank.landmarks import ROWS_PER_LANDMARK
from biglp._propagate.systems import MOST_LABELLED, is_sparse_rank
from biglp._sources import Source
from biglp._sources.kept import KEPT_BYTES
from biglp._sources.prepared import PROJECT_ABOVE

PROCESS_BYTES = 60 << 20
"""Python, NumPy, SciPy and what the allocator does not give back."""
LEARNING_BYTES = 80 << 20
"""scikit-learn, which the committee loads."""
DECODED_BYTES = 72 << 20
"""pyarrow, and what its allocator keeps after a table was decoded."""
COLUMN_BYTES = 800 << 10
"""What decoding holds of each column of a table."""
PART_COPIES = 5
"""What decoding a row group in the middle of a sweep takes, counted in its size."""
SPARSE_BYTES = 160 << 20
"""scikit-learn, and pieces of text while LIBSVM is decoded."""
BLOCK_OBJECT_BYTES = 1200
ITERATES = 7
"""What GLNP holds of each row, counted in rows of F."""
GLNP_BYTES = 64 << 20
"""And what its many sweeps leave unused in the allocator."""


@dataclass(frozen=True)
class Shape:
    """The size of a problem.

    Attributes
    ----------
    n_rows, n_features, n_classes, n_labelled : int
    values : float
        Numbers that are stored for a row; fewer than features where rows are sparse.
    dtype : numpy.dtype
        Type of the arithmetic.
    decoding : int
        What decoding a table or text takes, before the first sweep.
    part_bytes : int
        What a worker holds of the input beside its block.
    n_machines : int
        Machines that share out the rows that are kept between sweeps.
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

    @property
    def kept_rows(self) -> int:
        """Rows of which one machine keeps something between sweeps."""
        return -(-self.n_rows // self.n_machines)


@dataclass(frozen=True)
class MemoryPlan:
    """How the memory of a run is shared out, in bytes.

    Attributes
    ----------
    rows_each : int
        Rows a block.
    workers : int
        Blocks in work at once.
    process, decoding, labels, landmarks, blocks, small : int
        Python itself; what decoding takes more; labels and block descriptions; the samples behind
        scaling and landmarks (or the rows of F of GLNP); blocks in work; r × r arrays.
    remembered, wanted : int
        What is left for features between sweeps, and what all of them would take.
    """

    rows_each: int
    workers: int
    process: int
    decoding: int
    labels: int
    landmarks: int
    blocks: int
    small: int
    remembered: int
    wanted: int
    budget: int
    """What the cut into blocks is made by."""

    @property
    def expected(self) -> int:
        """Memory that the run will take."""
        first = self.landmarks + self.blocks
        later = self.blocks + self.small + (self.wanted if self.wanted <= self.remembered else 0)
        return self.process + max(self.decoding, self.labels + max(first, later))


def plan_memory(memory: int, shape: Shape, settings: Settings, workers: int) -> MemoryPlan:
    """Share out a budget.

    Parameters
    ----------
    memory : int
        Budget of the whole process in bytes.
    shape : Shape
        The size of the problem.
    settings : Settings
        Its method.
    workers : int
        Blocks that may be in work at once; fewer when memory is short.

    Raises
    ------
    MemoryBudgetError
        Naming the smallest budget that works.
    """
    plan = _shared_out(memory, shape, settings, workers)
    if isinstance(plan, MemoryPlan):
        return plan
    least = least_memory(shape, settings)
    raise MemoryBudgetError(
        f"memory={format_bytes(memory)} is too little for {shape.n_rows:,} rows × "
        f"{shape.n_features:,} features with factor={settings.factor!r} and "
        f"{landmarks_of(shape, settings):,} landmarks: {plan}. Give at least {format_bytes(least)} "
        f"(--memory {-(-least >> 20)}MB), or use fewer landmarks."
    )


def scoring_budget(memory: int, a_row: int, source: Source, workers: int) -> int:
    """Budget of the blocks when new rows are scored with a model.

    Raises
    ------
    MemoryBudgetError
        Naming the smallest budget that works.
    """
    decoding = decoding_bytes(source)
    parts = PART_COPIES * workers * int(getattr(source, "part_bytes", 0))
    process = PROCESS_BYTES + max(decoding, min(decoding, DECODED_BYTES) + parts)
    least = process + 2 * BLOCKS_AT_ONCE * MIN_BLOCK_ROWS * a_row
    if memory < least:
        raise MemoryBudgetError(
            f"memory={format_bytes(memory)} is too little to label {source.n_rows:,} rows × "
            f"{source.n_features:,} features; give at least {format_bytes(least)} "
            f"(--memory {-(-least >> 20)}MB)."
        )
    return (memory - process) // 2


def within(settings: Settings, plan: MemoryPlan) -> Settings:
    """Settings whose budgets are those of the plan."""
    return replace(settings, memory=plan.budget, remembered=plan.remembered)


def _shared_out(memory: int, shape: Shape, settings: Settings, workers: int) -> MemoryPlan | str:
    """Return a plan, or what did not fit."""
    rank, itemsize = landmarks_of(shape, settings), shape.dtype.itemsize
    process = PROCESS_BYTES + LEARNING_BYTES * settings.committee
    process += min(shape.decoding, DECODED_BYTES)
    decoding = max(shape.decoding - DECODED_BYTES, 0)
    if memory < process + decoding:
        return f"Python and decoding the input alone take {format_bytes(process + decoding)}"
    codes = (1 if shape.n_classes < 127 else 2) * shape.n_rows
    budget = memory - process - codes - 24 * shape.n_labelled
    if budget <= 0:
        return f"Python and the labels alone take {format_bytes(memory - budget)}"
    a_row = bytes_per_row(shape.values, rank, shape.n_classes, shape.dtype, settings)
    try:
        check_small_arrays(rank, shape.n_rows, shape.n_labelled, settings, budget)
        rows_each = rows_per_block(a_row, budget, device=settings.device)
    except MemoryBudgetError:
        return f"blocks and small arrays do not fit the remaining {format_bytes(budget)}"
    labels = codes + 24 * shape.n_labelled + BLOCK_OBJECT_BYTES * (shape.n_rows // rows_each + 1)
    landmarks = _landmark_bytes(shape, settings, rank)
    small, result = _small_bytes(shape, settings, rank, rows_each)
    a_block = int(rows_each * (itemsize * 3 * shape.values + a_row)) + 3 * result
    a_block += PART_COPIES * shape.part_bytes
    voters = count_voters(shape.n_labelled, shape.n_rows, shape.n_features) * settings.committee
    # As they were read, as they are kept, and what each block measures of distances to them.
    small += (itemsize + 4) * voters * shape.n_features
    a_block += itemsize * DISTANCES * (voters > 0)
    if settings.committee and shape.n_features >= PROJECT_ABOVE:
        small += KEPT_BYTES
    needed = max(landmarks, small)
    left = memory - process - labels - needed
    if left < a_block:
        return (
            f"samples and small arrays take {format_bytes(needed)}, a block {format_bytes(a_block)}"
        )
    workers = min(workers, left // a_block)
    blocks = workers * a_block
    remembered = memory - process - labels - blocks - small
    return MemoryPlan(
        rows_each=rows_each,
        workers=workers,
        process=process,
        decoding=decoding,
        labels=labels,
        landmarks=landmarks,
        blocks=blocks,
        small=small,
        remembered=remembered,
        wanted=_stored_bytes(shape, settings, rank) * shape.kept_rows,
        budget=budget,
    )


def decoding_bytes(source: Source) -> int:
    """What decoding the input of a source took; 0 for rows that are read as they are."""
    encoding = getattr(source, "encoding", None)
    if encoding is None or not getattr(source, "stamps", ()):
        return 0
    if source.is_sparse:
        return SPARSE_BYTES
    return table_bytes(source.n_rows, int(encoding.n_inputs))


def table_bytes(n_rows: int, n_columns: int) -> int:
    """What decoding a table takes: pieces of every column, of a small table all of it."""
    return DECODED_BYTES + min(COLUMN_BYTES, 64 * n_rows) * n_columns


def least_memory(shape: Shape, settings: Settings) -> int:
    """Smallest budget that works, to a hundredth."""
    low, high = 1 << 20, 1 << 24
    while not isinstance(_shared_out(high, shape, settings, 1), MemoryPlan):
        low, high = high, 2 * high
    while high - low > max(low // 100, 1 << 20):
        middle = (low + high) // 2
        fits = isinstance(_shared_out(middle, shape, settings, 1), MemoryPlan)
        low, high = (low, middle) if fits else (middle, high)
    return high


def landmarks_of(shape: Shape, settings: Settings) -> int:
    """Number of landmarks k, the rank of the graph."""
    if settings.factor == "linear":
        return shape.n_features
    return settings.n_landmarks or automatic_landmarks(shape.n_rows, settings.factor)


def _landmark_bytes(shape: Shape, settings: Settings, rank: int) -> int:
    """Samples behind scaling, bandwidth and landmarks, and the centres with their sums."""
    a_row = int(shape.values * shape.dtype.itemsize)
    sample = 2 * min(SAMPLE_ROWS * a_row, max(SAMPLE_BYTES, 100 * a_row), shape.n_rows * a_row)
    if settings.factor == "linear":
        return sample
    centres = 8 * rank * shape.n_features * 6
    clustered = min(ROWS_PER_LANDMARK * rank, shape.n_rows) * a_row * 5 // 4
    if settings.factor in ("glnp", "glnp-mu"):
        iterates = GLNP_BYTES + ITERATES * shape.kept_rows * rank * shape.dtype.itemsize
        return sample + centres + max(clustered, iterates)
    return sample + centres + (clustered if settings.landmarks == "kmeans" else 0)


def _small_bytes(shape: Shape, settings: Settings, rank: int, rows_each: int) -> tuple[int, int]:
    """Sums, eigenvectors and leave-one-out; and what one block's sums take."""
    square = 8 * rank**2
    result = square
    if settings.factor == "anchors":
        result = min(square, 16 * rows_each * ANCHOR_NEIGHBOURS**2)
    elif settings.factor in ("glnp", "glnp-mu"):
        result = max(square, 8 * rank * shape.n_features)
    if settings.factor == "anchors" and is_sparse_rank(rank, shape.n_labelled):
        # Labelled rows are sparse too, and solved for a few at a time.
        chosen = 8 * MOST_LABELLED * (8 * ANCHOR_NEIGHBOURS + 6 * shape.n_classes)
        solved = 8 * 8 * rank * shape.n_classes
        return small_bytes(rank, shape.n_rows, shape.n_labelled, settings) + chosen + solved, result
    chosen = 8 * min(shape.n_labelled, MAX_LABELLED) * (4 * rank + 6 * shape.n_classes)
    return 8 * square + chosen, result


def _stored_bytes(shape: Shape, settings: Settings, rank: int) -> int:
    if settings.factor in ("glnp", "glnp-mu"):
        return 0  # counted with its iterates
    if settings.factor == "anchors":
        index = np.min_scalar_type(rank - 1).itemsize
        return ANCHOR_NEIGHBOURS * (shape.dtype.itemsize + index)
    return rank * shape.dtype.itemsize
