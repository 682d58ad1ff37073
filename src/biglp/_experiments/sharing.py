"""One low-rank graph, many sets of labels.

The paper repeats each experiment with several draws of labels. The graph does not depend on them,
so it is built once here: the factor and the degrees are kept, and each set of labels costs a Gram
sweep and a label sweep over features that are stored. The answers are those of
``estimator.fit(X, y).transduction_`` for each ``y``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from biglp._core.errors import BigLPWarning
from biglp._core.settings import Settings
from biglp._engines import make_engine
from biglp._fit.pipeline import Pipeline
from biglp._labels.labels import encode_labels
from biglp._sinks import ArraySink
from biglp._sources import as_source
from biglp.estimators import LowRankLabelPropagation


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
    source = as_source(X)
    with make_engine(estimator.engine) as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", BigLPWarning)  # a narrow graph is the paper's choice
        pipeline = Pipeline(engine, Settings.of(estimator.get_params(deep=False), sklearn=True))
        graphs = None
        for y in labelings:
            labels = encode_labels(y, source.n_rows)
            sink = ArraySink(labels.classes, source.n_rows, source.dtype)
            if graphs is None:
                graphs = pipeline.graphs(pipeline.prepare(source, labels, sink.cost))
            problem = pipeline.problem(graphs, labels)
            pipeline.answer(problem, pipeline.learn(problem), sink)
            yield sink.labels
