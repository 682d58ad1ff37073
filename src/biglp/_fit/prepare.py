"""From a source to rows that are ready for the sweeps: scaling, memory plan, cut into blocks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.blocks import MIN_BLOCK_ROWS, cut_rows
from biglp._core.checkpoint import Checkpoint
from biglp._core.errors import CardMemoryWarning, warn_caller
from biglp._core.files import free_space
from biglp._core.size import HasCost, Size, values_per_row
from biglp._engines import Engine
from biglp._fit.bad_rows import explain_bad_rows
from biglp._fit.device import chosen_device
from biglp._fit.plan import Plan, plan_fit
from biglp._fit.settings import Settings
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets
from biglp._lowrank import FACTORS
from biglp._lowrank.base import Factor
from biglp._lowrank.rows import TrainingRows, draw_sample
from biglp._lowrank.settings import GraphSettings
from biglp._lowrank.stores import FeatureStore, MemoryStore, NoStore, SpillingStore
from biglp._sources import PreparedSource, Scaling, Source, working_dtype
from biglp._sources.mixed import mixed_scaling, stored_scaling

SMALLER = 4
"""Times that blocks become smaller where a card was full."""


@dataclass(frozen=True)
class Prepared:
    """Rows that are ready, and the plan by which they were cut."""

    rows: TrainingRows
    plan: Plan

    @property
    def can_be_smaller(self) -> bool:
        """Whether smaller blocks may still help; processes that share the work keep their cut."""
        return self.rows.engine.shares_memory and self.plan.rows_each >= SMALLER * MIN_BLOCK_ROWS

    def in_smaller_blocks(self) -> Prepared:
        """The same rows, of which nothing stays on the card, in smaller blocks; tells the user."""
        source, plan = self.rows.source, self.plan
        warn_caller(
            f"{source.device} has less memory left than was planned (others may use it): rows are "
            "copied to it in every sweep now, in smaller blocks, which takes longer. Give a "
            "smaller gpu_memory (--gpu-memory) to plan for less.",
            CardMemoryWarning,
        )
        for block in self.rows.blocks:
            block.memory.clear()
        rows_each = plan.rows_each // SMALLER
        gpu = plan.gpu and replace(plan.gpu, rows_each=rows_each, rows=0, features=0)
        moved = PreparedSource(source.inner, source.dtype, source.scaling, source.device)
        rows = replace(self.rows, source=moved, blocks=cut_rows(moved, rows_each))
        return Prepared(rows, replace(plan, rows_each=rows_each, gpu=gpu))

    def where_it_ran(self, seconds: dict[str, float]) -> dict[str, Any]:
        """For the report: the device, what stayed there and how long each step took."""
        device, gpu = self.rows.source.device, self.plan.gpu
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
    """Choose precision, scaling and the cut into blocks.

    Parameters
    ----------
    engine : Engine
    source : Source
        The rows as they are.
    labels : Labels or Targets
    settings : Settings
    checkpoint : Checkpoint
    *parts : callables
        The ``cost`` of what takes memory or time beside rows, graph and method.
    n_rows : int, optional
        Rows of all, where these are a part on which a fit of all is tried: the plan is that of all.
    """
    dtype, seed = working_dtype(source.dtype), settings.graph.seed
    settings = on_device(settings, source, engine, n_rows)
    drawn: Rows | None = None

    def learn() -> dict[str, np.ndarray]:
        nonlocal drawn
        drawn = draw_sample(source, dtype, seed)
        if not np.isfinite(drawn.data if sparse.issparse(drawn) else drawn).all():
            explain_bad_rows(source)
        scaling = choose_scaling(drawn, settings.graph, source.words_from)
        arrays = {"kind": np.array(scaling.kind), "values": np.array(values_per_row(drawn))}
        return arrays | scaling.arrays()

    found = checkpoint.step("scaling", learn)
    scaling = stored_scaling(str(found["kind"]), found)
    size = Size(
        n_rows=n_rows or source.n_rows,
        n_features=source.n_features,
        n_classes=labels.n_columns,
        n_labelled=len(labels.rows),
        values=float(found["values"]),
        dtype=dtype,
        decoding=source.decoding_bytes,
        part_bytes=source.part_bytes,
        n_machines=engine.n_machines,
        directions=directions_of(source, scaling),
        effort=settings.graph.effort,
        gpu_row=gpu_row(source, scaling),
    )
    # One plan for all processes: what is free ("auto") is not the same on every machine.
    plan = engine.once(lambda: plan_fit(settings, size, engine, *parts))
    engine.limit_threads(plan.workers)
    stay = plan.gpu is not None and plan.gpu.rows > 0
    prepared = PreparedSource(source, dtype, scaling, settings.graph.device, stay)
    blocks = cut_rows(prepared, plan.rows_each)
    return Prepared(TrainingRows(engine, prepared, blocks, seed, drawn), plan)


def on_device(
    settings: Settings, source: Source, engine: Engine, n_rows: int | None = None
) -> Settings:
    """The settings with the device on which rows are worked on; ``n_rows`` of them in all."""
    graph, n_rows = settings.graph, n_rows or source.n_rows
    kind = FACTORS[graph.factor]
    rank = 0 if kind.is_graph else kind.rank_for(graph, n_rows, source.n_features)
    work = float(n_rows) * source.n_features * rank
    device = chosen_device(graph.device, source, work, engine)
    return replace(settings, graph=replace(graph, device=device))


def gpu_row(source: Source, scaling: Scaling) -> int:
    """Bytes that a prepared row takes of a GPU if it stays there; 0 where it is there anyway."""
    dtype = working_dtype(source.dtype)
    if PreparedSource.are_there(source, dtype, scaling):
        return 0
    as_given = source.dtype == np.float16 and not scaling.changes_rows
    itemsize = source.dtype.itemsize if as_given else dtype.itemsize
    return scaling.n_outputs(source.n_features) * itemsize


def directions_of(source: Source, scaling: Scaling) -> int:
    """Features that sparse rows become; 0 where they stay sparse, or rows are dense."""
    dense = source.is_sparse and scaling.makes_dense
    return scaling.n_outputs(source.n_features) if dense else 0


def choose_scaling(sample: Rows, settings: GraphSettings, words_from: int | None = None) -> Scaling:
    """Learn the scaling from a sample.

    Parameters
    ----------
    sample : array or CSR matrix
    settings : GraphSettings
    words_from : int, optional
        First feature that is a count of a word, where the source says so.
    """
    kind, count = settings.scaling, settings.directions
    about_distances = FACTORS[settings.factor].scales_features
    if words_from is not None and about_distances and (words_from or kind == "auto"):
        if words_from:
            return mixed_scaling(sample, words_from, kind, settings.seed)
        kind = "text"
    scaling = Scaling.from_sample(
        sample, "none" if kind == "auto" and not about_distances else kind, settings.device
    )
    if scaling.kind == "none" and not about_distances:
        # Factors that are about the values themselves, not about distances, take them as they are.
        constants = None if FACTORS[settings.factor].is_graph else _constants(sample)
        scaling = replace(scaling, offset=constants)
    if count == 0 or not (settings.projected or count or scaling.kind == "text"):
        return scaling
    return scaling.projected(sample, settings.seed, count)


def _constants(sample: Rows) -> np.ndarray | None:
    """The value of each feature that has only one, 0 for the others; None where there is none.

    Such a feature tells nothing of a row, and a large one (1e12) drowns the others in products of
    rows. Sparse rows are left alone: without their zeros they would be dense.
    """
    if sparse.issparse(sample):
        return None
    low = np.asarray(sample.min(axis=0), dtype=np.float64)
    same = low == sample.max(axis=0)
    found = np.where(same, low, 0.0)
    return found if found.any() and not same.all() else None


def choose_store(factor: Factor, prepared: Prepared) -> FeatureStore:
    """Store features in memory, and those that do not fit in a file where that is faster."""
    source, plan = prepared.rows.source, prepared.plan
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
    if source.from_files and smaller and free_space(folder) > 1.2 * needed:
        return SpillingStore(plan.kept - plan.workers * MemoryStore.BUFFER_BYTES, str(folder))
    return NoStore()
