"""The compiled loops: NumPy's answers, and the same bits on every kind of processor.

Rows of small whole numbers have exact sums, so that there NumPy's bits are the right ones."""

import pickle
import warnings
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp import LowRankLabelPropagation, _compiled
from biglp._compiled.pairs import Pairs, PairSums
from biglp._core import (
    BigLPWarning,
    MissingExtraError,
    NonFiniteRowsError,
    ParameterError,
    cut_rows,
)
from biglp._graph import FACTORS, MemoryStore, Normalisation, nearest_landmarks
from biglp._rows import as_source
from helpers import blobs

native = _compiled.native


WAYS = native.library()[0].ways().decode().split() if native.can_run() else []


needs_loops = pytest.mark.skipif(not WAYS, reason="the loops are not compiled, or no AVX2 is here")


TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def choose(monkeypatch):
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
    answers = []
    for way in WAYS:
        choose(way)
        answers.append(function())
    for other in answers[1:]:
        for one, another in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one, another)
    return answers[0]


def searched(rows, landmarks, count):
    return native.nearest(rows, native.panels(landmarks), count)


# Rows and landmarks below, at and above the vectors and panels of each kind of processor.
SHAPES = [(0, 3, 4), (1, 1, 1), (1, 7, 5), (5, 3, 16), (15, 2, 6), (16, 4, 7), (33, 5, 12)]


@needs_loops
@TYPES
@pytest.mark.parametrize("count", [1, 5, 9])
@pytest.mark.parametrize(("n", "m", "k"), SHAPES)
def test_landmarks_are_those_of_numpy(choose, n, m, k, count, dtype):
    count = min(count, k)
    rows, landmarks = drawn(n, m, dtype, whole=True), drawn(k, m, dtype, seed=1, whole=True)
    columns, values = on_every_way(choose, lambda: searched(rows, landmarks, count))
    assert columns.shape == values.shape == (n, count)
    if not n:
        return
    expected, distances = nearest_landmarks(rows, landmarks, count)
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(values, distances)
    rows, landmarks = drawn(n, m, dtype), drawn(k, m, dtype, seed=1)  # rounding: a few units
    columns, values = on_every_way(choose, lambda: searched(rows, landmarks, count))
    expected, distances = nearest_landmarks(rows, landmarks, count)
    np.testing.assert_allclose(values, distances, atol=4000 * np.finfo(dtype).eps)
    assert (columns == expected).mean() > 0.99


@needs_loops
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_rows_that_are_not_finite_are_seen_and_disturb_no_other(choose, bad):
    rows, landmarks = drawn(50, 4), drawn(80, 4, seed=1)
    columns, values = searched(rows, landmarks, 3)
    for where in (0, 31, 49):
        some = rows.copy()
        some[where, 2] = bad
        found, distances = on_every_way(choose, lambda some=some: searched(some, landmarks, 3))
        others = np.arange(50) != where
        assert not np.isfinite(distances[where]).all()
        np.testing.assert_array_equal(found[others], columns[others])
        np.testing.assert_array_equal(distances[others], values[others])
        with pytest.raises(NonFiniteRowsError):
            native.features(some, native.tables(landmarks, 1.0, None))


def forms(rows):
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
def test_a_row_has_the_same_numbers_wherever_it_stands_and_in_any_form(dtype):
    rows, landmarks = drawn(100, 9, dtype), drawn(130, 9, dtype, seed=1)
    made = native.tables(landmarks, 3.0, None)
    columns, values = searched(rows, landmarks, 5)
    features, out = native.features(rows, made)[0], np.empty((100, 130), dtype)
    assert native.features(rows, made, out)[0] is out
    np.testing.assert_array_equal(out, features)
    for start, stop in ((0, 1), (3, 50), (41, 100), (95, 97)):
        some, distances = searched(rows[start:stop], landmarks, 5)
        np.testing.assert_array_equal(some, columns[start:stop])
        np.testing.assert_array_equal(distances, values[start:stop])
        part = native.features(rows[start:stop], made)[0]
        np.testing.assert_array_equal(part, features[start:stop])
    for form in forms(rows):
        np.testing.assert_array_equal(searched(form, landmarks, 5)[0], columns)
        np.testing.assert_array_equal(native.features(form, made)[0], features)


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
        expected = ref.gaussian_kernel(rows, landmarks, np.sqrt(m))
        np.testing.assert_allclose(features, expected, rtol=100 * eps)
        np.testing.assert_allclose(sums, expected.sum(0), rtol=1e-5)
        np.testing.assert_allclose(mixed, expected @ root, atol=200 * eps)


def gram_by_loops(features, by):
    return native.gram(features, by.weights, by.least, by.factors)


@needs_loops
@TYPES
@pytest.mark.parametrize("n", [1, 63, 200])
@pytest.mark.parametrize("p", [1, 15, 16, 17, 256])
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


def test_what_cannot_be_loaded_is_told_once_and_left_to_numpy(choose, monkeypatch, tmp_path):
    (tmp_path / "loops.so").write_bytes(b"not a library")
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "none.so")
    choose("")
    assert not native.can_run()  # a wheel without the loops: in silence
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "loops.so")
    choose("")
    with pytest.warns(BigLPWarning, match=r"cannot be loaded .* NumPy does their work"):
        assert not native.can_run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not native.can_run()
    monkeypatch.setattr(native.ctypes, "CDLL", lambda path: Mock(ways=Mock(return_value=b"")))
    choose("")
    with pytest.warns(BigLPWarning, match="no AVX2"):
        assert not native.can_run()


# --------------------------------------------------------------------------------------------------
# Sums of pairs: one result, to the last bit, by C and NumPy, in any order.


def random_pairs(n, s, width, dtype):
    rng = np.random.default_rng(0)
    weights = rng.random((n, s)).astype(dtype) ** 9
    columns = np.argsort(rng.random((n, 64)), axis=1)[:, :s]
    columns += rng.integers(0, width - 63, (n, 1))
    weights /= weights.sum(1)[:, None]
    return Pairs(columns.astype(np.int32), weights, width, n)


@TYPES
@pytest.mark.parametrize(
    ("n", "s", "width"), [(0, 5, 70), (1, 64, 64), (700, 1, 64), (900, 5, 90), (30_000, 5, 9000)]
)
def test_sums_of_pairs_are_the_same_by_any_way_in_any_order(choose, n, s, width, dtype):
    pairs, found = random_pairs(n, s, width, dtype), []
    for number, way in enumerate([*WAYS, "off", "off"]):
        choose(way)
        order = np.random.default_rng(number).permutation(n)
        sums = [PairSums(width, pairs.bits) for _ in range(2)]
        for i, rows in enumerate(np.array_split(order, 7)):
            some = replace(pairs, columns=pairs.columns[rows], weights=pairs.weights[rows])
            sums[i % 2].add(some)
        merged = pickle.loads(pickle.dumps(sums[1]))
        merged.merge(sums[0])
        result = merged.result()
        found.append(result.toarray() if sparse.issparse(result) else result)
        np.testing.assert_array_equal(found[-1], found[0])
    entries = (pairs.weights.ravel().astype(np.float64), pairs.columns.ravel())
    matrix = sparse.csr_array((*entries, np.arange(0, n * s + 1, s)), shape=(n, width))
    np.testing.assert_allclose(found[0], (matrix.T @ matrix).toarray(), atol=1e-11)


@pytest.mark.parametrize("n_rows", [1, 2**20, 2**31, 10**12])
def test_sums_of_pairs_do_not_overflow(choose, n_rows):
    pairs = Pairs(np.zeros((1, 1), np.int32), np.ones((1, 1)), 1, n_rows)
    assert n_rows * 2**pairs.bits < 2**63
    for way in [*WAYS[:1], "off"]:
        choose(way)
        sums = PairSums(1, pairs.bits)
        sums.add(pairs)
        assert int(sums.units[0]) == 2**pairs.bits


# --------------------------------------------------------------------------------------------------
# Whole fits.


BOTH = pytest.mark.parametrize("factor", ["anchors", "nystrom"])


def fitted(X, y, factor, **parameters):
    few = {"n_landmarks": 150} if factor == "anchors" else {"n_landmarks": 40, "alpha": 0.9}
    parameters = {"random_state": 0, "factor": factor, **few, **parameters}
    return LowRankLabelPropagation(**parameters).fit(X, y)


@needs_loops
@BOTH
def test_a_fit_has_the_labels_of_numpy_and_the_same_bits_on_any_engine(factor, choose):
    X, y, _ = blobs(n=3000, dtype=np.float32)
    model = fitted(X, y, factor, engine="serial")
    assert model.report_["sweeps"] == "compiled"
    expected, again = model.label_distributions_, model.predict_proba(X[:500])
    threads = fitted(X, y, factor, engine="threads").label_distributions_
    np.testing.assert_array_equal(threads, expected)
    for way in WAYS:
        choose(way)
        np.testing.assert_array_equal(fitted(X, y, factor).label_distributions_, expected)
    unlabelled = np.flatnonzero(y[:500] == -1)
    np.testing.assert_allclose(again[unlabelled], expected[:500][unlabelled], atol=1e-4)
    choose("off")
    plain = fitted(X, y, factor)
    assert "sweeps" not in plain.report_
    np.testing.assert_allclose(expected, plain.label_distributions_, atol=1e-4)


@needs_loops
def test_a_model_of_few_rows_predicts_with_the_loops():
    X, y, _ = blobs(n=60, dtype=np.float32)
    assert LowRankLabelPropagation(random_state=0).fit(X, y).report_["sweeps"] == "compiled"


@needs_loops
@BOTH
def test_a_loaded_model_gives_training_rows_the_bits_of_the_fit(factor, tmp_path):
    X, y, _ = blobs(n=3000, features=12, dtype=np.float32)
    model = fitted(X, y, factor)
    model.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    chosen = np.flatnonzero(y == -1)[:400]
    # The sweep that sums the stored features of a Nyström factor normalises them itself.
    np.testing.assert_allclose(
        loaded.predict_proba(X[chosen]),
        model.label_distributions_[chosen],
        rtol=0 if factor == "anchors" else 1e-5,
    )


@needs_loops
def test_new_rows_that_the_loops_cannot_read_and_processes_without_them_take_numpy(monkeypatch):
    X, y, _ = blobs(n=3000, dtype=np.float32)
    model = fitted(X, y, "anchors")
    expected = model.predict_proba(X[:100])
    of_sparse = model.predict_proba(sparse.csr_array(X[:100]))
    np.testing.assert_allclose(of_sparse, expected, atol=1e-4)
    monkeypatch.setattr(native, "library", lambda: (None, ""))
    np.testing.assert_allclose(model.predict_proba(X[:100]), expected, atol=1e-4)


@needs_loops
def test_a_factor_keeps_what_the_loops_made_and_the_way_for_a_resumed_run(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(300, 9)).astype(np.float32)
    factor = FACTORS["nystrom"](rows[:40], 1.0)
    factor.compiled, factor.store = True, MemoryStore()
    first, second = cut_rows(as_source(rows), 150)
    (sums,) = factor.block_sums(first)
    factor.block_sums(second)
    stored = factor.block_features(first)
    assert stored is first.memory["features"][0]
    np.testing.assert_array_equal(stored, factor.features(rows[:150]))
    np.testing.assert_allclose(sums, stored.sum(0), rtol=1e-5)
    again = FACTORS["nystrom"].from_state(factor.state())
    assert again.describe()["sweeps"] == "compiled"
    assert again.for_new_rows().compiled
    monkeypatch.setattr(native, "library", lambda: (None, ""))
    assert again.compiled
    assert not again.for_new_rows().compiled
    with pytest.raises(MissingExtraError, match="begin the fit anew"):
        again.features(rows)
