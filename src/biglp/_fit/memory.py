"""What a run needs of memory, planned before its first sweep: one plan for every interface.

``memory`` is what a run may take of one machine, rows that are handed over as arrays not counted.
Where several processes of a run share a machine (MPI ranks, Dask workers), each has its share. The
share covers the whole process: Python and its libraries, the labels, the sample behind scaling and
landmarks, the blocks in work, the r × r arrays, the answers where they stay in memory, and the
features that are stored between sweeps with what is left. A GPU's memory is a second budget
(:mod:`.card`), which decides how large blocks are where rows are worked on there.

Blocks are cut by the budget alone, never by the number of processes, so that sums have the same
bits however many there are. How many blocks are in work at once is what gives way when memory is
short.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from biglp._answers import METHODS
from biglp._core.blocks import BLOCKS_AT_ONCE, MIN_BLOCK_ROWS, rows_per_block
from biglp._core.device import Place
from biglp._core.errors import MemoryBudgetError
from biglp._core.memory import format_bytes
from biglp._core.settings import Settings
from biglp._core.shape import Shape
from biglp._core.transfer import PINNED_BYTES
from biglp._engines import Engine
from biglp._fit.card import CardPlan, plan_card
from biglp._lowrank import FACTORS
from biglp._lowrank.base import Costs, FeatureMap
from biglp._lowrank.compiled import LOOPS_BYTES
from biglp._sources.decoding import DECODED_BYTES

PROCESS_BYTES = 63 << 20
"""Python, NumPy, SciPy and what the allocator does not give back."""
SKLEARN_BYTES = 80 << 20
"""scikit-learn, which the committee loads, and an estimator has loaded already."""
TORCH_BYTES = 140 << 20
"""torch, where the arithmetic runs through it; without what a GPU's driver takes on the host."""
PART_COPIES = 5
"""What decoding a row group in the middle of a sweep takes, counted in its size."""
BLOCK_OBJECT_BYTES = 1200
VOTING_BYTES = 4 << 20
"""What a block takes where the nearest labelled rows of a committee vote on new rows."""
SENT_COPIES = 3
"""Answers of rows that stay in memory and are made by several processes: all of them packed, and
unpacked, on the way into the arrays, and a process's own."""
SPARED_BYTES = 512 << 20
"""What is left free where a part of the features waits in memory, for the report and for what the
allocator does not give back: a quarter of what there is for them, and this at least."""
EVENLY, FEWEST_ROWS = 32, 2048
"""Blocks of few rows, at least, so that all cores are busy to the end of a sweep; and rows that are
too few to be worth more than one block."""


@dataclass(frozen=True)
class MemoryPlan:
    """How the memory of a process is shared out, in bytes.

    Attributes
    ----------
    rows_each : int
        Rows a block.
    workers : int
        Blocks in work at once in a process.
    process, decoding, labels, fitting, blocks, small, answers : int
        Python and its libraries; what decoding takes more; labels and block descriptions; the
        samples behind scaling and landmarks (or the rows of F of GLNP); blocks in work; sums, small
        arrays and models; answers that stay in memory.
    stored, wanted : int
        What is left for features between sweeps, and what those of this process would take.
    stored_row : int
        Features of one row.
    card : CardPlan or None
        The plan of a card's memory.
    """

    rows_each: int
    workers: int
    process: int
    decoding: int
    labels: int
    fitting: int
    blocks: int
    small: int
    answers: int
    stored: int
    wanted: int
    stored_row: int
    card: CardPlan | None = None

    @property
    def stores_features(self) -> bool:
        """Whether features wait between sweeps in memory: a card's, where they are made there."""
        return self.wanted <= self.stored if self.card is None else self.card.features > 0

    @property
    def kept(self) -> int:
        """Features that wait in the memory of the process: all, or as many as leave some room."""
        if self.card is not None:
            return 0
        if self.stores_features:
            return self.wanted
        return max(self.stored - max(self.stored // 4, SPARED_BYTES), 0)

    @property
    def expected(self) -> int:
        """Memory that the process will take."""
        later = self.blocks + self.small + self.kept
        working = self.labels + self.answers + max(self.fitting + self.blocks, later)
        return self.process + max(self.decoding, working)


def plan_memory(
    settings: Settings,
    shape: Shape,
    engine: Engine,
    answer_bytes: int = 0,
    likely: Shape | None = None,
) -> MemoryPlan:
    """Share out the budget of a fit.

    Parameters
    ----------
    settings : Settings
        The budget and the method.
    shape : Shape
        The size of the problem.
    engine : Engine
        Its threads may become fewer when memory is short.
    answer_bytes : int
        What the answers take where they stay in memory.
    likely : Shape, optional
        What the problem will be, where ``shape`` is only the least it can be: the budget that is
        named when this one is refused is for that.

    Raises
    ------
    MemoryBudgetError
        Naming the smallest budget that works.
    """
    plan = _shared_out(settings.memory, settings, shape, engine, answer_bytes)
    if isinstance(plan, MemoryPlan):
        return plan
    least = least_memory(settings, likely or shape, engine, answer_bytes)
    factor, graph = FACTORS[settings.graph.factor], settings.graph
    with_landmarks = ""
    advice = "give a graph with fewer ties" if factor.pairwise else "use fewer features"
    if factor.n_landmarks_counts:
        k = factor.rank_for(graph, shape.n_rows, shape.n_features)
        with_landmarks, advice = f" and {k:,} landmarks", "use fewer landmarks"
    sharing = f", shared by {engine.n_sharing} processes," if engine.n_sharing > 1 else ""
    raise MemoryBudgetError(
        f"memory={format_bytes(settings.memory)}{sharing} is too little for {shape.n_rows:,} rows "
        f"× {shape.n_features:,} features with factor={graph.factor!r}{with_landmarks}: {plan}. "
        f"Give at least {format_bytes(least)} (--memory {-(-least >> 20)}MB), or {advice}.",
        least=least,
    )


def least_memory(settings: Settings, shape: Shape, engine: Engine, answer_bytes: int = 0) -> int:
    """Smallest budget that works, to a hundredth."""

    def fits(memory: int) -> bool:
        plan = _shared_out(memory, settings, shape, engine, answer_bytes)
        return isinstance(plan, MemoryPlan)

    low, high = 1 << 20, 1 << 24
    while not fits(high):
        low, high = high, 2 * high
    while high - low > max(low // 100, 1 << 20):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _shared_out(
    memory: int, settings: Settings, shape: Shape, engine: Engine, answers: int
) -> MemoryPlan | str:
    """Return a plan, or what did not fit."""
    graph, share = settings.graph, memory // engine.n_sharing
    costs = FACTORS[graph.factor].costs(graph, shape)
    extra = METHODS[settings.answer.method].extra(shape)
    process = PROCESS_BYTES + engine.library_bytes + min(shape.decoding, DECODED_BYTES)
    process += SKLEARN_BYTES * (extra.sklearn or settings.sklearn)
    process += TORCH_BYTES * (graph.device != "cpu")
    process += max(costs.loaded, extra.loaded)
    decoding = max(shape.decoding - DECODED_BYTES, 0)
    if share < process + decoding:
        return f"Python and decoding the input alone take {format_bytes(process + decoding)}"
    labels = (1 if shape.n_classes < 127 else 2) * shape.n_rows + 24 * shape.n_labelled
    if not engine.shares_memory:
        answers *= 1 + SENT_COPIES
    left = share - process - labels - answers
    if left <= 0:
        what = "Python, the labels and the answers" if answers else "Python and the labels"
        return f"{what} alone take {format_bytes(share - left)}"
    # Raises where the card has too little: more of the computer's memory would not help.
    card = plan_card(graph.device, graph.gpu_memory, costs, shape, engine)
    try:
        # The budget of the machine, not of the share: any number of ranks has the same cut.
        whole = memory - process - labels
        rows_each = rows_per_block(costs.row, whole, device=graph.device, target=costs.target)
    except MemoryBudgetError:
        return f"blocks do not fit the remaining {format_bytes(left)}"
    if graph.device == "cpu":
        rows_each = min(rows_each, max(-(-shape.n_rows // EVENLY), FEWEST_ROWS))
    if card is not None:  # rows pass through small buffers, however large the blocks are
        rows_each = card.rows_each if shape.values == shape.n_features else rows_each
    sums = costs.sums
    if costs.sums_row:
        sums = min(sums, costs.sums_row * rows_each)
    in_work = int(rows_each * (3 * shape.row_bytes + costs.row)) if card is None else PINNED_BYTES
    a_block = in_work + 3 * sums + costs.block + extra.block
    a_block += PART_COPIES * shape.part_bytes
    small = costs.small + extra.small
    needed = max(costs.fitting, small)
    objects = BLOCK_OBJECT_BYTES * (shape.n_rows // rows_each + 1)
    left -= objects
    if left - needed < a_block:
        return (
            f"samples and small arrays take {format_bytes(needed)}, a block {format_bytes(a_block)}"
        )
    workers = min(engine.n_threads, (left - needed) // a_block)
    if card is not None:
        workers = min(workers, card.workers)
    holders = engine.n_sharing if engine.keeps_shares else 1
    return MemoryPlan(
        rows_each=rows_each,
        workers=workers,
        process=process,
        decoding=decoding,
        labels=labels + objects,
        fitting=costs.fitting,
        blocks=workers * a_block,
        small=small,
        answers=answers,
        stored=left - workers * a_block - small,
        wanted=costs.stored_row * shape.kept_rows // holders,
        stored_row=costs.stored_row,
        card=card,
    )


@dataclass(frozen=True)
class ScoringPlan:
    """How the memory of a process is shared out when new rows are scored."""

    rows_each: int
    workers: int


def plan_scoring(
    memory: int, factor: FeatureMap, shape: Shape, engine: Engine, place: Place | None = None
) -> ScoringPlan:
    """Share out the budget of scoring new rows with a model.

    Raises
    ------
    MemoryBudgetError
        Naming the smallest budget that works.
    """
    place = place or Place()
    device = place.device
    a_row = factor.row_bytes(factor.rank, shape, device)
    a_row += 3 * shape.n_classes * shape.dtype.itemsize
    parts = PART_COPIES * engine.n_threads * shape.part_bytes
    process = PROCESS_BYTES + engine.library_bytes + SKLEARN_BYTES * ("sklearn" in sys.modules)
    process += TORCH_BYTES * (device != "cpu") + LOOPS_BYTES * factor.compiled
    process += max(shape.decoding, min(shape.decoding, DECODED_BYTES) + parts)
    fixed = factor.block_bytes(factor.rank, shape, device) + VOTING_BYTES
    least = engine.n_sharing * (process + 2 * (BLOCKS_AT_ONCE * MIN_BLOCK_ROWS * a_row + fixed))
    if memory < least:
        raise MemoryBudgetError(
            f"memory={format_bytes(memory)} is too little to label {shape.n_rows:,} rows × "
            f"{shape.n_features:,} features; give at least {format_bytes(least)} "
            f"(--memory {-(-least >> 20)}MB).",
            least=least,
        )
    budget = (memory - process) // 2
    rows_each = rows_per_block(a_row, budget, device=device)
    costs = Costs(a_row, fitting=0, small=0, sums=0, sums_row=0, stored_row=0)
    card = plan_card(device, place.gpu_memory, costs, shape, engine)
    if card is not None and shape.values == shape.n_features:
        return ScoringPlan(card.rows_each, card.workers)
    share = memory // engine.n_sharing - process
    a_block = int(rows_each * (3 * shape.row_bytes + a_row)) + fixed
    return ScoringPlan(rows_each, max(min(engine.n_threads, share // a_block), 1))
