"""The compiled loops beside NumPy's way, which is the reference."""

import numpy as np
import pytest

from biglp import _compiled as compiled
from biglp import _compiled as jit
from biglp._compiled import Compiled, column_sums
from biglp._core.blocks import cut_rows
from biglp._core.errors import NonFiniteRowsError
from biglp._graph.kernels import gaussian
from biglp._graph.normalise import Normalisation
from biglp._graph.nystrom import NystromFactor
from biglp._graph.stores import MemoryStore
from biglp._rows import as_source

gaussians = pytest.importorskip("biglp._compiled.cpu")
pytestmark = pytest.mark.skipif(not compiled.can_run(), reason="llvmlite or AVX2 is not here")

SHAPES = (
    (1, 7, 1),
    (5, 3, 4),
    (61, 9, 20),
    (200, 33, 70),
    (99, 4, 23),
    (7, 130, 37),
)  # rows, features, landmarks


@pytest.fixture
def blocks():
    return compiled.compiled_blocks()


def rows_of(n_rows, n_features, dtype="float32"):
    return np.random.default_rng(0).normal(size=(n_rows, n_features)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "m", "k"), SHAPES)
def test_features_are_those_of_numpy(blocks, n, m, k, dtype):
    rows, landmarks = rows_of(n, m, dtype), rows_of(n + k, m, dtype)[n:]
    expected = gaussian(rows, landmarks, np.sqrt(m))
    made_from = blocks.tables(landmarks, np.sqrt(m), None)
    found, sums = blocks.features(rows, made_from)
    np.testing.assert_allclose(found, expected, rtol=50 * np.finfo(dtype).eps)
    np.testing.assert_allclose(sums, expected.sum(0, dtype=np.float64), rtol=1e-5)
    root = rows_of(k, k, dtype)
    mixed, _ = blocks.features(rows, blocks.tables(landmarks, np.sqrt(m), root))
    np.testing.assert_allclose(mixed, expected @ root, atol=200 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_hold_from_one_to_zero(blocks, dtype):
    distances = np.linspace(0, 45 if dtype == "float32" else 110, 5000)
    rows, landmark = np.sqrt(2 * distances)[:, None].astype(dtype), np.zeros((1, 1), dtype)
    found, _ = blocks.features(rows, blocks.tables(landmark, 1.0, None))
    expected = np.exp(-(rows[:, 0].astype(np.longdouble) ** 2) / 2)
    # Squaring and halving a row rounds too, by a part of the exponent.
    allowed = 3 * np.finfo(dtype).eps * (1 + distances)
    assert np.all(np.abs(found[:, 0] - expected) <= allowed * expected)
    far, _ = blocks.features(np.full((6, 1), 1e3, dtype), blocks.tables(landmark, 1.0, None))
    assert np.all(far == 0)


def test_a_row_has_the_same_bits_wherever_it_stands(blocks):
    rows, landmarks = rows_of(50, 9), rows_of(20, 9)
    made_from = blocks.tables(landmarks, 3.0, None)
    whole, _ = blocks.features(rows, made_from)
    for size in (1, 5, 7, 49):
        parts = [blocks.features(rows[i : i + size], made_from)[0] for i in range(0, 50, size)]
        assert np.array_equal(np.concatenate(parts), whole)
    strided = np.asfortranarray(rows)
    strided.flags.writeable = False
    assert np.array_equal(blocks.features(strided, made_from)[0], whole)


def test_a_processor_with_short_vectors_finds_the_same_bits(monkeypatch):
    rows, landmarks = rows_of(50, 9), rows_of(23, 9)
    made_from = gaussians.table_of(landmarks, 0.1, 0.1 * (landmarks**2).sum(axis=1))
    expected = gaussians.multiplied(rows, made_from)[0]
    narrow = Compiled(gaussians._GaussianWriter(False, True, most_chunks=1).function)
    monkeypatch.setattr(gaussians, "compiled_product", lambda *_: narrow)
    assert np.array_equal(gaussians.multiplied(rows, made_from)[0], expected)


def test_features_are_multiplied_by_the_loops_and_the_rest_by_numpy(blocks):
    found = rows_of(200, 33)
    features, answer = found.view(blocks.Multiplied), rows_of(33, 3)
    np.testing.assert_allclose(features @ answer, found @ answer, atol=1e-5)
    parts = [features[i : i + 7] @ answer for i in range(0, 200, 7)]
    assert np.array_equal(np.concatenate(parts), features @ answer)
    assert np.array_equal(features @ answer[:, 0], found @ answer[:, 0])
    assert np.array_equal(features[:0] @ answer, np.zeros((0, 3)))
    for plain in (features @ answer, features * 2, features.sum(axis=0), np.exp(features)):
        assert type(plain) is np.ndarray
    features *= 2
    assert np.array_equal(np.asarray(features), found)


def test_rows_that_are_not_finite_are_refused(blocks):
    made_from = blocks.tables(rows_of(4, 3), 1.0, None)
    for value in (np.nan, np.inf, 1e30):
        rows = rows_of(20, 3)
        rows[13, 1] = value
        with pytest.raises(NonFiniteRowsError):
            blocks.features(rows, made_from)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "p"), [(1, 1), (63, 16), (64, 17), (300, 100), (129, 256)])
def test_gram_is_that_of_numpy_in_any_shape(blocks, n, p, dtype):
    around = np.abs(rows_of(n + 2, p, dtype)) + 0.1
    features, before = around[1:-1], around.copy()
    normalisation = Normalisation(column_sums(features.astype(np.float64)), n)
    expected = normalisation.apply(features)[0].astype(np.float64)
    gram, totals, n_repaired = blocks.gram(features, normalisation)
    rtol = 50 * np.finfo(dtype).eps
    assert n_repaired == 0
    np.testing.assert_allclose(features, expected, rtol=rtol)
    np.testing.assert_allclose(gram, expected.T @ expected, rtol=rtol)
    np.testing.assert_allclose(totals, expected.sum(axis=0), rtol=rtol)
    assert np.array_equal(gram, gram.T)
    assert np.array_equal(around[[0, -1]], before[[0, -1]])  # the neighbours are not touched


@pytest.mark.parametrize("mixed", [False, True])
def test_gram_is_that_of_numpy_with_repaired_rows(blocks, mixed):
    features = np.abs(rows_of(500, 40)) + 0.1
    features[100:110] *= -1  # degrees below zero
    features[200] = 0
    mixing = np.eye(40) * 3 if mixed else None
    sums = column_sums(features.astype(np.float64))
    normalisation = Normalisation(sums if mixing is None else sums @ mixing, 500, mixing)
    expected, n_repaired = normalisation.apply(features)
    gram, totals, found = blocks.gram(features, normalisation)
    assert n_repaired == found == 10
    np.testing.assert_allclose(features, expected, rtol=1e-5)
    exact = expected.astype(np.float64)
    np.testing.assert_allclose(gram, exact.T @ exact, rtol=1e-5)
    np.testing.assert_allclose(totals, exact.sum(0), rtol=1e-4, atol=1e-4)


def test_a_factor_keeps_what_the_loops_made():
    rows = rows_of(300, 9)
    factor = NystromFactor(rows[:40], 1.0)
    factor.compiled, factor.store = True, MemoryStore()
    first, second = cut_rows(as_source(rows), 150)
    (sums,) = factor.block_sums(first)
    factor.block_sums(second)
    kept = factor.block_features(first)
    assert kept is first.memory["features"][0]
    np.testing.assert_array_equal(kept, factor.features(rows[:150]))
    np.testing.assert_allclose(sums, kept.sum(0), rtol=1e-5)


def test_few_rows_and_many_landmarks_stay_with_numpy():
    assert compiled.is_worthwhile(10**7, 100, 20)
    assert not compiled.is_worthwhile(10**5, 100, 20)
    assert not compiled.is_worthwhile(10**9, 100, 1000)


def test_the_way_is_kept_for_a_resumed_run_and_for_new_rows(monkeypatch):
    factor = NystromFactor(rows_of(10, 3), 1.0)
    factor.compiled = True
    again = NystromFactor.from_state(factor.state())
    assert again.describe()["sweeps"] == "compiled"
    assert again.for_new_rows().compiled
    monkeypatch.setattr(jit, "vector_lanes", lambda: 0)
    assert again.compiled
    assert not again.for_new_rows().compiled
