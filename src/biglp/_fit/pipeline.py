"""One run from rows and labels to a model and labelled rows: the table of contents.

Each step leaves small arrays behind and can be taken from a checkpoint instead of being computed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biglp._answers.deciding import make_decision
from biglp._answers.regression import make_regression
from biglp._answers.spreading import check_prior
from biglp._core.checkpoint import Checkpoint
from biglp._core.errors import BigLPWarning, DegreeWarning, UnreachedRowsWarning
from biglp._engines import Engine
from biglp._engines.local import blas_threads_for, one_blas_thread
from biglp._fit.model import DECISIONS, Model
from biglp._fit.prepare import PreparedRows, build_factor, explain_bad_rows, prepare_rows
from biglp._fit.settings import Settings
from biglp._fit.training import Training
from biglp._labels.labels import Labels
from biglp._labels.targets import Measurements
from biglp._lowrank.base import Factor, NonFiniteRowsError
from biglp._lowrank.graph import Sink, sweep_degrees, sweep_gram, sweep_labels
from biglp._propagate.normalise import Normalisation
from biglp._propagate.sums import GramSums
from biglp._sources import Source


@dataclass(frozen=True)
class FitResult:
    """What a run leaves behind besides the answers in its sink."""

    model: Model
    n_iter: int
    n_repaired: int
    n_unreached: int
    counts: dict[int, int]
    """Rows of each class code in the answers."""
    training: Training | None = None
    """What later labels start from; none for measured values."""


def fit_model(
    engine: Engine,
    source: Source,
    labels: Labels,
    settings: Settings,
    sink: Sink,
    checkpoint: Checkpoint | None = None,
) -> FitResult:
    """Fit a model and write the answers of all training rows to a sink.

    Parameters
    ----------
    engine : Engine
        Who does the work.
    source : Source
        The rows.
    labels : Labels
        The labels of some of them.
    settings : Settings
        Checked parameters.
    sink : Sink
        Takes the answers.
    checkpoint : Checkpoint, optional
        Keeps finished steps.
    """
    check_prior(labels, settings)
    try:
        return _fit(
            engine, source, labels, settings, sink, checkpoint or Checkpoint(), make_decision
        )
    except NonFiniteRowsError:
        explain_bad_rows(source)


def fit_regression(
    engine: Engine, source: Source, measured: Measurements, settings: Settings, sink: Sink
) -> FitResult:
    """Fit a model of measured targets and write the values of all training rows to a sink."""
    try:
        return _fit(engine, source, measured, settings, sink, Checkpoint(), make_regression)
    except NonFiniteRowsError:
        explain_bad_rows(source)


def _fit(
    engine: Engine,
    source: Source,
    labels: Labels | Measurements,
    settings: Settings,
    sink: Sink,
    checkpoint: Checkpoint,
    make: Callable[..., tuple[Any, dict[str, Any], int]],
) -> FitResult:
    """Prepare rows, sweep, have the decision made, and sweep again for the answers."""
    engine.check_rows(source.n_rows)
    with one_blas_thread():
        rows = prepare_rows(source, settings, checkpoint, labels.n_columns, len(labels.rows))
    with blas_threads_for(rows.n_landmarks):
        factor = build_factor(engine, rows, settings, checkpoint)
    rows = replace(rows, drawn=None)  # the sample has done its work
    normalisation = _degrees(engine, rows, factor, checkpoint)
    sums, mixing = _gram(engine, rows, factor, normalisation, labels, checkpoint)
    decision, chosen, n_iter = _decision(
        engine, rows, factor, normalisation, labels, settings, sums, mixing, checkpoint, make
    )
    own = labels if isinstance(labels, Labels) else None
    answered = sweep_labels(
        engine,
        rows.blocks,
        factor,
        normalisation,
        decision,
        sink,
        own,
        checkpoint,
        clamp=settings.clamp,
    )
    report = {
        **factor.describe(),
        **chosen,
        "scaling": rows.source.scaling.kind,
        "rows": source.n_rows,
        "labelled_rows": len(labels.rows),
        "repaired_rows": sums.n_repaired,
        "unreached_rows": answered.n_unreached,
    }
    model = Model(
        labels.classes if isinstance(labels, Labels) else np.arange(len(labels.mean)),
        factor,
        normalisation,
        decision,
        rows.source.scaling,
        rows.source.dtype,
        source.n_features,
        report,
        getattr(source, "encoding", None),
    )
    training = None
    if own is not None:
        training = Training(rows, factor, normalisation, own, settings, sums, mixing)
    return FitResult(
        model, n_iter, sums.n_repaired, answered.n_unreached, answered.counts, training
    )


def _degrees(
    engine: Engine, rows: PreparedRows, factor: Factor, checkpoint: Checkpoint
) -> Normalisation:
    if factor.unit_degrees:
        return Normalisation(None, rows.source.n_rows)
    found = checkpoint.step(
        "degrees", lambda: {"column_sums": sweep_degrees(engine, rows.blocks, factor)}
    )
    return Normalisation(found["column_sums"], rows.source.n_rows, factor.mixing)


def _gram(
    engine: Engine,
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    labels: Labels | Measurements,
    checkpoint: Checkpoint,
) -> tuple[GramSums, np.ndarray]:
    def compute() -> dict[str, np.ndarray]:
        sums, mixing = sweep_gram(engine, rows.blocks, factor, normalisation, labels)
        return {
            **_parts_of(sums.gram),
            "targets": sums.targets,
            "totals": sums.totals,
            "n_repaired": np.array(sums.n_repaired),
            "mixing": mixing,
        }

    found = checkpoint.step("gram", compute)
    sums = GramSums(
        _from_parts(found),
        found["targets"],
        found["totals"],
        labels.counts,
        labels.n_rows,
        int(found["n_repaired"]),
    )
    return sums, found["mixing"]


def _parts_of(gram: Any) -> dict[str, np.ndarray]:
    """Plain arrays of a dense or sparse Gram matrix, for the checkpoint."""
    if not sparse.issparse(gram):
        return {"gram": gram}
    return {"gram": gram.data, "gram_columns": gram.indices, "gram_starts": gram.indptr}


def _from_parts(found: dict[str, np.ndarray]) -> Any:
    if "gram_columns" not in found:
        return found["gram"]
    rank = len(found["gram_starts"]) - 1
    parts = (found["gram"], found["gram_columns"], found["gram_starts"])
    return sparse.csr_array(parts, shape=(rank, rank))


def _decision(
    engine: Engine,
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    labels: Labels | Measurements,
    settings: Settings,
    sums: GramSums,
    mixing: np.ndarray,
    checkpoint: Checkpoint,
    make: Callable[..., tuple[Any, dict[str, Any], int]],
) -> tuple[Any, dict[str, Any], int]:
    """Choose α and the class prior, and propagate; also what was chosen and the iterations."""

    def compute() -> dict[str, np.ndarray]:
        with blas_threads_for(factor.rank):
            decision, chosen, n_iter = make(
                engine, rows, factor, normalisation, labels, settings, sums, mixing
            )
        facts = {"kind": decision.kind, "chosen": chosen, "n_iter": n_iter}
        return {**decision.state(), "facts": np.array(json.dumps(facts))}

    found = checkpoint.step("decision", compute)
    facts = json.loads(str(found.pop("facts")))
    decision = DECISIONS[facts["kind"]].from_state(found)
    return decision, facts["chosen"], facts["n_iter"]


def warnings_about(
    result: FitResult, n_rows: int, unreached_get: str = "the class prior"
) -> list[BigLPWarning]:
    """What the user should know about a run that went through."""
    found: list[BigLPWarning] = []
    if result.n_repaired:
        landmarks = result.model.report.get("landmarks")
        advice = (
            "Shift the features to be non-negative (factor_params={'shift': True}), unless "
            "similarities of both signs are meant."
            if landmarks is None
            else f"Use more landmarks (n_landmarks={landmarks} now) or a wider bandwidth."
        )
        found.append(
            DegreeWarning(
                f"{result.n_repaired:,} of {n_rows:,} rows have a degree of zero or less in the "
                f"low-rank graph; it was repaired. {advice}"
            )
        )
    if result.n_unreached:
        found.append(
            UnreachedRowsWarning(
                f"{result.n_unreached:,} of {n_rows:,} rows are reached by no label and got "
                f"{unreached_get}; label rows near them, or use more landmarks or a larger alpha."
            )
        )
    return found
