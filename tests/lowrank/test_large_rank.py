"""Thousands of landmarks: the sparse solve against the dense one, the search against a sort."""

from functools import partial
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from biglp import LowRankLabelPropagation, LowRankLabelPropagationRegressor
from biglp._core.checkpoint import RunFolder
from biglp._core.errors import ParameterError
from biglp._engines import SerialEngine, ThreadEngine
from biglp._fit.pipeline import fit_model
from biglp._fit.settings import Settings
from biglp._labels.labels import encode_labels
from biglp._lowrank import kernels, landmarks
from biglp._propagate import systems as spectra
from biglp._propagate.closed_form import solve, without_noise
from biglp._propagate.conjugate import conjugate_gradients, energies, solve_in_layers
from biglp._propagate.iteration import iterate
from biglp._propagate.leave_one_out import LabelledRows, leave_one_out
from biglp._propagate.sums import GramSums
from biglp._propagate.systems import SparseSystem, Spectrum, is_sparse_rank, take_apart
from biglp._sinks import ArraySink
from biglp._sources import as_source
from helpers import blobs, blocks_of, model, rows_in_a_block

ALPHAS = (0.01, 0.5, 0.99, 0.999)


def anchor_problem(n=200, k=40, classes=3, seed=0, apart=False):
    """Normalised features of an anchor graph, dense, and labels on a tenth of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if apart:  # two parts that no row ties together
        X[n // 2 :] += 100.0
    L = X[rng.choice(n, k, replace=False)]
    Z = ref.anchor_weights(X, L, 0.3, 3)
    mass = Z.sum(axis=0)
    features = Z * np.where(mass > 0, 1.0, 0.0) / np.sqrt(np.where(mass > 0, mass, 1.0))
    codes = np.where(np.arange(n) % 10 == 0, rng.permutation(n) % classes, -1)
    if apart:
        codes[n // 2 :] = -1
    return features, codes


def sums_of(features, codes):
    Y = ref.one_hot(codes)
    return GramSums(
        sparse.csr_array(features.T @ features),
        features.T @ Y,
        features.sum(axis=0),
        Y.sum(axis=0).astype(int),
        len(codes),
    )


def dense_of(sums):
    return GramSums(sums.gram.toarray(), sums.targets, sums.totals, sums.counts, sums.n_rows)


@pytest.fixture
def sparse_always(monkeypatch):
    """Treat every rank as a large one."""
    monkeypatch.setattr(spectra, "DENSE_RANK", 1)
    monkeypatch.setattr(spectra, "DENSE_WORK", 0)


class TestSolve:
    @pytest.mark.parametrize("alpha", ALPHAS)
    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=15, deadline=None)
    def test_every_digit_of_the_dense_solve(self, alpha, seed):
        features, codes = anchor_problem(seed=seed)
        sums = sums_of(features, codes)
        dense = dense_of(sums)
        system = take_apart(sums)
        expected = solve(dense, alpha, system.radius)
        np.testing.assert_allclose(system.coefficients(alpha), expected, rtol=1e-8, atol=0)
        np.testing.assert_allclose(solve(sums, alpha, system.radius), expected, rtol=1e-8, atol=0)

    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_scores_are_those_of_the_dense_graph(self, alpha):
        features, codes = anchor_problem()
        Y = ref.one_hot(codes)
        found = (1 - alpha) * Y + features @ take_apart(sums_of(features, codes)).coefficients(
            alpha
        )
        expected = ref.closed_form(ref.normalised_graph(features @ features.T), Y, alpha)
        np.testing.assert_allclose(found, expected, atol=1e-10)

    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_parts_without_labels_get_exact_zeros(self, alpha):
        features, codes = anchor_problem(apart=True)
        found = take_apart(sums_of(features, codes)).coefficients(alpha)
        reached = features[:100].any(axis=0)
        assert (found[reached] > 0).any(axis=1).all()
        assert not found[~reached].any()

    def test_numbers_far_from_any_label_keep_their_digits(self):
        link, length, alpha = 1e-4, 30, 0.5
        chain = 0.5 * np.eye(length) + link * (np.eye(length, k=1) + np.eye(length, k=-1))
        targets = np.zeros((length, 2))
        targets[0, 0] = 1.0
        sums = GramSums(sparse.csr_array(chain), targets, np.ones(length), np.array([1, 0]), 10)
        found = solve(sums, alpha, 1.0)
        np.testing.assert_allclose(found[:, 0], solve(dense_of(sums), alpha, 1.0)[:, 0], rtol=1e-10)
        assert 0 < found[-1, 0] < 1e-100
        assert not found[:, 1].any()
        np.testing.assert_array_equal(without_noise(found, sums, alpha), found)

    @pytest.mark.parametrize("scale", [1e-200, 1.0, 1e100])
    def test_the_size_of_the_right_hand_side_does_not_matter(self, scale):
        gram = sums_of(*anchor_problem()).gram
        right = np.random.default_rng(0).random((gram.shape[0], 3))
        right[:, 1] = 0.0
        found = solve_in_layers(gram, 0.9, scale * right) / scale
        np.testing.assert_allclose(found, solve_in_layers(gram, 0.9, right), rtol=1e-9)

    def test_only_free_entries_are_solved_for(self):
        gram = sums_of(*anchor_problem()).gram
        rng = np.random.default_rng(0)
        right, free = rng.random((gram.shape[0], 2)), rng.random((gram.shape[0], 2)) < 0.5
        found, energy = conjugate_gradients(gram, 0.9, right, free)
        for column in range(2):
            part = free[:, column]
            system = np.eye(part.sum()) - 0.9 * gram.toarray()[np.ix_(part, part)]
            expected = np.linalg.solve(system, right[part, column])
            np.testing.assert_allclose(found[part, column], expected, rtol=1e-10)
            assert energy[column] == pytest.approx(expected @ right[part, column], rel=1e-10)
            assert not found[~part, column].any()

    def test_energies(self):
        gram = sums_of(*anchor_problem()).gram
        vectors = np.random.default_rng(0).random((gram.shape[0], 4)) * [1.0, 1e-9, 0.0, 1e9]
        system = np.eye(gram.shape[0]) - 0.99 * gram.toarray()
        expected = np.einsum("ij,ij->j", vectors, np.linalg.solve(system, vectors))
        np.testing.assert_allclose(energies(gram, 0.99, vectors), expected, rtol=1e-9)

    def test_the_iteration_takes_a_sparse_matrix(self):
        sums = sums_of(*anchor_problem())
        found, steps = iterate(sums, 0.9, 1.0)
        expected, same = iterate(dense_of(sums), 0.9, 1.0)
        assert steps == same
        np.testing.assert_allclose(found, expected, rtol=1e-10)


class TestGraph:
    @pytest.mark.parametrize("alpha", ALPHAS)
    @pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
    def test_leave_one_out_is_that_of_the_spectrum(self, alpha, storage):
        features, codes = anchor_problem()
        known = np.flatnonzero(codes >= 0)
        sums = sums_of(features, codes)
        labelled = LabelledRows(storage(features[known]), codes[known])
        found = leave_one_out(SparseSystem.of(sums), labelled, alpha)
        expected = leave_one_out(Spectrum.of(dense_of(sums)), labelled, alpha)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)

    def test_many_labelled_rows_are_solved_for_in_parts(self, monkeypatch):
        features, codes = anchor_problem()
        system = take_apart(sums_of(features, codes))
        at_once = system.returns(features, 0.9)
        monkeypatch.setattr(spectra, "COLUMNS_AT_ONCE", 7)
        np.testing.assert_allclose(system.returns(features, 0.9), at_once, rtol=1e-12)

    @pytest.mark.parametrize("rounding", [0.0, 1e-7, 0.01])
    def test_the_radius_is_a_close_bound(self, rounding):
        features, codes = anchor_problem()
        rng = np.random.default_rng(0)
        features *= 1.0 + rounding * rng.normal(size=(len(features), 1))
        sums = sums_of(features, codes)
        largest = np.linalg.eigvalsh(sums.gram.toarray())[-1]
        assert max(1.0, largest * (1 - 1e-14)) <= SparseSystem.of(sums).radius
        assert SparseSystem.of(sums).radius <= largest + 10 * rounding + 1e-12

    def test_which_ranks_are_sparse(self):
        assert not is_sparse_rank(2000, 5)
        assert is_sparse_rank(2001, 50)
        assert not is_sparse_rank(2001, 5000)
        assert is_sparse_rank(10_000, 1_000_000)


class TestSearch:
    @given(
        seed=st.integers(0, 2**32 - 1),
        b=st.integers(1, 40),
        k=st.integers(1, 60),
        count=st.integers(1, 4),
        kind=st.sampled_from(["random", "clustered", "repeated", "grid"]),
        storage=st.sampled_from([np.asarray, sparse.csr_matrix]),
    )
    @settings(max_examples=100, deadline=None)
    def test_it_is_the_start_of_a_stable_sort(self, seed, b, k, count, kind, storage):
        rng = np.random.default_rng(seed)
        X, L = rng.normal(size=(b, 3)), rng.normal(size=(k, 3))
        if kind == "clustered":
            X, L = X + 50.0 * rng.integers(0, 3, (b, 1)), L + 50.0 * rng.integers(0, 3, (k, 1))
        elif kind == "repeated":
            L = L[rng.integers(0, k, k)]
            X = L[rng.integers(0, k, b)]
        elif kind == "grid":  # whole numbers: ties are exact
            X, L = np.round(X), np.round(L)
        count = min(count, k)
        with mock.patch.object(kernels, "SEARCH_WIDTH", 7):
            columns, distances = kernels.nearest_landmarks(storage(X), L, count)
        squared = ref.squared_distances(X, L)
        found = np.take_along_axis(squared, columns, axis=1)
        np.testing.assert_allclose(found, np.sort(squared, axis=1)[:, :count], atol=1e-9)
        np.testing.assert_allclose(distances + (X**2).sum(axis=1)[:, None], found, atol=1e-9)
        assert all(len(set(row)) == count for row in columns.tolist())
        if kind == "grid":  # of equally near landmarks the first
            expected = np.argsort(squared, axis=1, kind="stable")[:, :count]
            np.testing.assert_array_equal(columns, expected)

    def test_it_holds_no_more_distances_than_it_says(self):
        sizes = []

        def spy(rows, landmarks):
            sizes.append(len(rows) * len(landmarks))
            return relative_distances(rows, landmarks)

        relative_distances = kernels.relative_distances
        rng = np.random.default_rng(0)
        X, L = rng.normal(size=(100, 3)), rng.normal(size=(50, 3))
        with (
            mock.patch.object(kernels, "SEARCH_WIDTH", 10),
            mock.patch.object(kernels, "relative_distances", spy),
        ):
            kernels.nearest_landmarks(X, L, 2)
        assert sum(sizes) == 100 * 50
        assert max(sizes) <= 100 * 10


class TestKmeans:
    @pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
    def test_many_landmarks_are_nearly_as_good_for_less_work(self, storage, monkeypatch):
        X = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
        blocks = blocks_of(storage(X), 500)
        choose = partial(
            landmarks.choose_landmarks,
            blocks=blocks,
            source=blocks[0].source,
            strategy="kmeans",
            k=100,
            seed=0,
        )
        visited = [0, 0]

        def squares(centres):
            return ref.squared_distances(X, centres).min(axis=1).sum()

        class Counting(SerialEngine):
            def sum_blocks(self, func, blocks, label="sum"):
                visited[0] += sum(block.n_rows for block in blocks)
                return super().sum_blocks(func, blocks, label)

        monkeypatch.setattr(landmarks, "FEWEST_ROWS_PER_LANDMARK", len(X))
        usual = squares(choose(Counting()))
        visited = [0, visited[0]]
        monkeypatch.setattr(landmarks, "FEWEST_ROWS_PER_LANDMARK", 2)
        monkeypatch.setattr(landmarks, "FEWEST_ROWS", 0)
        quick = choose(Counting())
        assert squares(quick) < 1.06 * usual
        assert visited[0] < 0.4 * visited[1]
        other = choose(ThreadEngine(3), blocks=blocks_of(storage(X), 500))
        assert other.tobytes() == quick.tobytes()


class TestFit:
    @pytest.mark.parametrize(
        "settings_of_model",
        [
            {"factor": "anchors", "alpha": "auto", "class_balance": "auto"},
            {"factor": "anchors", "solver": "iterative"},
            {"factor": "auto", "alpha": "auto", "class_balance": "auto"},
        ],
    )
    def test_same_answers_as_the_dense_path(self, settings_of_model, monkeypatch):
        X, y, _ = blobs(n=600, classes=3, labelled=60, dtype=np.float64)

        def fitted():
            return model(**settings_of_model, n_landmarks=60).fit(X, y)

        dense = fitted()
        monkeypatch.setattr(spectra, "DENSE_RANK", 1)
        monkeypatch.setattr(spectra, "DENSE_WORK", 0)
        found = fitted()
        np.testing.assert_array_equal(found.transduction_, dense.transduction_)
        np.testing.assert_allclose(
            found.label_distributions_, dense.label_distributions_, atol=1e-6
        )

    @pytest.mark.usefixtures("sparse_always")
    def test_torch_gives_the_same_answers(self):
        pytest.importorskip("torch")
        X, y, _ = blobs(n=600, classes=3, labelled=60, dtype=np.float32)
        found = model(n_landmarks=60, device="torch:cpu").fit(X, y)
        expected = model(n_landmarks=60).fit(X, y)
        np.testing.assert_array_equal(found.transduction_, expected.transduction_)
        np.testing.assert_allclose(
            found.label_distributions_, expected.label_distributions_, atol=1e-4
        )

    @pytest.mark.usefixtures("sparse_always")
    def test_a_resumed_run_finds_the_sparse_sums(self, tmp_path):
        X, y, _ = blobs(n=600, classes=3, labelled=60, dtype=np.float32)
        labels = encode_labels(y, len(y))
        wanted = Settings.of(model(n_landmarks=60))

        def coefficients(*, resume):
            sink = ArraySink(labels.classes, len(y), X.dtype)
            folder = RunFolder(tmp_path, {}, resume=resume)
            found = fit_model(SerialEngine(), as_source(X), labels, wanted, sink, folder)
            folder.close()
            return found.model.decision.coefficients

        first = coefficients(resume=False)
        (tmp_path / "decision.npz").unlink()
        with mock.patch("biglp._fit.pipeline.sweep_gram", side_effect=AssertionError):
            second = coefficients(resume=True)
        assert "gram_columns" in np.load(tmp_path / "gram.npz").files
        assert first.tobytes() == second.tobytes()

    @pytest.mark.usefixtures("sparse_always")
    def test_same_bits_on_any_number_of_threads(self):
        X, y, _ = blobs(n=900, classes=3, labelled=60, dtype=np.float32)

        def answers(engine):
            with rows_in_a_block(50):
                fitted = LowRankLabelPropagation(
                    factor="anchors", n_landmarks=200, engine=engine, random_state=0
                ).fit(X, y)
            return fitted.label_distributions_.tobytes()

        assert answers(SerialEngine()) == answers(ThreadEngine(3))


def test_poisson_with_too_many_landmarks_is_refused():
    rows = np.random.default_rng(0).normal(size=(2600, 3))
    labels = np.where(np.arange(2600) < 20, np.arange(2600) % 2, -1)
    with pytest.raises(ParameterError, match=r"filter='poisson' needs all eigenvectors.*2,500"):
        LowRankLabelPropagation(factor="anchors", n_landmarks=2500, filter="poisson").fit(
            rows, labels
        )


def test_regression_is_the_same_with_a_sparse_gram_matrix():
    rows = np.random.default_rng(0).random((400, 2))
    values = np.where(np.arange(400) < 40, np.sin(5 * rows[:, 0]), np.nan)
    chosen = {"factor": "anchors", "landmarks": "random", "n_landmarks": 120, "alpha": 0.9}
    dense = LowRankLabelPropagationRegressor(**chosen).fit(rows, values)
    with mock.patch.multiple(spectra, DENSE_RANK=100, DENSE_WORK=0):
        sparse_too = LowRankLabelPropagationRegressor(**chosen).fit(rows, values)
    np.testing.assert_allclose(sparse_too.transduction_, dense.transduction_, atol=1e-6)
