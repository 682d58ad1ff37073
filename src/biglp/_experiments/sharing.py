"""One low-rank graph, many sets of labels.

The paper repeats each experiment with several draws of labels. The graph does not depend on them,
so it is built once here: the factor and the degrees are kept, and each set of labels costs a Gram
sweep and a label sweep over features that are remembered. The answers are those of
``estimator.fit(X, y).transduction_`` for each ``y``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from biglp._answers.deciding import make_decision
from biglp._core.checkpoint import Checkpoint
from biglp._core.errors import BigLPWarning
from biglp._engines import make_engine
from biglp._engines.local import blas_threads_for
from biglp._fit.prepare import build_factor, prepare_rows
from biglp._fit.settings import Settings
from biglp._labels.labels import encode_labels
from biglp._lowrank.graph import sweep_degrees, sweep_gram, sweep_labels
from biglp._propagate.normalise import Normalisation
from biglp._sinks import ArraySink
from biglp._sources import as_source
from biglp.estimators.classifier import LowRankLabelPropagation


def transductions(
    estimator: LowRankLabelPropagation, X: np.ndarray, labelings: Sequence[np.ndarray]
) -> Iterator[np.ndarray]:
    """Labels of all rows, for each set of labels in turn.

    Parameters
    ----------
    estimator : LowRankLabelPropagation
        With a fixed α and class balance, as the paper's settings are.
    X : ndarray of shape (n_rows, n_features)
    labelings : sequence of ndarray of shape (n_rows,)
        Labels, -1 where unknown.
    """
    settings = Settings.of(estimator)
    source = as_source(X)
    with make_engine(estimator.engine) as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)  # a narrow graph is the paper's choice
        rows = prepare_rows(source, settings)
        with blas_threads_for(rows.n_landmarks):
            factor = build_factor(engine, rows, settings, Checkpoint())
        sums = None if factor.unit_degrees else sweep_degrees(engine, rows.blocks, factor)
        mixing = None if factor.unit_degrees else factor.mixing
        normalisation = Normalisation(sums, source.n_rows, mixing)
        for y in labelings:
            labels = encode_labels(y, source.n_rows)
            made: dict[str, Any] = {"engine": engine, "rows": rows, "factor": factor}
            gram, mixed = sweep_gram(engine, rows.blocks, factor, normalisation, labels)
            with blas_threads_for(factor.rank):
                decision, _, _ = make_decision(
                    **made,
                    normalisation=normalisation,
                    labels=labels,
                    settings=settings,
                    sums=gram,
                    mixing=mixed,
                )
            sink = ArraySink(labels.classes, source.n_rows, rows.source.dtype)
            sweep_labels(engine, rows.blocks, factor, normalisation, decision, sink, labels)
            yield labels.classes[sink.codes]
