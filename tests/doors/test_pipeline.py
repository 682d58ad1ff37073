"""The steps of a fit: each can be taken alone, from a checkpoint, and over any store."""

from dataclasses import replace

import numpy as np
import pytest

from biglp._core import cut_rows
from biglp._engines import SerialEngine
from biglp._files import RunFolder
from biglp._fit import Model, Pipeline, relabelled
from biglp._labels import encode_labels
from biglp._output import ArraySink
from biglp._rows import as_source
from helpers import (
    Counting,
    blobs,
    model,
    settings_of,
)


def pipeline(engine=None, checkpoint=None, **settings):
    more = {} if checkpoint is None else {"checkpoint": checkpoint}
    return Pipeline(engine or SerialEngine(), settings_of(model(**settings)), **more)


def problem():
    X, y, _ = blobs()
    return as_source(X), encode_labels(y, len(y)), X, y


def sink_for(labels, X):
    return ArraySink(labels.classes, len(X), X.dtype)


@pytest.mark.parametrize(
    ("factor", "sweeps"),
    [
        ("anchors", ["Gram", "labels"]),
        ("nystrom", ["degrees", "Gram", "labels"]),
        ("linear", ["degrees", "Gram", "labels"]),
    ],
)
def test_sweeps_over_all_rows(factor, sweeps):
    source, labels, X, _ = problem()
    engine = Counting()
    taken = pipeline(engine, factor=factor, landmarks="random", factor_params=None)
    taken.fit(source, labels, sink_for(labels, X))
    assert [name for name in engine.sweeps if name in ("degrees", "Gram", "labels")] == sweeps


def test_every_step_goes_over_all_views(tmp_path):
    source, labels, X, _ = problem()
    settings = {"factor": "anchors", "n_landmarks": 8}
    folder = RunFolder(tmp_path, {}, resume=False)
    taken = pipeline(checkpoint=folder, **settings)
    prepared = taken.prepare(source, labels)
    (rows,) = prepared.views
    again = replace(rows, view="again", blocks=cut_rows(rows.source, 50))
    first, both = sink_for(labels, X), sink_for(labels, X)
    alone = pipeline(**settings).fit(source, labels, first)
    fitted = taken.fit_prepared(replace(prepared, views=(rows, again)), labels, both)
    folder.close()
    np.testing.assert_array_equal(both.probabilities, first.probabilities)
    steps = {path.name for path in tmp_path.glob("again-*")}
    assert steps == {"again-factor.npz", "again-gram.npz"}
    assert fitted.model.report["views"]["again"]["landmarks"] == alone.model.report["landmarks"]
    one, other = relabelled(fitted.problem, [0], [2]).views
    np.testing.assert_allclose(other.sums.targets, one.sums.targets, atol=1e-12)
    fitted.model.save(tmp_path / "both.biglp")
    loaded = Model.load(tmp_path / "both.biglp")
    assert [view.name for view in loaded.views] == ["rows", "again"]
    one, other = (view.features.of_rows(X).toarray() for view in loaded.views)
    np.testing.assert_allclose(other, one, atol=1e-12)
