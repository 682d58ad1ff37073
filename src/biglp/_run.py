"""One run from rows and labels to a model and labelled rows: the table of contents.

Each step leaves small arrays behind and can be taken from a checkpoint instead of being computed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._checkpoint import Checkpoint
from biglp._choose import MAX_LABELLED, check_prior, choose, decide, wants_leave_one_out
from biglp._engines import Engine
from biglp._errors import BigLPWarning, DegreeWarning, UnreachedRowsWarning
from biglp._fitting import PreparedRows, build_factor, explain_bad_rows, prepare_rows
from biglp._labels import Labels
from biglp._lowrank.base import Factor, NonFiniteRowsError
from biglp._model import Model
from biglp._propagate.decision import Decision
from biglp._propagate.normalise import Normalisation
from biglp._propagate.spectrum import Spectrum
from biglp._propagate.statistics import GramSums
from biglp._settings import Settings
from biglp._sources import Source
from biglp._sweeps import Sink, labelled_rows, sweep_degrees, sweep_gram, sweep_labels


@dataclass(frozen=True)
class FitResult:
    """What a run leaves behind besides the answers in its sink."""

    model: Model
    n_iter: int
    n_repaired: int
    n_unreached: int
    counts: dict[int, int]
    """Rows of each class code in the answers."""


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
    try:
        return _fit(engine, source, labels, settings, sink, checkpoint or Checkpoint())
    except NonFiniteRowsError:
        explain_bad_rows(source)


def _fit(
    engine: Engine,
    source: Source,
    labels: Labels,
    settings: Settings,
    sink: Sink,
    checkpoint: Checkpoint,
) -> FitResult:
    check_prior(labels, settings)
    rows = prepare_rows(source, settings, checkpoint, labels.n_classes)
    factor = build_factor(engine, rows, settings, checkpoint)
    normalisation = _degrees(engine, rows, factor, checkpoint)
    sums, mixing = _gram(engine, rows, factor, normalisation, labels, checkpoint)
    decision, chosen, n_iter = _decision(
        engine, rows, factor, normalisation, labels, settings, sums, mixing, checkpoint
    )
    answered = sweep_labels(
        engine, rows.blocks, factor, normalisation, decision, sink, labels, checkpoint
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
        labels.classes,
        factor,
        normalisation,
        decision,
        rows.source.scaling,
        rows.source.dtype,
        source.n_features,
        report,
        getattr(source, "encoding", None),
    )
    return FitResult(model, n_iter, sums.n_repaired, answered.n_unreached, answered.counts)


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
    labels: Labels,
    checkpoint: Checkpoint,
) -> tuple[GramSums, np.ndarray]:
    def compute() -> dict[str, np.ndarray]:
        sums, mixing = sweep_gram(engine, rows.blocks, factor, normalisation, labels)
        return {
            "gram": sums.gram,
            "targets": sums.targets,
            "totals": sums.totals,
            "n_repaired": np.array(sums.n_repaired),
            "mixing": mixing,
        }

    found = checkpoint.step("gram", compute)
    sums = GramSums(
        found["gram"],
        found["targets"],
        found["totals"],
        labels.counts,
        labels.n_rows,
        int(found["n_repaired"]),
    )
    return sums, found["mixing"]


def _decision(
    engine: Engine,
    rows: PreparedRows,
    factor: Factor,
    normalisation: Normalisation,
    labels: Labels,
    settings: Settings,
    sums: GramSums,
    mixing: np.ndarray,
    checkpoint: Checkpoint,
) -> tuple[Decision, dict[str, Any], int]:
    """Choose α and the class prior, and propagate; also what was chosen and the iterations."""

    def compute() -> dict[str, np.ndarray]:
        spectrum = Spectrum.of(sums)
        labelled = None
        if wants_leave_one_out(labels, settings):
            labelled = labelled_rows(
                engine,
                rows.blocks,
                factor,
                normalisation,
                labels,
                mixing,
                MAX_LABELLED,
                settings.seed,
            )
        choice = choose(spectrum, labels, labelled, settings)
        decision, n_iter = decide(spectrum, labels, choice, settings, mixing)
        chosen = {**choice.describe(), "spectral_radius": spectrum.radius}
        return {
            "coefficients": decision.coefficients,
            "own_label": decision.own_label,
            "prior": decision.prior,
            "chosen": np.array(json.dumps(chosen)),
            "n_iter": np.array(n_iter),
        }

    found = checkpoint.step("decision", compute)
    decision = Decision(found["coefficients"], found["own_label"], found["prior"])
    return decision, json.loads(str(found["chosen"])), int(found["n_iter"])


def warnings_about(result: FitResult, n_rows: int) -> list[BigLPWarning]:
    """What the user should know about a run that went through."""
    found: list[BigLPWarning] = []
    if result.n_repaired:
        landmarks = result.model.report.get("landmarks", "auto")
        found.append(
            DegreeWarning(
                f"{result.n_repaired:,} of {n_rows:,} rows have a degree of zero or less in the "
                "low-rank graph; it was repaired. Use more landmarks "
                f"(n_landmarks={landmarks} now) or a wider bandwidth to avoid this."
            )
        )
    if result.n_unreached:
        found.append(
            UnreachedRowsWarning(
                f"{result.n_unreached:,} of {n_rows:,} rows are reached by no label and got the "
                "class prior; label rows near them, or use more landmarks or a larger alpha."
            )
        )
    return found
