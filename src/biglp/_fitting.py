"""The steps of ``fit`` between the parameters and the sweeps: prepare rows, build the factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from scipy import sparse

from biglp._arrays import to_numpy
from biglp._blocks import Block, cut_rows, format_bytes, rows_per_block
from biglp._engines import Engine
from biglp._errors import BadRowsError, MemoryBudgetError
from biglp._lowrank.anchors import AnchorFactor
from biglp._lowrank.base import Factor
from biglp._lowrank.landmarks import choose_landmarks, landmark_spacing
from biglp._lowrank.linear import LinearFactor
from biglp._lowrank.nystrom import NystromFactor
from biglp._lowrank.sampling import sample_rows
from biglp._settings import Settings
from biglp._sources import PreparedSource, Scaling, Source, working_dtype

SAMPLE_ROWS = 20_000
"""Rows behind the scaling and the automatic bandwidth."""
BUDGET_SHARES = 16
"""Blocks that may be in work at once within the budget; fixed, so that the cut into blocks does
not depend on the number of workers."""
EXPLAIN_ROWS = 10_000
ANCHOR_NEIGHBOURS = 3
ANCHOR_BANDWIDTH = 0.4
NYSTROM_BANDWIDTH = 0.45
"""Bandwidths as multiples of the typical distance to the nearest landmarks."""


@dataclass(frozen=True)
class PreparedRows:
    """The training rows, ready for the sweeps."""

    source: PreparedSource
    blocks: Sequence[Block]
    sample: np.ndarray
    n_landmarks: int


def automatic_landmarks(n_rows: int, factor: str) -> int:
    """Choose k: a tenth of the rows, within what is quick and what is useful."""
    most = 1000 if factor == "anchors" else 100
    return int(min(n_rows, max(n_rows // 10, 50), most))


def prepare_rows(source: Source, settings: Settings) -> PreparedRows:
    """Choose precision, scaling and the cut into blocks."""
    dtype = working_dtype(source.dtype)
    k = settings.n_landmarks or automatic_landmarks(source.n_rows, settings.factor)
    rank = source.n_features if settings.factor == "linear" else k
    bytes_per_row = dtype.itemsize * (source.n_features + 3 * rank) + 64
    rows_each = rows_per_block(
        bytes_per_row, settings.memory // BUDGET_SHARES, device=settings.device
    )
    check_small_arrays(rank, settings.memory)
    sample = sample_rows(PreparedSource(source, dtype), SAMPLE_ROWS, settings.seed)
    if not np.isfinite(sample.data if sparse.issparse(sample) else sample).all():
        explain_bad_rows(source)
    # GLNP and the linear kernel are about the values themselves, not about distances.
    kind = settings.scaling
    if kind == "auto" and settings.factor in ("linear", "glnp", "glnp-mu"):
        kind = "none"
    scaling = Scaling.from_sample(sample, kind)
    if settings.factor in ("linear", "glnp", "glnp-mu"):
        scaling = replace(scaling, offset=None) if scaling.kind == "none" else scaling
    prepared = PreparedSource(source, dtype, scaling, settings.device)
    return PreparedRows(prepared, cut_rows(prepared, rows_each), scaling.apply(sample), k)


def check_small_arrays(rank: int, budget: int) -> None:
    """Refuse a rank whose r × r arrays alone would not fit the budget."""
    needed = 6 * 8 * rank**2
    if needed > budget:
        raise MemoryBudgetError(
            f"rank {rank:,} needs {format_bytes(needed)} for its {rank:,} × {rank:,} arrays, "
            f"but memory={format_bytes(budget)}; give at least {format_bytes(needed)}, "
            "or use fewer landmarks (n_landmarks)."
        )


def build_factor(engine: Engine, rows: PreparedRows, settings: Settings) -> Factor:
    """Build the low-rank factor and decide whether its features are remembered."""
    factor = _make_factor(engine, rows, settings)
    stored = factor.rank * rows.source.dtype.itemsize
    if isinstance(factor, AnchorFactor):
        stored = factor.n_nearest * (rows.source.dtype.itemsize + 4)
    needed = stored * rows.source.n_rows
    factor.remember = settings.device == "cpu" and needed <= settings.memory // 2
    return factor


def _make_factor(engine: Engine, rows: PreparedRows, settings: Settings) -> Factor:
    if settings.factor == "linear":
        return LinearFactor.fit(engine, rows.blocks)
    if settings.factor in ("glnp", "glnp-mu"):
        from biglp._lowrank.glnp import GlnpFactor

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
    if settings.factor == "nystrom":
        sigma = settings.bandwidth or NYSTROM_BANDWIDTH * landmark_spacing(
            rows.sample, landmarks, 1
        )
        return NystromFactor(landmarks, sigma)
    nearest = int(settings.factor_params.get("n_nearest", ANCHOR_NEIGHBOURS))
    sigma = settings.bandwidth or ANCHOR_BANDWIDTH * landmark_spacing(
        rows.sample, landmarks, nearest
    )
    return AnchorFactor(landmarks, sigma, nearest)


def explain_bad_rows(source: Source) -> NoReturn:
    """Count the rows that hold NaN, infinity or too large values, and raise an error saying so."""
    n_bad, first, overflow = 0, list[int](), 0
    for block in cut_rows(source, EXPLAIN_ROWS):
        bad, large = _bad_rows(block.rows())
        n_bad += len(bad)
        overflow += large
        first += [int(block.start + row) for row in bad[: max(0, 5 - len(first))]]
    if n_bad:
        raise BadRowsError(
            f"Input X contains NaN or infinity in {n_bad:,} of {source.n_rows:,} rows of "
            f"{source.name} (first: rows {', '.join(map(str, first))}). Fill them (for example with "
            "sklearn.impute.SimpleImputer) or drop these rows."
        )
    raise BadRowsError(
        f"Input X has {overflow:,} of {source.n_rows:,} rows with values too large for "
        f"{source.dtype} arithmetic (their squares overflow); give X as float64, or scale its "
        "features (scaling='standard')."
    )


def _bad_rows(rows: object) -> tuple[np.ndarray, int]:
    values = to_numpy(rows)
    if sparse.issparse(values):
        values = values.tocsr()
        bad_entries = ~np.isfinite(values.data)
        bad = np.unique(np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))[bad_entries])
        return bad, 0
    values = np.asarray(values)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    with np.errstate(over="ignore", invalid="ignore"):
        large = ~np.isfinite(
            np.einsum("ij,ij->i", values, values, dtype=working_dtype(values.dtype))
        )
    return bad, int(large.sum()) - len(bad)
