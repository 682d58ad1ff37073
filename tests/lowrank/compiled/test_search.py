"""The compiled search beside NumPy's, which is the reference."""

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp import _compiled as compiled
from biglp import _compiled as jit
from biglp._core.errors import MissingExtraError, NonFiniteRowsError
from biglp._engines import SerialEngine
from biglp._graph.anchors import AnchorFactor
from biglp._graph.kernels import nearest_landmarks
from biglp._rows import as_source
from helpers import blobs

pytestmark = pytest.mark.skipif(
    jit.vector_lanes() < compiled.FEWEST_LANES, reason="llvmlite or AVX2 is not here"
)

SHAPES = ((1, 7, 5), (5, 3, 16), (61, 9, 63), (200, 33, 64), (103, 2, 300), (397, 130, 1000))


@pytest.fixture
def search():
    return compiled.compiled_search()


@pytest.fixture
def always(monkeypatch):
    """Let a small fit use the search."""
    monkeypatch.setattr(compiled, "WORTHWHILE_PAIRS", 0)


def drawn(n_rows, n_features, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(dtype)


def found_by(search, rows, landmarks, count=5):
    return search.nearest(rows, search.panels(landmarks), count)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize(("n", "m", "k"), SHAPES)
def test_landmarks_are_those_of_numpy(search, n, m, k, count, dtype):
    rows, landmarks = drawn(n, m, dtype), drawn(k, m, dtype, seed=1)
    columns, values = found_by(search, rows, landmarks, count)
    expected, distances = nearest_landmarks(rows, landmarks, count)
    np.testing.assert_allclose(values, distances, atol=100 * m * np.finfo(dtype).eps)
    # Where rounding decides between two landmarks, either is right.
    assert (columns == expected).mean() > 0.99


def test_of_equally_near_landmarks_the_first_is_taken(search):
    landmarks = np.repeat(drawn(40, 3), 4, axis=0)[np.random.default_rng(2).permutation(160)]
    rows = np.round(drawn(500, 3))
    columns, values = found_by(search, rows, np.round(landmarks))
    expected, distances = nearest_landmarks(rows, np.round(landmarks), 5)
    assert np.array_equal(columns, expected)
    assert np.array_equal(values, distances)


def test_a_row_has_the_same_bits_wherever_it_stands(search):
    rows, landmarks = drawn(100, 9), drawn(130, 9, seed=1)
    columns, values = found_by(search, rows, landmarks)
    for start, stop in ((0, 1), (3, 50), (41, 100), (95, 97)):
        some, distances = found_by(search, rows[start:stop], landmarks)
        assert np.array_equal(some, columns[start:stop])
        assert np.array_equal(distances, values[start:stop])


def test_fewer_registers_find_the_same_bits(search, monkeypatch):
    rows, landmarks = drawn(200, 21), drawn(50, 21, seed=1)
    columns, values = found_by(search, rows, landmarks)
    monkeypatch.setattr(search, "N_VECTORS", 1)
    monkeypatch.setattr(search, "MOST_LANDMARKS", 6)
    again, distances = found_by(search, rows, landmarks)
    assert np.array_equal(again, columns)
    assert np.array_equal(distances, values)


def test_few_landmarks_are_searched_by_it_from_fewer_pairs_on():
    pairs = compiled.WORTHWHILE_PAIRS
    assert compiled.is_search_worthwhile(int(pairs / 1000), 100, 1000)
    assert not compiled.is_search_worthwhile(int(pairs / 1000), 100, 20)
    assert compiled.is_search_worthwhile(int(pairs / 200), 100, 20)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_rows_that_are_not_finite_are_found_out(search, bad):
    rows = drawn(50, 4)
    rows[17, 2] = bad
    factor = AnchorFactor(drawn(80, 4, seed=1), 1.0)
    factor.compiled = True
    with pytest.raises(NonFiniteRowsError):
        factor.features(rows)


def fitted(X, y, **parameters):
    parameters = {"n_landmarks": 150, "random_state": 0, **parameters}
    return LowRankLabelPropagation(**parameters).fit(X, y)


def test_fits_have_the_labels_of_numpy(always, monkeypatch):
    X, y, _ = blobs(n=3000)
    found = fitted(X, y)
    assert found.report_["sweeps"] == "compiled"
    again = found.predict_proba(X[:500])
    monkeypatch.setattr(compiled, "WORTHWHILE_PAIRS", np.inf)
    expected = fitted(X, y)
    assert "sweeps" not in expected.report_
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, atol=1e-4)
    unlabelled = np.flatnonzero(y[:500] == -1)
    np.testing.assert_allclose(
        again[unlabelled], found.label_distributions_[:500][unlabelled], atol=1e-4
    )


def features_in(graph, rows):
    """Features of some rows, as any sweep of this graph makes them."""
    found = graph.features_of(rows)
    return found.toarray() if sparse.issparse(found) else found


@pytest.mark.parametrize("factor", ["anchors", "nystrom"])
def test_a_loaded_model_gives_training_rows_the_bits_of_the_fit(
    factor, always, monkeypatch, tmp_path
):
    monkeypatch.setattr(compiled, "WORTHWHILE", 0)
    X, y, _ = blobs(n=3000, features=12, dtype=np.float32)
    found = fitted(X, y, factor=factor)
    assert found.report_["sweeps"] == "compiled"
    found.save(tmp_path / "model.biglp")
    monkeypatch.undo()  # new rows may be as few as they like
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    chosen = np.flatnonzero(y == -1)[:400]
    expected = features_in(found._problem.graph, chosen)
    graph = loaded._graph_of(SerialEngine(), as_source(X[chosen]))
    assert np.array_equal(features_in(graph, np.arange(400)), expected)
    # The sweep that sums the stored features of a Nyström factor normalises them itself.
    np.testing.assert_allclose(
        loaded.predict_proba(X[chosen]),
        found.label_distributions_[chosen],
        rtol=0 if factor == "anchors" else 1e-5,
    )


def test_new_rows_that_the_loops_cannot_read_and_processes_without_them_take_numpy(
    always, monkeypatch
):
    X, y, _ = blobs(n=3000, dtype=np.float32)
    found = fitted(X, y)
    expected = found.predict_proba(X[:100])
    of_sparse = found.predict_proba(sparse.csr_array(X[:100]))
    np.testing.assert_allclose(of_sparse, expected, atol=1e-4)
    monkeypatch.setattr(jit, "vector_lanes", lambda: 0)
    np.testing.assert_allclose(found.predict_proba(X[:100]), expected, atol=1e-4)


def test_any_engine_gives_the_same_bits(always):
    X, y, _ = blobs(n=3000)
    one, two = (fitted(X.astype(np.float32), y, engine=engine) for engine in ("serial", "threads"))
    assert np.array_equal(one.label_distributions_, two.label_distributions_)


def test_a_process_without_the_compiler_says_what_to_install(monkeypatch):
    monkeypatch.setattr(jit, "vector_lanes", lambda: 0)
    with pytest.raises(MissingExtraError, match=r"biglp\[fast\]"):
        compiled.compiled_search()
