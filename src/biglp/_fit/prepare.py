"""The steps of ``fit`` between the parameters and the sweeps: prepare rows, build the factor."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, to_numpy
from biglp._core.blocks import Block, cut_rows, rows_per_block
from biglp._core.checkpoint import Checkpoint
from biglp._core.errors import BadRowsError, MemoryBudgetError, ParameterError
from biglp._core.files import free_space
from biglp._core.memory import format_bytes
from biglp._engines import Engine
from biglp._fit.settings import Settings
from biglp._lowrank import FACTORS
from biglp._lowrank.anchors import AnchorFactor
from biglp._lowrank.base import Factor
from biglp._lowrank.graph import DENSE_GRAM
from biglp._lowrank.kernels import SEARCH_WIDTH, check_bandwidth, squared_norms
from biglp._lowrank.landmarks import choose_landmarks, landmark_spacing
from biglp._lowrank.linear import LinearFactor
from biglp._lowrank.nystrom import NystromFactor
from biglp._lowrank.sampling import sample_rows
from biglp._lowrank.stores import DiskStore, FeatureStore, MemoryStore, NoStore
from biglp._propagate.systems import COLUMNS_AT_ONCE, DENSE_RANK, is_sparse_rank
from biglp._sources import PreparedSource, Scaling, Source, working_dtype
from biglp._sources.prepared import PROJECT_ABOVE

SAMPLE_ROWS = 20_000
SAMPLE_BYTES = 16 << 20
"""Rows behind the scaling and the automatic bandwidth: so many, or so much of wide rows."""
WIDE_SAMPLE_ROWS = 2000
"""Rows behind them where there are hundreds of features: more would take longer than a sweep."""
EXPLAIN_ROWS = 10_000
KEPT_WIDTH = 64
"""Numbers that a row of sparse features takes, with those of its part in the Gram matrix."""
SPARSE_CELLS, SPARSE_CELL_BYTES = 400, 120
"""Cells of a landmark's row of the sparse Gram matrix, and what their exact sums take."""
ANCHOR_NEIGHBOURS = 3
ANCHOR_BANDWIDTH = 0.4
NYSTROM_BANDWIDTH = 0.45
"""Bandwidths as multiples of the typical distance to the nearest landmarks."""


@dataclass(frozen=True)
class PreparedRows:
    """The training rows, ready for the sweeps."""

    source: PreparedSource
    blocks: Sequence[Block]
    n_landmarks: int
    seed: int
    drawn: Rows | None = None
    """The sample before it is scaled; None in a run that is resumed."""

    @cached_property
    def sample(self) -> Rows:
        """Scaled rows behind the automatic bandwidth."""
        drawn = self.drawn
        if drawn is None:
            drawn = draw_sample(self.source.inner, self.source.dtype, self.seed)
        return self.source.scaling.apply(drawn)


def automatic_landmarks(n_rows: int, factor: str) -> int:
    """Choose k: a share of the rows, within what is quick and what is useful."""
    if factor != "anchors":
        return int(min(n_rows, max(n_rows // 10, 50), 100))
    # Up to a few hundred thousand rows, more landmarks cost little beside the rest.
    most = 4000 if n_rows <= 300_000 else 1000
    return int(min(n_rows, max(min(n_rows // 10, 1000), n_rows // 20, 50), most))


def prepare_rows(
    source: Source,
    settings: Settings,
    checkpoint: Checkpoint | None = None,
    n_classes: int = 2,
    n_labelled: int = 0,
) -> PreparedRows:
    """Choose precision, scaling and the cut into blocks."""
    dtype = working_dtype(source.dtype)
    k = settings.n_landmarks or automatic_landmarks(source.n_rows, settings.factor)
    rank = source.n_features if settings.factor == "linear" else min(k, source.n_rows)
    check_small_arrays(rank, source.n_rows, n_labelled, settings)
    drawn: Rows | None = None

    def learn() -> dict[str, np.ndarray]:
        nonlocal drawn
        drawn = draw_sample(source, dtype, settings.seed)
        if not np.isfinite(drawn.data if sparse.issparse(drawn) else drawn).all():
            explain_bad_rows(source)
        scaling = choose_scaling(drawn, settings)
        arrays = {"kind": np.array(scaling.kind), "values": np.array(values_per_row(drawn))}
        return arrays | scaling.arrays()

    found = (checkpoint or Checkpoint()).step("scaling", learn)
    scaling = Scaling.from_arrays(str(found["kind"]), found)
    a_row = bytes_per_row(float(found["values"]), rank, n_classes, dtype, settings)
    rows_each = rows_per_block(a_row, settings.memory, device=settings.device)
    prepared = PreparedSource(source, dtype, scaling, settings.device)
    return PreparedRows(prepared, cut_rows(prepared, rows_each), k, settings.seed, drawn)


def draw_sample(source: Source, dtype: np.dtype[Any], seed: int) -> Rows:
    """Draw the rows behind the scaling and the automatic bandwidth, unscaled."""
    size = SAMPLE_ROWS
    if not source.is_sparse:
        size = min(size, max(SAMPLE_BYTES // (source.n_features * dtype.itemsize), 100))
        size = min(size, WIDE_SAMPLE_ROWS) if source.n_features >= PROJECT_ABOVE else size
    return sample_rows(PreparedSource(source, dtype), size, seed)


def choose_scaling(sample: Rows, settings: Settings) -> Scaling:
    """Learn the scaling from a sample."""
    kind = settings.scaling
    if settings.factor not in ("linear", "glnp", "glnp-mu"):
        scaling = Scaling.from_sample(sample, kind)
        if settings.committee:
            return scaling.projected(scaling.apply(sample), settings.seed)
        return scaling
    # GLNP and the linear kernel are about the values themselves, not about distances.
    scaling = Scaling.from_sample(sample, "none" if kind == "auto" else kind)
    return replace(scaling, offset=None) if scaling.kind == "none" else scaling


def values_per_row(sample: Rows) -> float:
    """Numbers that are stored for a row: all of a dense one, three for each entry of a sparse."""
    if sparse.issparse(sample):
        return 3.0 * sample.nnz / sample.shape[0]
    return float(sample.shape[1])


def bytes_per_row(
    values: float, rank: int, n_classes: int, dtype: np.dtype[Any], settings: Settings
) -> int:
    """Working memory of one row: what is stored for it, its features and its answers."""
    width = 3 * rank
    if settings.factor == "anchors" and settings.device == "cpu" and rank > DENSE_GRAM:
        # Distances, of which only the few smallest are kept; answers come when they are gone.
        width = max(min(max(rank, 3 * DENSE_GRAM), SEARCH_WIDTH), 10 * n_classes) + KEPT_WIDTH
    return int(dtype.itemsize * (values + width + n_classes)) + 64


def small_bytes(rank: int, n_rows: int, n_labelled: int, settings: Settings) -> int:
    """What the Gram matrix takes, with what is computed from it."""
    if settings.factor != "anchors" or not is_sparse_rank(rank, n_labelled):
        return 6 * 8 * rank**2
    # A row ties each of its landmarks to the others; sums that many rows share are one cell.
    nearest = int(settings.factor_params.get("n_nearest", ANCHOR_NEIGHBOURS))
    cells = min(rank**2, rank + nearest * (nearest - 1) * n_rows, SPARSE_CELLS * rank)
    return SPARSE_CELL_BYTES * cells + 8 * 8 * COLUMNS_AT_ONCE * rank


def check_small_arrays(
    rank: int, n_rows: int, n_labelled: int, settings: Settings, budget: int | None = None
) -> None:
    """Refuse a rank whose Gram matrix cannot be taken apart, or alone would not fit the budget."""
    if settings.filter == "poisson" and is_sparse_rank(rank, n_labelled):
        raise ParameterError(
            f"filter='poisson' needs all eigenvectors of the graph, too many of them with "
            f"n_landmarks={rank:,}; use at most {DENSE_RANK:,} landmarks, or filter='spreading'."
        )
    budget = settings.memory if budget is None else budget
    needed = small_bytes(rank, n_rows, n_labelled, settings)
    if needed > budget:
        raise MemoryBudgetError(
            f"rank {rank:,} needs {format_bytes(needed)} for its Gram matrix and what is computed "
            f"from it, but memory={format_bytes(budget)}; give at least {format_bytes(needed)}, "
            "or use fewer landmarks (n_landmarks)."
        )


def build_factor(
    engine: Engine, rows: PreparedRows, settings: Settings, checkpoint: Checkpoint
) -> Factor:
    """Build the low-rank factor and decide whether its features are remembered."""
    if settings.factor in ("glnp", "glnp-mu"):
        # The rows of F live with the blocks; a resumed run has to find them again.
        factor = _make_factor(engine, rows, settings)
    else:
        state = checkpoint.step("factor", lambda: _make_factor(engine, rows, settings).state())
        factor = FACTORS[settings.factor].from_state(state)
    factor.store = choose_store(factor, rows.source, settings, engine.n_machines)
    return factor


def choose_store(
    factor: Factor, source: Source, settings: Settings, n_machines: int = 1
) -> FeatureStore:
    """Remember features within the budget, else in a temporary file where that is faster."""
    itemsize = source.dtype.itemsize
    a_row = factor.stored_bytes_per_row(itemsize)
    needed = a_row * -(-source.n_rows // n_machines)
    if settings.device != "cpu" or not factor.fresh_features:
        return NoStore()
    if needed <= settings.remembered:
        return MemoryStore()
    # Rows in memory are as near as features in a file would be; rows in files are not.
    inner = source.inner if isinstance(source, PreparedSource) else source
    from_files = bool(getattr(inner, "stamps", ()))
    if from_files and a_row < source.n_features * itemsize:
        folder = Path(tempfile.gettempdir())
        if free_space(folder) > 1.2 * needed:
            return DiskStore(str(folder))
    return NoStore()


def _make_factor(engine: Engine, rows: PreparedRows, settings: Settings) -> Factor:
    if settings.factor == "linear":
        if not settings.factor_params.get("shift", True):
            return LinearFactor.unshifted(rows.source.n_features)
        return LinearFactor.fit(engine, rows.blocks)
    if settings.factor in ("glnp", "glnp-mu"):
        from biglp._lowrank.glnp.factor import GlnpFactor

        return GlnpFactor.fit(
            engine,
            rows.blocks,
            rows.source,
            k=rows.n_landmarks,
            solver="gradient" if settings.factor == "glnp" else "multiplicative",
            seed=settings.seed,
            **settings.factor_params,
        )
    landmarks = choose_landmarks(
        engine,
        rows.source,
        rows.blocks,
        strategy=settings.landmarks,
        k=rows.n_landmarks,
        seed=settings.seed,
    )
    nearest, share = 1, NYSTROM_BANDWIDTH
    if settings.factor == "anchors":
        nearest = settings.factor_params.get("n_nearest", ANCHOR_NEIGHBOURS)
        share = ANCHOR_BANDWIDTH
    if settings.bandwidth is None:
        share = settings.factor_params.get("bandwidth_factor", share)
        sigma = share * landmark_spacing(rows.sample, landmarks, nearest)
    else:
        sigma = check_bandwidth(settings.bandwidth, rows.sample)
    if settings.factor == "nystrom":
        return NystromFactor(landmarks, sigma)
    return AnchorFactor(landmarks, sigma, nearest)


def explain_bad_rows(source: Source) -> NoReturn:
    """Count the rows that hold NaN, infinity or too large values, and raise an error saying so."""
    counts, first = [0, 0], (list[int](), list[int]())
    for block in cut_rows(source, EXPLAIN_ROWS):
        for kind, rows in enumerate(_bad_rows(to_numpy(block.rows()))):
            counts[kind] += len(rows)
            first[kind].extend(int(block.start + row) for row in rows[: 5 - len(first[kind])])
    examples = [f"first: rows {', '.join(map(str, rows))}" for rows in first]
    if counts[0]:
        raise BadRowsError(
            f"Input X contains NaN or infinity in {counts[0]:,} of {source.n_rows:,} rows of "
            f"{source.name} ({examples[0]}). Fill them (for example with "
            "sklearn.impute.SimpleImputer) or drop these rows."
        )
    dtype = working_dtype(source.dtype)
    precise = "give X as float64, " if dtype == np.float32 else ""
    if counts[1]:
        raise BadRowsError(
            f"Input X has {counts[1]:,} of {source.n_rows:,} rows with values too large for "
            f"{dtype} arithmetic, because their squares overflow ({examples[1]}); {precise}divide "
            "its features by their size, or drop these rows."
        )
    raise BadRowsError(
        "Input X has rows so far from the others that, once its features are scaled, their "
        f"squared distance overflows {dtype}; {precise}clip the outliers, or use scaling='none'."
    )


def _bad_rows(values: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Rows with NaN or infinity, and finite rows whose squared length is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms = squared_norms(values.astype(working_dtype(values.dtype), copy=False))
    if sparse.issparse(values):
        marks = sparse.csr_matrix(values, dtype=np.float64)
        marks.data = (~np.isfinite(marks.data)).astype(np.float64)
        broken = np.asarray(marks.sum(axis=1)).ravel() > 0
    else:
        broken = ~np.isfinite(values).all(axis=1)
    return np.flatnonzero(broken), np.flatnonzero(~np.isfinite(norms) & ~broken)
