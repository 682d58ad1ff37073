"""The steps of a fit: each can be taken alone, from a checkpoint, and over any store."""

from dataclasses import replace

import numpy as np
import pytest

from biglp._core import DegreeWarning, cut_rows
from biglp._engines import SerialEngine
from biglp._files import RunFolder
from biglp._fit import Model, Pipeline, relabelled
from biglp._labels import encode_labels
from biglp._output import ArraySink
from biglp._rows import as_source
from helpers import (
    Counting,
    blobs,
    landmarks_of,
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


@pytest.mark.parametrize("factor", ["anchors", "nystrom", "linear"])
def test_step_by_step_is_the_estimator(factor):
    source, labels, X, y = problem()
    L = landmarks_of(X)
    taken = pipeline(factor=factor, landmarks=L)
    (graph,) = taken.graphs(taken.prepare(source, labels))
    stated = taken.problem([graph], labels)
    sink = sink_for(labels, X)
    answered = taken.answer(stated, taken.learn(stated), sink)
    expected = model(factor=factor, landmarks=L).fit(X, y)
    np.testing.assert_array_equal(sink.probabilities, expected.label_distributions_)
    assert answered.n_unreached == expected.report_["unreached_rows"]
    assert sum(answered.counts.values()) == len(X)


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


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("factor", ["auto", "anchors", "nystrom", "glnp"])
def test_a_checkpoint_spares_every_step_but_the_last(factor, tmp_path):
    source, labels, X, _ = problem()
    chosen = {"factor": factor, "n_landmarks": 8}

    def answers(engine, *, resume):
        folder = RunFolder(tmp_path, {}, resume=resume)
        folder.forget_blocks()  # a sink in memory has to be filled anew
        sink = sink_for(labels, X)
        pipeline(engine, folder, **chosen).fit(source, labels, sink)
        folder.close()
        return sink.probabilities

    first, engine = answers(SerialEngine(), resume=False), Counting()
    second = answers(engine, resume=True)
    np.testing.assert_array_equal(second, first)
    left = {name.split()[0] for name in engine.sweeps}
    # F of GLNP stays with its blocks, so that it has to be found again.
    assert left >= {"labels"}
    assert ("Gram" in left, "k-means" in left) == (False, factor == "glnp")


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


def test_repaired_degrees_are_told():
    rng = np.random.default_rng(0)
    X = (np.repeat([-2.0, 0.5, 3.0], [6, 20, 150]) + 0.1 * rng.normal(size=176))[:, None]
    y = np.full(176, -1)
    y[[0, 1, 8, 30, 31, 32]] = [0, 0, 0, 1, 1, 1]
    chosen = {"factor": "nystrom", "bandwidth": 1.0, "landmarks": np.array([[0.0], [1.0]])}
    with pytest.warns(DegreeWarning, match="n_landmarks=2 now"):
        model(**chosen).fit(X, y)
