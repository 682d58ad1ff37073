"""The steps of a fit: each can be taken alone, from a checkpoint, and over any store."""

from dataclasses import replace

import numpy as np
import pytest

import reference as ref
from biglp._core import DegreeWarning, UnreachedRowsWarning, cut_rows
from biglp._engines import SerialEngine, ThreadEngine
from biglp._files import RunFolder
from biglp._fit import prepare as preparing
from biglp._fit.model import Model
from biglp._fit.pipeline import Pipeline
from biglp._fit.prepare import Prepared, choose_store
from biglp._fit.update import relabelled
from biglp._graph.anchors import AnchorFactor
from biglp._graph.features import MemoryStore, NoStore, SpillingStore
from biglp._graph.graph import Graph
from biglp._labels import encode_labels
from biglp._learn.spreading import SpreadingPredictor
from biglp._output import ArraySink
from biglp._rows import as_source
from helpers import (
    Counting,
    blobs,
    landmarks_of,
    model,
    reference_graph,
    rows_in_a_block,
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
    prepared = taken.prepare(source, labels)
    assert isinstance(prepared, Prepared)
    (graph,) = taken.graphs(prepared)
    assert isinstance(graph, Graph)
    stated = taken.problem([graph], labels)
    learnt = taken.learn(stated)
    assert isinstance(learnt.answer, SpreadingPredictor)
    sink = sink_for(labels, X)
    answered = taken.answer(stated, learnt, sink)
    expected = model(factor=factor, landmarks=L).fit(X, y)
    np.testing.assert_array_equal(sink.probabilities, expected.label_distributions_)
    assert answered.n_unreached == expected.report_["unreached_rows"]
    assert sum(answered.counts.values()) == len(X)
    whole = sink_for(labels, X)
    fitted = pipeline(factor=factor, landmarks=L).fit(source, labels, whole)
    np.testing.assert_array_equal(whole.probabilities, sink.probabilities)
    assert fitted.model.report == expected.report_


@pytest.mark.parametrize("factor", ["anchors", "nystrom", "linear"])
def test_sums_and_features_are_those_of_the_dense_graph(factor):
    source, labels, X, y = problem()
    L = landmarks_of(X)
    taken = pipeline(ThreadEngine(2), factor=factor, landmarks=L)
    with rows_in_a_block(33):
        (graph,) = taken.graphs(taken.prepare(source, labels))
        sums = graph.sums(labels)
        features = sums.mix(graph.features_of(np.arange(len(X))))
    features = features.toarray() if hasattr(features, "toarray") else features
    W, Y = reference_graph(factor, X, L), ref.one_hot(y)
    degrees, _ = ref.repaired_degrees(W)
    np.testing.assert_allclose(
        features @ features.T, W / np.sqrt(np.outer(degrees, degrees)), atol=1e-9
    )
    np.testing.assert_allclose(sums.gram, features.T @ features, atol=1e-9)
    np.testing.assert_allclose(sums.targets, features.T @ Y, atol=1e-9)
    np.testing.assert_allclose(sums.totals, features.sum(axis=0), atol=1e-9)
    assert sums.counts.tolist() == Y.sum(axis=0).tolist()


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


class TestWarnings:
    def test_repaired_degrees_and_unreached_rows(self):
        rng = np.random.default_rng(0)
        X = (np.repeat([-2.0, 0.5, 3.0], [6, 20, 150]) + 0.1 * rng.normal(size=176))[:, None]
        y = np.full(176, -1)
        y[[0, 1, 8, 30, 31, 32]] = [0, 0, 0, 1, 1, 1]
        labels = encode_labels(y, 176)
        chosen = {"factor": "nystrom", "bandwidth": 1.0, "landmarks": np.array([[0.0], [1.0]])}
        fitted = pipeline(**chosen).fit(as_source(X), labels, sink_for(labels, X))
        (warning,) = fitted.warnings()
        assert isinstance(warning, DegreeWarning)
        assert "n_landmarks=2 now" in str(warning)

    def test_rows_that_no_label_reaches(self):
        X, y, _ = blobs(n=100)
        X[80:] += 1e4
        y[80:] = -1
        labels = encode_labels(y, 100)
        taken = pipeline(landmarks=np.concatenate([X[:10], X[-5:]]))
        fitted = taken.fit(as_source(X), labels, sink_for(labels, X))
        (warning,) = fitted.warnings()
        assert isinstance(warning, UnreachedRowsWarning)
        assert "20 of 100 rows" in str(warning)


class TestChooseStore:
    def prepared(self, source, labels, memory="1GB", **settings):
        return pipeline(memory=memory, **settings).prepare(source, labels)

    def store(self, factor, prepared):
        (rows,) = prepared.views
        return choose_store(factor, rows.source, prepared.plan)

    def factor(self, X):
        return AnchorFactor(X[:9], 0.8)

    def test_memory_where_features_fit(self):
        source, labels, X, _ = problem()
        prepared = self.prepared(source, labels)
        assert prepared.plan.stores_features
        assert isinstance(self.store(self.factor(X), prepared), MemoryStore)

    def short(self, prepared):
        """The same plan with nothing left for features."""
        plan = replace(prepared.plan, stored=prepared.plan.wanted - 1)
        return replace(prepared, plan=plan)

    def test_nowhere_where_rows_are_as_near(self):
        source, labels, X, _ = problem()
        prepared = self.short(self.prepared(source, labels))
        assert isinstance(self.store(self.factor(X), prepared), NoStore)

    def test_a_file_where_rows_come_from_files_and_features_are_smaller(
        self, tmp_path, monkeypatch
    ):
        _, labels, _, y = problem()
        wide = np.random.default_rng(0).normal(size=(len(y), 400))
        np.save(tmp_path / "rows.npy", wide)
        prepared = self.short(self.prepared(as_source(tmp_path / "rows.npy"), labels))
        factor = AnchorFactor(wide[:9], 0.8)
        assert isinstance(self.store(factor, prepared), SpillingStore)
        monkeypatch.setattr(preparing, "free_space", lambda folder: 0)
        assert isinstance(self.store(factor, prepared), NoStore)

    def test_nothing_on_a_device_or_for_features_that_must_stay(self):
        source, labels, X, _ = problem()
        prepared = self.prepared(source, labels, factor="linear")

        class Fixed(AnchorFactor):
            overwritable = False

        assert isinstance(self.store(Fixed(X[:9], 0.8), prepared), NoStore)
