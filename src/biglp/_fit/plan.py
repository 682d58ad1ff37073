"""What a run takes, planned before its first sweep: memory, the cut into blocks, and its steps.

Every part says what it costs at this size (:class:`biglp._core.size.Cost`); here it is added up.

``memory`` is what a run may take of one machine, rows that are handed over as arrays not counted.
Where several processes of a run share a machine (MPI ranks, Dask workers), each has its share. The
share covers the whole process: Python and its libraries, the labels, the sample behind scaling and
landmarks, the blocks in work, the r × r arrays, the answers where they stay in memory, and the
features that are stored between sweeps with what is left. A GPU's memory is a second budget, which
decides how large blocks are where rows are worked on there.

Blocks are cut by the budget alone, never by the number of processes, so that sums have the same
bits however many there are. How many blocks are in work at once is what gives way when memory is
short.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from biglp._core.device import PINNED_BYTES, Device
from biglp._core.errors import MemoryBudgetError
from biglp._core.memory import (
    BLOCKS_AT_ONCE,
    MIN_BLOCK_ROWS,
    format_bytes,
    free_gpu_memory,
    rows_per_block,
)
from biglp._core.settings import Settings
from biglp._core.size import SKLEARN, TORCH, Cost, HasCost, Size, add_up
from biglp._engines import Engine
from biglp._graph import FACTORS
from biglp._graph.features import FeatureMap
from biglp._learn import METHODS
from biglp._rows import PreparedRows

PROCESS_BYTES = 63 << 20
"""Python, NumPy, SciPy and what the allocator does not give back."""
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
GPU_SHARE = 0.8
"""Share of a GPU's free memory that may be taken: the rest is for the library's own buffers."""
GPU_LIBRARY_BYTES = 512 << 20
"""Handles and workspaces of torch's matrix products, and what trees and nearest labels hold."""
GPU_BLOCK_SHARE = 0.25
"""Share of the budget that blocks in work may take, where not all of the rest can stay."""
GPU_BLOCK_BYTES, GPU_BLOCK_BYTES_FROM_HOST = 56 << 30, 8 << 30
"""Working set of a block, at most: few launches where the rows are there already, several blocks
where one is copied while another is worked on."""
STEPS = ("graph", "k-means", "GLNP", "degrees", "Gram", "learning", "labels", "report")
"""Steps of a run in their order; a new part may have others, which come first."""
SWEEPS = ("degrees", "Gram", "labels")
"""Steps in which every row's features are needed."""


@dataclass(frozen=True)
class Machine:
    """What a run may take of a machine."""

    memory: int  # bytes, shared by the engine's processes there
    engine: Engine  # its threads and processes
    place: Device  # where the arithmetic runs


@dataclass(frozen=True)
class GpuPlan:
    """How a GPU's memory is shared out, in bytes."""

    budget: int  # what may be taken
    rows_each: int  # rows a block
    workers: int  # blocks in work at once
    # Blocks in work; rows and features that stay, or 0
    blocks: int
    rows: int
    features: int

    @property
    def expected(self) -> int:
        """Memory that the run will take."""
        return GPU_LIBRARY_BYTES + self.blocks + self.rows + self.features

    def describe(self) -> dict[str, int | bool]:
        """For the report."""
        return {
            "gpu_memory": self.budget,
            "planned": self.expected,
            "rows_stay": self.rows > 0,
            "features_stay": self.features > 0,
            "rows_per_block": self.rows_each,
        }


@dataclass(frozen=True)
class Plan:
    """How the memory of a process is shared out, in bytes, and what the steps are."""

    rows_each: int  # rows a block
    workers: int  # blocks in work at once in a process
    # Python and its libraries; what decoding takes more; labels and block descriptions; the
    # samples behind scaling and landmarks (or the rows of F of GLNP); blocks in work; sums, small
    # arrays and models; answers that stay in memory
    process: int
    decoding: int
    labels: int
    fitting: int
    blocks: int
    small: int
    answers: int
    # What is left for features between sweeps, and what those of this process would take
    stored: int
    wanted: int
    stored_row: int  # features of one row
    # Whether they wait between sweeps in memory: a GPU's, where they are made there
    stores_features: bool
    gpu: GpuPlan | None  # the plan of a GPU's memory
    size: Size  # what it was made for
    # Steps in their order, and guesses of how long they take beside each other
    seconds: dict[str, float]

    @property
    def kept(self) -> int:
        """Features that wait in the memory of the process: all, or as many as leave some room."""
        if self.gpu is not None:
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

    def describe(self) -> dict[str, Any]:
        """The memory, for a summary."""
        facts = asdict(self)
        del facts["size"], facts["seconds"], facts["stores_features"]
        return {("card" if name == "gpu" else name): value for name, value in facts.items()}


class TooLittleError(Exception):
    """Something does not fit the memory."""


def plan(parts: Iterable[HasCost], size: Size, machine: Machine) -> Plan:
    """Share out a budget.

    ``parts``: the ``cost`` of everything that takes memory or time; ``machine``: blocks in work
    at once may be fewer than its threads when memory is short.
    """
    cost, engine = add_up([part(size) for part in parts]), machine.engine
    share = machine.memory // engine.n_sharing  # of one process
    on_cpu = machine.place.device == "cpu"
    process = PROCESS_BYTES + engine.library_bytes + sum(cost.libraries.values())
    if share < process + cost.opening:
        first = format_bytes(process + cost.opening)
        raise TooLittleError(f"Python and decoding the input alone take {first}")
    labels = (1 if size.n_classes < 127 else 2) * size.n_rows + 24 * size.n_labelled
    answers = cost.answers * (1 if engine.shares_memory else 1 + SENT_COPIES)
    left = share - process - labels - answers
    if left <= 0:
        what = "Python, the labels and the answers" if answers else "Python and the labels"
        raise TooLittleError(f"{what} alone take {format_bytes(share - left)}")
    gpu = None if on_cpu else plan_gpu(cost, size, machine)
    try:
        # The budget of the machine, not of the share: any number of ranks has the same cut.
        whole, device = machine.memory - process - labels, machine.place.device
        rows_each = rows_per_block(cost.row, whole, device=device, target=cost.target or None)
    except MemoryBudgetError as error:
        raise TooLittleError(f"blocks do not fit the remaining {format_bytes(left)}") from error
    if on_cpu:
        rows_each = min(rows_each, max(-(-size.n_rows // EVENLY), FEWEST_ROWS))
    if gpu is not None:  # rows pass through small buffers, however large the blocks are
        rows_each = gpu.rows_each if size.values == size.n_features else rows_each
    sums = min(cost.sums, cost.sums_row * rows_each) if cost.sums_row else cost.sums
    in_work = int(rows_each * (cost.read_row + cost.row)) if gpu is None else PINNED_BYTES
    a_block = in_work + 3 * sums + cost.block
    needed = max(cost.fitting, cost.fixed)
    objects = BLOCK_OBJECT_BYTES * (size.n_rows // rows_each + 1)
    left -= objects
    if left - needed < a_block:
        raise TooLittleError(
            f"samples and small arrays take {format_bytes(needed)}, a block {format_bytes(a_block)}"
        )
    workers = min(engine.n_threads, (left - needed) // a_block)
    if gpu is not None:
        workers = min(workers, gpu.workers)
    stored = left - workers * a_block - cost.fixed
    wanted = cost.stored_row * size.kept_rows // (engine.n_sharing if engine.keeps_shares else 1)
    stores = wanted <= stored if gpu is None else gpu.features > 0
    # Features are made in every sweep, or in the first where they wait for the others.
    own = [step for step in cost.seconds if step not in STEPS]
    order = [*own, *(step for step in STEPS if step in cost.seconds)]
    seconds = {step: cost.seconds[step] for step in order}
    sweeps = [step for step in order if step in SWEEPS]
    for step in sweeps[:1] if stores and cost.stored_row > 0 else sweeps:
        seconds[step] += size.n_rows * cost.seconds_row
    return Plan(
        rows_each=rows_each,
        workers=workers,
        process=process,
        decoding=cost.opening,
        labels=labels + objects,
        fitting=cost.fitting,
        blocks=workers * a_block,
        small=cost.fixed,
        answers=answers,
        stored=stored,
        wanted=wanted,
        stored_row=cost.stored_row,
        stores_features=stores,
        gpu=gpu,
        size=size,
        seconds=seconds,
    )


def plan_gpu(cost: Cost, size: Size, machine: Machine) -> GpuPlan | None:
    """Share out a GPU's memory; None where there is none.

    Blocks in work come first, then the rows, which stay on the GPU when all of them fit, then their
    features. What does not fit is brought again, or computed again, in every sweep.
    """
    engine, device = machine.engine, machine.place.device
    free = free_gpu_memory(device)
    if free is None:
        return None
    given = machine.place.gpu_memory
    budget = min(int(GPU_SHARE * free) if given is None else given, free)
    budget //= engine.n_on_a_card
    workers = 1 if size.gpu_row == 0 else 2
    a_row = cost.row * workers
    least = GPU_LIBRARY_BYTES + cost.gpu + MIN_BLOCK_ROWS * a_row
    if budget < least:
        raise MemoryBudgetError(
            f"gpu_memory={format_bytes(budget)} of {format_bytes(free)} that are free on {device} "
            f"is too little for {size.n_features:,} features: the smallest blocks need "
            f"{format_bytes(least)}. Give at least that (--gpu-memory {-(-least >> 20)}MB), or use "
            "device='cpu'."
        )
    left = budget - GPU_LIBRARY_BYTES - cost.gpu
    n_own = -(-size.kept_rows // (engine.n_sharing if engine.keeps_shares else 1))
    stays = (size.gpu_row + cost.stored_row) * n_own
    room = left - stays if stays <= (1.0 - GPU_BLOCK_SHARE) * left else GPU_BLOCK_SHARE * left
    most = min(GPU_BLOCK_BYTES if size.gpu_row == 0 else GPU_BLOCK_BYTES_FROM_HOST, room)
    rows_each = min(max(int(most) // a_row, MIN_BLOCK_ROWS), size.n_rows)
    rows_each = -(-size.n_rows // -(-size.n_rows // rows_each))  # blocks of one size
    left -= rows_each * a_row
    rows = size.gpu_row * n_own
    rows = rows if rows <= left else 0
    features = cost.stored_row * n_own
    features = features if features <= left - rows else 0
    return GpuPlan(budget, rows_each, workers, rows_each * a_row + cost.gpu, rows, features)


def plan_fit(
    settings: Settings, size: Size, engine: Engine, *parts: HasCost, likely: Size | None = None
) -> Plan:
    """Share out the budget of a fit.

    ``settings``: the budget and the method; ``*parts``: the ``cost`` of what there is beside
    rows, graph and method; ``likely``: what the size will be, where ``size`` is only the least it
    can be: the budget that is named when this one is refused is for that.
    """
    graph, kind = settings.graph, FACTORS[settings.graph.factor]
    everything: list[HasCost] = [
        *parts,
        PreparedRows.cost,
        partial(kind.cost, graph),
        METHODS[settings.answer.method].cost,
    ]
    if settings.sklearn:
        everything.append(lambda _: Cost(libraries=SKLEARN))

    rank = kind.rank_for(graph, size.n_rows, size.n_features)
    machine = Machine(settings.memory, engine, settings.place)
    try:
        return plan(everything, replace(size, rank=rank), machine)
    except TooLittleError as error:
        what = str(error)
    # The smallest budget that a plan can be made with, to a hundredth.
    likely = likely or size
    likely = replace(likely, rank=kind.rank_for(graph, likely.n_rows, likely.n_features))
    low, least, fits = 1 << 20, 1 << 24, False
    while not fits or least - low > max(low // 100, 1 << 20):
        trial = (low + least) // 2 if fits else least
        try:
            plan(everything, likely, replace(machine, memory=trial))
        except TooLittleError:
            low, least = trial, least if fits else 2 * least
        else:
            least, fits = trial, True
    with_landmarks = ""
    advice = "give a graph with fewer ties" if kind.pairwise else "use fewer features"
    if kind.n_landmarks_counts:
        with_landmarks, advice = f" and {rank:,} landmarks", "use fewer landmarks"
    sharing = f", shared by {engine.n_sharing} processes," if engine.n_sharing > 1 else ""
    raise MemoryBudgetError(
        f"memory={format_bytes(settings.memory)}{sharing} is too little for {size.n_rows:,} rows "
        f"× {size.n_features:,} features with factor={graph.factor!r}{with_landmarks}: {what}. "
        f"Give at least {format_bytes(least)} (--memory {-(-least >> 20)}MB), or {advice}.",
        least=least,
    )


def plan_new_rows(
    memory: int, factor: FeatureMap, size: Size, engine: Engine, place: Device | None = None
) -> tuple[int, int]:
    """Share out the budget of labelling new rows with a model: rows a block, blocks at once."""
    machine = Machine(memory, engine, place or Device())
    device, size = machine.place.device, replace(size, rank=factor.rank)
    answers = Cost(row=3 * size.n_classes * size.dtype.itemsize, block=VOTING_BYTES)
    cost, reading = add_up([factor.sweep_cost(size, device), answers]), PreparedRows.cost(size)
    loaded = [
        reading,
        Cost(libraries=SKLEARN if "sklearn" in sys.modules else {}),
        Cost(libraries=TORCH if device != "cpu" else {}),
    ]
    # Tables are decoded before the sweep, or in it: the memory for one serves the other.
    process = PROCESS_BYTES + engine.library_bytes
    process += sum(add_up(loaded).libraries.values())
    process += max(reading.opening, engine.n_threads * reading.block)
    smallest = BLOCKS_AT_ONCE * MIN_BLOCK_ROWS * cost.row + cost.block
    least = engine.n_sharing * (process + 2 * smallest)
    if memory < least:
        raise MemoryBudgetError(
            f"memory={format_bytes(memory)} is too little to label {size.n_rows:,} rows × "
            f"{size.n_features:,} features; give at least {format_bytes(least)} "
            f"(--memory {-(-least >> 20)}MB).",
            least=least,
        )
    gpu = plan_gpu(cost, size, machine)
    if gpu is not None and size.values == size.n_features:
        return gpu.rows_each, gpu.workers
    rows_each = rows_per_block(cost.row, (memory - process) // 2, device=device)
    a_block = int(rows_each * (reading.read_row + cost.row)) + cost.block
    return rows_each, max(
        min(engine.n_threads, (memory // engine.n_sharing - process) // a_block), 1
    )
