"""Whole fits with the compiled loops, and with NumPy's way of the same."""

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp import _compiled as compiled
from biglp._compiled import native
from biglp._core import MissingExtraError, NonFiniteRowsError, cut_rows
from biglp._engines import SerialEngine
from biglp._graph import MemoryStore
from biglp._graph.anchors import AnchorFactor
from biglp._graph.nystrom import NystromFactor
from biglp._rows import as_source
from helpers import blobs

pytestmark = pytest.mark.skipif(not native.can_run(), reason="no compiled loops are here")
FACTORS = pytest.mark.parametrize("factor", ["anchors", "nystrom"])


@pytest.fixture
def always(monkeypatch):
    """Let a small fit use the loops."""
    monkeypatch.setattr(compiled, "WORTHWHILE", 0)
    monkeypatch.setattr(compiled, "WORTHWHILE_PAIRS", 0)


def fitted(X, y, factor, **parameters):
    few = {"n_landmarks": 150} if factor == "anchors" else {"n_landmarks": 40, "alpha": 0.9}
    parameters = {"random_state": 0, "factor": factor, **few, **parameters}
    return LowRankLabelPropagation(**parameters).fit(X, y)


@FACTORS
def test_labels_are_those_of_numpy(factor, always, monkeypatch):
    X, y, _ = blobs(n=3000)
    model = fitted(X, y, factor)
    assert model.report_["sweeps"] == "compiled"
    again = model.predict_proba(X[:500])
    monkeypatch.setattr(compiled, "WORTHWHILE", np.inf)
    monkeypatch.setattr(compiled, "WORTHWHILE_PAIRS", np.inf)
    expected = fitted(X, y, factor)
    assert "sweeps" not in expected.report_
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-4)
    unlabelled = np.flatnonzero(y[:500] == -1)
    np.testing.assert_allclose(
        again[unlabelled], model.label_distributions_[:500][unlabelled], atol=1e-4
    )


@FACTORS
def test_any_engine_and_any_vectors_give_the_same_bits(factor, always, monkeypatch):
    X, y, _ = blobs(n=3000, dtype=np.float32)
    expected = fitted(X, y, factor, engine="serial").label_distributions_
    threads = fitted(X, y, factor, engine="threads").label_distributions_
    np.testing.assert_array_equal(threads, expected)
    for way in native.library()[0].ways().decode().split():
        monkeypatch.setenv("BIGLP_COMPILED", way)
        native.library.cache_clear()
        np.testing.assert_array_equal(fitted(X, y, factor).label_distributions_, expected)
    monkeypatch.undo()
    native.library.cache_clear()


@FACTORS
def test_a_loaded_model_gives_training_rows_the_bits_of_the_fit(
    factor, always, monkeypatch, tmp_path
):
    X, y, _ = blobs(n=3000, features=12, dtype=np.float32)
    model = fitted(X, y, factor)
    assert model.report_["sweeps"] == "compiled"
    model.save(tmp_path / "model.biglp")
    monkeypatch.undo()  # new rows may be as few as they like
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    chosen = np.flatnonzero(y == -1)[:400]

    def features_in(graph, rows):
        features = graph.features_of(rows)
        return features.toarray() if sparse.issparse(features) else features

    expected = features_in(model._problem.graph, chosen)
    graph = loaded._graph_of(SerialEngine(), as_source(X[chosen]))
    np.testing.assert_array_equal(features_in(graph, np.arange(400)), expected)
    # The sweep that sums the stored features of a Nyström factor normalises them itself.
    np.testing.assert_allclose(
        loaded.predict_proba(X[chosen]),
        model.label_distributions_[chosen],
        rtol=0 if factor == "anchors" else 1e-5,
    )


def test_new_rows_that_the_loops_cannot_read_and_processes_without_them_take_numpy(
    always, monkeypatch
):
    X, y, _ = blobs(n=3000, dtype=np.float32)
    model = fitted(X, y, "anchors")
    expected = model.predict_proba(X[:100])
    of_sparse = model.predict_proba(sparse.csr_array(X[:100]))
    np.testing.assert_allclose(of_sparse, expected, atol=1e-4)
    monkeypatch.setattr(native, "library", lambda: (None, ""))
    np.testing.assert_allclose(model.predict_proba(X[:100]), expected, atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_rows_that_are_not_finite_are_found_out(bad):
    rows = np.random.default_rng(0).normal(size=(130, 4)).astype(np.float32)
    rows[17, 2] = bad
    factor = AnchorFactor(rows[50:], 1.0)
    factor.compiled = True
    with pytest.raises(NonFiniteRowsError):
        factor.features(rows[:50])


def test_a_factor_keeps_what_the_loops_made():
    rows = np.random.default_rng(0).normal(size=(300, 9)).astype(np.float32)
    factor = NystromFactor(rows[:40], 1.0)
    factor.compiled, factor.store = True, MemoryStore()
    first, second = cut_rows(as_source(rows), 150)
    (sums,) = factor.block_sums(first)
    factor.block_sums(second)
    stored = factor.block_features(first)
    assert stored is first.memory["features"][0]
    np.testing.assert_array_equal(stored, factor.features(rows[:150]))
    np.testing.assert_allclose(sums, stored.sum(0), rtol=1e-5)


def test_the_size_of_the_problem_chooses_the_way():
    assert compiled.is_worthwhile(10**7, 100, 20)
    assert not compiled.is_worthwhile(10**5, 100, 20)
    assert not compiled.is_worthwhile(10**9, 100, 1000)
    pairs = compiled.WORTHWHILE_PAIRS
    assert compiled.is_search_worthwhile(int(pairs / 1000), 100, 1000)
    assert not compiled.is_search_worthwhile(int(pairs / 1000), 100, 20)
    assert compiled.is_search_worthwhile(int(pairs / 200), 100, 20)


def test_the_way_is_kept_for_a_resumed_run_and_for_new_rows(monkeypatch):
    factor = NystromFactor(np.random.default_rng(0).normal(size=(10, 3)), 1.0)
    factor.compiled = True
    again = NystromFactor.from_state(factor.state())
    assert again.describe()["sweeps"] == "compiled"
    assert again.for_new_rows().compiled
    monkeypatch.setattr(native, "library", lambda: (None, ""))
    assert again.compiled
    assert not again.for_new_rows().compiled
    with pytest.raises(MissingExtraError, match="begin the fit anew"):
        again.features(np.zeros((5, 3)))
