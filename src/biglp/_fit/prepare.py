"""From a source to rows that are ready for the sweeps: chain, memory plan, cut into blocks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, values_per_row
from biglp._core.blocks import cut_rows
from biglp._core.device import chosen_device
from biglp._core.errors import CardMemoryWarning, warn_caller
from biglp._core.memory import MIN_BLOCK_ROWS
from biglp._core.settings import GraphSettings, Settings
from biglp._core.size import HasCost, Size
from biglp._engines import Engine
from biglp._files.local import free_space
from biglp._files.runfolder import Checkpoint
from biglp._fit.plan import Plan, plan_fit
from biglp._graph import FACTORS
from biglp._graph.factor import (
    ROWS_PER_LANDMARK,
    Factor,
    TrainingRows,
    prepared_bytes,
)
from biglp._graph.stores import FeatureStore, MemoryStore, NoStore, SpillingStore
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets
from biglp._rows import PreparedRows, Source, working_dtype
from biglp._rows.prepared import Sample, kept_rows
from biglp._rows.source import explain_bad_rows
from biglp._transforms import TRANSFORMS, Chain, Parts, Project, Scale
from biglp._transforms.project import PROJECT_ABOVE, PROJECT_TO, TEXT_ROWS

SMALLER = 4
"""Times that blocks become smaller where a card was full."""


@dataclass(frozen=True)
class Prepared:
    """Rows that are ready, and the plan by which they were cut."""

    source: Source  # the rows as they are
    views: tuple[TrainingRows, ...]  # what was made of them
    plan: Plan

    @property
    def can_be_smaller(self) -> bool:
        """Whether smaller blocks may still help; processes that share the work keep their cut."""
        return (
            self.views[0].engine.shares_memory and self.plan.rows_each >= SMALLER * MIN_BLOCK_ROWS
        )

    def in_smaller_blocks(self) -> Prepared:
        """The same rows, of which nothing stays on the card, in smaller blocks; tells the user."""
        plan = self.plan
        warn_caller(
            f"{self.device} has less memory left than was planned (others may use it): rows are "
            "copied to it in every sweep now, in smaller blocks, which takes longer. Give a "
            "smaller gpu_memory (--gpu-memory) to plan for less.",
            CardMemoryWarning,
        )
        rows_each = plan.rows_each // SMALLER
        gpu = plan.gpu and replace(plan.gpu, rows_each=rows_each, rows=0, features=0)
        views = []
        for rows in self.views:
            for block in rows.blocks:
                block.memory.clear()
            source = rows.source
            moved = PreparedRows(source.inner, source.dtype, source.chain, source.device)
            views.append(replace(rows, source=moved, blocks=cut_rows(moved, rows_each)))
        return Prepared(self.source, tuple(views), replace(plan, rows_each=rows_each, gpu=gpu))

    @property
    def device(self) -> str:
        """Where the arithmetic runs."""
        return self.views[0].source.device

    def where_it_ran(self, seconds: dict[str, float]) -> dict[str, Any]:
        """For the report: the device, what stayed there and how long each step took."""
        device, gpu = self.device, self.plan.gpu
        if device == "cpu":
            return {}
        return {"device": {"name": device, **(gpu.describe() if gpu else {}), "seconds": seconds}}


def prepare(
    engine: Engine,
    source: Source,
    labels: Labels | Targets,
    settings: Settings,
    checkpoint: Checkpoint,
    *parts: HasCost,
    n_rows: int | None = None,
) -> Prepared:
    """Choose device and precision, learn the chain of transforms, plan, and cut into blocks.

    ``parts`` say what takes memory or time beside rows, graph and method. ``n_rows``: rows of all,
    where these are a part on which a fit of all is tried; the plan is that of all.
    """
    n_rows = n_rows or source.n_rows
    dtype, seed, kind = (
        working_dtype(source.dtype),
        settings.graph.seed,
        FACTORS[settings.graph.factor],
    )
    rank = kind.rank_for(settings.graph, n_rows, source.n_features)
    work = 0.0 if source.is_sparse else float(n_rows) * source.n_features * rank
    device = chosen_device(settings.graph.device, source.device, work, engine.local_number)
    graph = replace(settings.graph, device=device)
    settings = replace(settings, graph=graph)
    sample = Sample(source, dtype, seed, ROWS_PER_LANDMARK * rank)
    size = Size(
        n_rows=n_rows,
        n_features=source.n_features,
        n_classes=labels.n_columns,
        n_labelled=len(labels.rows),
        values=0.0,  # known once the sample is
        dtype=dtype,
        decoding=source.decoding_bytes,
        part_bytes=source.part_bytes,
        n_machines=engine.n_machines,
        effort=graph.effort,
    )

    def learn() -> dict[str, np.ndarray]:
        raw = sample.raw()
        if not np.isfinite(raw.data if sparse.issparse(raw) else raw).all():
            explain_bad_rows(source)
        values = values_per_row(raw)
        chain = learn_chain(raw, graph, replace(size, values=values), source.words_from)
        return {"values": np.array(values)} | chain.state()

    state = checkpoint.step("transforms", learn)
    chain = Chain.from_state(state)
    size = size_of_transformed(replace(size, values=float(state["values"])), source, chain)
    # One plan for all processes: what is free ("auto") is not the same on every machine.
    plan = engine.once(lambda: plan_fit(settings, size, engine, *parts))
    engine.limit_threads(plan.workers)
    stay = plan.gpu is not None and plan.gpu.rows > 0
    prepared = PreparedRows(source, dtype, chain, device, stay)
    sample.chain, sample.n_kept = chain, kept_rows(source.n_rows, prepared_bytes(size))
    blocks = cut_rows(prepared, plan.rows_each)
    return Prepared(source, (TrainingRows(engine, prepared, blocks, sample),), plan)


def size_of_transformed(size: Size, source: Source, chain: Chain) -> Size:
    """The size of a problem, with what its chain makes of the rows."""
    width = chain.width(size.n_features)
    # Projected sparse rows are dense; other rows count as wide as they are before or after.
    dense = source.is_sparse and chain.embeds and not chain.keeps_sparse
    if PreparedRows.are_there(source, size.dtype, chain):
        gpu_row = 0
    elif source.dtype == np.float16 and not chain.changes_rows:
        gpu_row = width * source.dtype.itemsize
    else:
        gpu_row = width * size.dtype.itemsize
    return replace(
        size,
        directions=width if dense or width > size.n_features else 0,
        values=max(size.values, width) if width > size.n_features else size.values,
        gpu_row=gpu_row,
    )


def learn_chain(
    sample: Rows, settings: GraphSettings, size: Size, words_from: int | None = None
) -> Chain:
    """Learn from a sample what is done to rows.

    ``size``: size of the problem, for transforms that depend on it; ``words_from``: first feature
    that is a count of a word, where the source says so.
    """
    kind, count, seed = settings.scaling, settings.directions, settings.seed
    about_distances = FACTORS[settings.factor].scales_features
    beside_table = bool(words_from) and about_distances
    if beside_table:
        chain = Chain([Parts(words_from or 0, kind, seed)]).fit(sample, size)
    else:
        if kind == "auto" and (words_from == 0 or not about_distances):
            kind = "text" if about_distances else "none"
        scale = Scale(kind, settings.device).fit(sample, size)
        # Factors that are about the values themselves, not about distances, take them as they are,
        # but for a feature that has only one: it tells nothing of a row, and a large one (1e12)
        # drowns the others in products of rows. Sparse rows would be dense without their zeros.
        pairwise = FACTORS[settings.factor].pairwise
        if scale.kind == "none" and not (about_distances or pairwise or sparse.issparse(sample)):
            low = np.asarray(sample.min(axis=0), dtype=np.float64)
            same = low == sample.max(axis=0)
            constants = np.where(same, low, 0.0)
            if constants.any() and not same.all():
                scale = replace(scale, offset=constants)
        chain = Chain([scale])
    if settings.embedder is not None:
        return chain.then(TRANSFORMS[settings.embedder](), sample, size)
    if beside_table:  # words have their directions already, and columns keep their meaning
        return chain
    n_rows, n_features = sample.shape
    project = Project(count, seed, words=chain.scaling == "text", unit=chain.unit)
    if project.words:
        # Topics show in fewer rows than the weights of words need.
        few = sample[:: max(n_rows // TEXT_ROWS, 1)]
        return chain if count == 0 else chain.then(project, few, size)
    if count is not None:
        wanted = 0 < count < n_features
    else:
        wanted = settings.projected and n_features >= PROJECT_ABOVE and n_rows > 2 * PROJECT_TO
    return chain.then(project, sample, size) if wanted else chain


def choose_store(factor: Factor, source: PreparedRows, plan: Plan) -> FeatureStore:
    """Store features in memory, and those that do not fit in a file where that is faster."""
    on_device = source.device != "cpu"
    if not factor.overwritable or (on_device and plan.gpu is None):
        return NoStore()
    if plan.stores_features:
        return MemoryStore()
    if on_device:
        return NoStore()
    # Rows in memory are as near as features in a file would be; rows in files are not.
    smaller = plan.stored_row < source.n_features * source.dtype.itemsize
    folder, needed = Path(tempfile.gettempdir()), plan.stored_row * source.n_rows
    if source.stamps and smaller and free_space(folder) > 1.2 * needed:
        return SpillingStore(plan.kept - plan.workers * MemoryStore.BUFFER_BYTES, str(folder))
    return NoStore()
