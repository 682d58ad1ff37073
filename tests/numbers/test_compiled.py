"""The compiled loops: NumPy's answers, and the same bits on every kind of processor.

Rows of small whole numbers have exact sums, so that there NumPy's bits are the right ones.
"""

import runpy
import warnings
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from biglp._compiled import native
from biglp._core import BigLPWarning, MissingExtraError, NonFiniteRowsError, ParameterError
from biglp._graph import Normalisation
from biglp._graph.kernels import gaussian, nearest_landmarks

WAYS = native.library()[0].ways().decode().split() if native.can_run() else []
needs_loops = pytest.mark.skipif(not WAYS, reason="the loops are not compiled, or no AVX2 is here")
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def choose(monkeypatch):
    """Choose a kind of processor, as the environment does."""

    def chosen(way):
        monkeypatch.setenv("BIGLP_COMPILED", way)
        native.library.cache_clear()

    yield chosen
    monkeypatch.undo()
    native.library.cache_clear()


def drawn(n_rows, n_features, dtype="float32", seed=0, whole=False):
    rows = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    return (np.round(3 * rows) if whole else rows).astype(dtype)


def on_every_way(choose, function):
    """What a function returns with each kind of vectors, which must be the same bits."""
    answers = []
    for way in WAYS:
        choose(way)
        answers.append(function())
    for other in answers[1:]:
        for one, another in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one, another)
    return answers[0]


# --------------------------------------------------------------------------------------------------
# The search


def searched(rows, landmarks, count):
    return native.nearest(rows, native.panels(landmarks), count)


# Rows and landmarks below, at and above the vectors and panels of each kind of processor.
SHAPES = [(0, 3, 4), (1, 1, 1), (1, 7, 5), (5, 3, 16), (15, 2, 6), (16, 4, 7), (33, 5, 12)]
SHAPES += [(61, 9, 63), (200, 33, 64), (103, 2, 300), (397, 130, 1000)]


@needs_loops
@TYPES
@pytest.mark.parametrize("count", [1, 2, 5, 9])
@pytest.mark.parametrize(("n", "m", "k"), SHAPES)
def test_landmarks_are_those_of_numpy(choose, n, m, k, count, dtype):
    count = min(count, k)
    rows, landmarks = drawn(n, m, dtype, whole=True), drawn(k, m, dtype, seed=1, whole=True)
    columns, values = on_every_way(choose, lambda: searched(rows, landmarks, count))
    assert columns.shape == values.shape == (n, count)
    if n:
        expected, distances = nearest_landmarks(rows, landmarks, count)
        np.testing.assert_array_equal(columns, expected)
        np.testing.assert_array_equal(values, distances)


@needs_loops
@TYPES
def test_rounding_moves_distances_by_a_few_units_only(choose, dtype):
    rows, landmarks = drawn(300, 41, dtype), drawn(200, 41, dtype, seed=1)
    columns, values = on_every_way(choose, lambda: searched(rows, landmarks, 5))
    expected, distances = nearest_landmarks(rows, landmarks, 5)
    np.testing.assert_allclose(values, distances, atol=1000 * np.finfo(dtype).eps)
    assert (columns == expected).mean() > 0.99


@needs_loops
@pytest.mark.parametrize("where", [0, 31, 49])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_a_row_that_is_not_finite_is_seen_and_disturbs_no_other(choose, bad, where):
    rows, landmarks = drawn(50, 4), drawn(80, 4, seed=1)
    columns, values = searched(rows, landmarks, 3)
    rows[where, 2] = bad
    found, distances = on_every_way(choose, lambda: searched(rows, landmarks, 3))
    others = np.arange(50) != where
    assert not np.isfinite(distances[where]).all()
    np.testing.assert_array_equal(found[others], columns[others])
    np.testing.assert_array_equal(distances[others], values[others])


@needs_loops
def test_a_row_has_the_same_neighbours_wherever_it_stands():
    rows, landmarks = drawn(100, 9), drawn(130, 9, seed=1)
    columns, values = searched(rows, landmarks, 5)
    for start, stop in ((0, 1), (3, 50), (41, 100), (95, 97)):
        some, distances = searched(rows[start:stop], landmarks, 5)
        np.testing.assert_array_equal(some, columns[start:stop])
        np.testing.assert_array_equal(distances, values[start:stop])


def forms(rows):
    """The same rows, not contiguous, not aligned, and not writeable."""
    bytes_ = np.zeros(rows.nbytes + 1, dtype=np.uint8)
    unaligned = bytes_[1:].view(rows.dtype).reshape(rows.shape)
    unaligned[:] = rows
    wide = np.zeros((len(rows), 2 * rows.shape[1]), rows.dtype)
    wide[:, ::2] = rows
    fixed = rows.copy()
    fixed.flags.writeable = False
    return np.asfortranarray(rows), unaligned, wide[:, ::2], fixed, rows[::-1].copy()[::-1]


@needs_loops
@TYPES
def test_rows_are_read_in_any_form(dtype):
    rows, landmarks = drawn(50, 9, dtype), drawn(20, 9, dtype, seed=1)
    columns, made = searched(rows, landmarks, 5)[0], native.tables(landmarks, 3.0, None)
    features = native.features(rows, made)[0]
    for form in forms(rows):
        np.testing.assert_array_equal(searched(form, landmarks, 5)[0], columns)
        np.testing.assert_array_equal(native.features(form, made)[0], features)


# --------------------------------------------------------------------------------------------------
# Features


@needs_loops
@TYPES
@pytest.mark.parametrize(
    ("n", "m", "k"),
    [(0, 3, 4), (1, 7, 1), (5, 3, 4), (61, 9, 20), (200, 33, 70), (99, 4, 23), (7, 130, 37)],
)
def test_features_are_those_of_numpy(choose, n, m, k, dtype):
    rows, landmarks = drawn(n, m, dtype), drawn(n + k, m, dtype)[n:]
    root, eps = drawn(k, k, dtype), np.finfo(dtype).eps

    def made(root):
        return native.features(rows, native.tables(landmarks, np.sqrt(m), root))

    features, sums = on_every_way(choose, lambda: made(None))
    mixed, _ = on_every_way(choose, lambda: made(root))
    assert features.shape == mixed.shape == (n, k)
    if n:
        expected = gaussian(rows, landmarks, np.sqrt(m))
        np.testing.assert_allclose(features, expected, rtol=50 * eps)
        np.testing.assert_allclose(sums, expected.sum(0, dtype=np.float64), rtol=1e-5)
        np.testing.assert_allclose(mixed, expected @ root, atol=200 * eps)


@needs_loops
@TYPES
def test_exponentials_hold_from_one_to_zero(choose, dtype):
    distances = np.linspace(0, 45 if dtype == np.float32 else 110, 5000)
    rows, landmark = np.sqrt(2 * distances)[:, None].astype(dtype), np.zeros((1, 1), dtype)

    def made(rows):
        return native.features(rows, native.tables(landmark, 1.0, None))

    features, _ = on_every_way(choose, lambda: made(rows))
    expected = np.exp(-(rows[:, 0].astype(np.longdouble) ** 2) / 2)
    # Squaring and halving a row rounds too, by a part of the exponent.
    allowed = 3 * np.finfo(dtype).eps * (1 + distances)
    assert np.all(np.abs(features[:, 0] - expected) <= allowed * expected)
    assert np.all(made(np.full((6, 1), 1e3, dtype))[0] == 0)


@needs_loops
def test_a_row_has_the_same_features_wherever_it_stands():
    rows, made = drawn(50, 9), native.tables(drawn(20, 9, seed=1), 3.0, None)
    features, out = native.features(rows, made)[0], np.empty((50, 20), np.float32)
    assert native.features(rows, made, out)[0] is out
    np.testing.assert_array_equal(out, features)
    for size in (1, 5, 7, 49):
        parts = [native.features(rows[i : i + size], made)[0] for i in range(0, 50, size)]
        np.testing.assert_array_equal(np.concatenate(parts), features)


@needs_loops
@pytest.mark.parametrize("where", [0, 13, 30])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_rows_that_are_not_finite_are_refused(value, where):
    rows = drawn(31, 3)
    rows[where, 1] = value
    with pytest.raises(NonFiniteRowsError):
        native.features(rows, native.tables(drawn(4, 3), 1.0, None))


@needs_loops
@TYPES
@pytest.mark.parametrize(("n", "p", "c"), [(200, 33, 3), (3, 2, 1), (64, 20, 17)])
def test_features_are_multiplied_by_the_loops_and_the_rest_by_numpy(choose, n, p, c, dtype):
    plain, answer = drawn(n, p, dtype, whole=True), drawn(p, c, dtype, whole=True)
    features = plain.view(native.Multiplied)
    product = on_every_way(choose, lambda: (features @ answer,))[0]
    np.testing.assert_array_equal(product, plain @ answer)
    np.testing.assert_array_equal(features @ answer[:, 0], plain @ answer[:, 0])
    np.testing.assert_array_equal(features[:0] @ answer, np.zeros((0, c)))
    for other in (product, features * 2, features.sum(axis=0), np.exp(features)):
        assert type(other) is np.ndarray
    features *= 2
    np.testing.assert_array_equal(np.asarray(features), plain)


# --------------------------------------------------------------------------------------------------
# The Gram matrix


def gram_by_loops(features, by):
    return native.gram(features, by.weights, by.least, by.factors)


@needs_loops
@TYPES
@pytest.mark.parametrize("n", [1, 63, 64, 200])
@pytest.mark.parametrize("p", [1, 4, 15, 16, 17, 100, 256])
def test_gram_is_that_of_numpy_in_any_shape(choose, n, p, dtype):
    around = np.abs(drawn(n + 2, p, dtype)) + dtype(0.1)
    before, normalisation = around.copy(), Normalisation(around[1:-1].sum(0, dtype=np.float64), n)
    expected = normalisation.apply(around[1:-1])[0].astype(np.float64)

    def made():
        around[:] = before
        gram, totals, n_repaired = gram_by_loops(around[1:-1], normalisation)
        assert n_repaired == 0
        return around[1:-1].copy(), gram, totals

    features, gram, totals = on_every_way(choose, made)
    rtol = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(features, expected, rtol=rtol)
    np.testing.assert_allclose(gram, expected.T @ expected, rtol=rtol)
    np.testing.assert_allclose(totals, expected.sum(axis=0), rtol=rtol)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(around[[0, -1]], before[[0, -1]])  # neighbours are not touched


@needs_loops
@pytest.mark.parametrize("mixed", [False, True])
def test_gram_is_that_of_numpy_with_repaired_rows(choose, mixed):
    given = np.abs(drawn(500, 40)) + 0.1
    given[100:110] *= -1  # degrees below zero
    given[200] = 0
    mixing = np.eye(40) * 3 if mixed else None
    sums = given.sum(0, dtype=np.float64)
    normalisation = Normalisation(sums if mixing is None else sums @ mixing, 500, mixing)
    expected, n_repaired = normalisation.apply(given)

    def made():
        features = given.copy()
        return features, *gram_by_loops(features, normalisation)

    features, gram, totals, repaired = on_every_way(choose, made)
    assert n_repaired == repaired == 10
    np.testing.assert_allclose(features, expected, rtol=1e-5)
    exact = expected.astype(np.float64)
    np.testing.assert_allclose(gram, exact.T @ exact, rtol=1e-5)
    np.testing.assert_allclose(totals, exact.sum(0), rtol=1e-4, atol=1e-4)


# --------------------------------------------------------------------------------------------------
# The library


@needs_loops
def test_the_loops_can_be_turned_off_and_chosen(choose):
    for way in WAYS:
        choose(way)
        assert native.library()[1] == way
    choose("off")
    assert not native.can_run()
    with pytest.raises(MissingExtraError, match="begun with compiled loops"):
        native.check_can_run()
    choose("sse")
    with pytest.raises(ParameterError, match=r"BIGLP_COMPILED=sse .* use off, "):
        native.can_run()


def test_a_wheel_without_the_loops_takes_numpy_in_silence(choose, monkeypatch, tmp_path):
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "loops.so")
    choose("")
    assert not native.can_run()


def test_a_library_that_does_not_load_is_told_once(choose, monkeypatch, tmp_path):
    (tmp_path / "loops.so").write_bytes(b"not a library")
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "loops.so")
    choose("")
    with pytest.warns(BigLPWarning, match=r"cannot be loaded .* NumPy does their work"):
        assert not native.can_run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not native.can_run()


def test_a_processor_without_their_vectors_is_told_once(choose, monkeypatch):
    monkeypatch.setattr(native.ctypes, "CDLL", lambda path: Mock(ways=Mock(return_value=b"")))
    monkeypatch.setattr(native, "LIBRARY", native.LIBRARY.parent)  # something that is there
    choose("")
    with pytest.warns(BigLPWarning, match="no AVX2"):
        assert not native.can_run()


def test_without_a_compiler_nothing_stale_is_left(monkeypatch, tmp_path):
    hook = runpy.run_path(str(Path(__file__).parents[2] / "hatch_build.py"))
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "loops.so").write_bytes(b"of an earlier build")
    assert not hook["compile_loops"](tmp_path / "loops.so")
    assert not (tmp_path / "loops.so").exists()
