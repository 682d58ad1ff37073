"""Gram matrices of anchor graphs, dense, sparse and on a GPU: the numbers of all eigenvectors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from biglp._algebra import GramSums, LabelledRows, iterate, leave_one_out, take_apart, without_noise
from biglp._algebra.systems import is_factored, is_sparse_rank
from small_graphs import anchor_problem, dense_of, sparse_sums_of

ALPHAS = (0.01, 0.5, 0.99, 0.999)
RANK = 250
"""Landmarks from which on factors are made."""


@pytest.fixture(scope="module")
def many():
    """Features, codes and sparse sums of a graph in two parts, one of them without labels."""
    features, codes = anchor_problem(n=900, k=RANK, apart=True)
    return features, codes, sparse_sums_of(features, codes)


def system_of(sums, kind):
    """What solves with the sums in one of the ways there are."""
    if kind == "dense":
        system = take_apart(dense_of(sums), 45, few_alphas=True)
    elif kind == "dense factor of a sparse matrix":
        system = take_apart(sums, 1000)
    elif kind == "sparse":
        system = take_apart(sums)
    else:
        pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')
        system = take_apart(dense_of(sums) if "dense" in kind else sums, 20, "torch:cpu")
    name = "Sparse" if kind == "sparse" else "Gpu" if "GPU" in kind else "Dense"
    assert type(system).__name__ == f"{name}System"
    return system


@pytest.mark.parametrize(
    "kind", ["dense", "dense factor of a sparse matrix", "sparse", "GPU", "GPU, dense"]
)
class TestEverySystem:
    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_scores_and_leave_one_out_are_those_of_all_eigenvectors(self, kind, alpha, many):
        features, codes, sums = many
        system, spectrum = system_of(sums, kind), take_apart(dense_of(sums))
        np.testing.assert_allclose(
            system.solved(alpha), spectrum.solved(alpha), rtol=1e-8, atol=1e-12
        )
        known = np.flatnonzero(codes >= 0)
        labelled = LabelledRows(features[known], codes[known])
        expected = leave_one_out(spectrum, labelled, alpha)
        for storage in (np.asarray, sparse.csr_array):
            labelled = replace(labelled, features=storage(features[known]))
            for one, other in zip(leave_one_out(system, labelled, alpha), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)

    def test_no_label_leaks_into_other_parts_and_nothing_is_negative(self, kind, many):
        features, _, sums = many
        solved = system_of(sums, kind).solved(0.99)
        reached = features[:450].any(axis=0)
        assert (solved >= 0).all()
        assert (solved[reached] > 0).any(axis=1).all()
        assert not solved[~reached].any()

    def test_many_labelled_rows(self, kind, many):
        """More than two thirds of the landmarks, from which on a factor is inverted."""
        features, _, sums = many
        expected = take_apart(dense_of(sums)).returns(features, 0.9)
        system = system_of(sums, kind)
        for storage in (np.asarray, sparse.csr_array):
            found = system.returns(storage(features), 0.9)
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_which_systems_are_taken(many, monkeypatch):
    sums = many[2]

    def kind(*given, **options):
        return type(take_apart(*given, **options)).__name__

    assert kind(dense_of(sums), RANK) == "DenseSystem"
    assert kind(dense_of(sums), RANK + 1) == "Spectrum"  # for as many α as one likes
    assert kind(dense_of(sums), RANK + 1, few_alphas=True) == "DenseSystem"
    assert kind(sums) == "SparseSystem"
    few = sparse_sums_of(*anchor_problem())
    assert kind(few, 20, "torch:cpu") == "SparseSystem"  # few landmarks stay on the processor
    monkeypatch.setattr("biglp._algebra.systems.MOST_FACTORED", RANK - 1)
    assert kind(sums, RANK + 1, few_alphas=True) == "SparseSystem"
    assert not is_factored(4000, 20, 5, 60 * 4000)
    monkeypatch.undo()
    assert is_factored(4000, 500, 5, 60 * 4000)
    assert is_factored(4000, 20, 200, 60 * 4000)
    assert not is_factored(8000, 1000, 10, 60 * 8000)
    assert [is_sparse_rank(*size) for size in ((2000, 5), (2001, 50), (2001, 5000))] == [0, 1, 0]


class TestSparse:
    @pytest.mark.parametrize("alpha", ALPHAS)
    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=15, deadline=None)
    def test_every_digit_of_the_dense_solve(self, alpha, seed):
        features, codes = anchor_problem(seed=seed)
        sums = sparse_sums_of(features, codes)
        found, expected = take_apart(sums).solved(alpha), take_apart(dense_of(sums)).solved(alpha)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=0)
        Y = ref.one_hot(codes)
        scores = ref.closed_form(ref.normalised_graph(features @ features.T), Y, alpha)
        np.testing.assert_allclose((1 - alpha) * Y + features @ found, scores, atol=1e-10)

    @pytest.mark.parametrize("scale", [1e-200, 1.0, 1e100])
    def test_the_size_of_the_right_hand_side_does_not_matter(self, scale):
        sums = sparse_sums_of(*anchor_problem())
        scaled = replace(sums, targets=scale * sums.targets * [1, 0, 1])
        found = take_apart(scaled).solved(0.9) / scale
        np.testing.assert_allclose(found, take_apart(sums).solved(0.9) * [1, 0, 1], rtol=1e-9)

    def test_labelled_rows_in_parts_and_threads_and_of_any_size(self, monkeypatch):
        features, codes = anchor_problem()
        sums = sparse_sums_of(features, codes)
        at_once = take_apart(sums).returns(features, 0.9)
        monkeypatch.setattr("biglp._algebra.systems.COLUMNS_EACH", 7)
        in_parts = take_apart(sums).returns(features, 0.9)
        np.testing.assert_allclose(in_parts, at_once, rtol=1e-12)
        threads = take_apart(sums, n_threads=3)
        np.testing.assert_array_equal(threads.returns(features, 0.9), in_parts)
        sizes = np.array([1.0, 1e-9, 0.0, 1e9])
        found = threads.returns(features[:4] * sizes[:, None], 0.9)
        np.testing.assert_allclose(found, at_once[:4] * sizes**2, rtol=1e-9)

    @pytest.mark.parametrize("rounding", [0.0, 1e-7, 0.01])
    def test_the_radius_is_a_close_bound(self, rounding):
        features, codes = anchor_problem()
        rng = np.random.default_rng(0)
        features *= 1.0 + rounding * rng.normal(size=(len(features), 1))
        sums = sparse_sums_of(features, codes)
        largest = np.linalg.eigvalsh(sums.gram.toarray())[-1]
        radius = take_apart(sums).radius
        assert max(1.0, largest * (1 - 1e-14)) <= radius <= largest + 10 * rounding + 1e-12

    def test_the_iteration_takes_a_sparse_matrix(self):
        sums = sparse_sums_of(*anchor_problem())
        found, steps = iterate(sums, 0.9, 1.0)
        expected, same = iterate(dense_of(sums), 0.9, 1.0)
        assert steps == same
        np.testing.assert_allclose(found, expected, rtol=1e-10)


class TestLongGraphs:
    """Graphs of few ties in which labels are far away: elimination takes over from steps."""

    @staticmethod
    def chain(length, link):
        ties = sparse.diags_array(np.full(length, 0.5)) + link * (
            sparse.eye_array(length, k=1) + sparse.eye_array(length, k=-1)
        )
        targets = np.zeros((length, 3))
        targets[0, 0], targets[length // 2, 1] = 1.0, 1e-200
        gram = sparse.csr_array(ties)
        return GramSums(gram, targets, np.ones(length), np.array([1, 1, 0]), 10)

    @pytest.mark.parametrize("few_ties", [0, 24])
    def test_numbers_far_from_any_label_keep_their_digits(self, few_ties, monkeypatch):
        monkeypatch.setattr("biglp._algebra.conjugate.FEW_TIES", few_ties)
        for link in (1e-3, 1e-4):
            sums = self.chain(30, link)
            found = take_apart(sums).solved(0.5)
            expected = take_apart(dense_of(sums)).solved(0.5)
            np.testing.assert_allclose(found[:, :2], expected[:, :2], rtol=1e-8, atol=0)
            assert 0 < found[-1, 0] < 1e-80
            assert not found[:, 2].any()
            np.testing.assert_array_equal(without_noise(found, sums, 0.5), found)

    def test_values_of_both_signs(self):
        sums = self.chain(40, 1e-3)
        sums.targets[7, 0] = -1.0
        above, below = (
            take_apart(replace(sums, targets=np.maximum(sign * sums.targets, 0.0))).solved(0.9)
            for sign in (1, -1)
        )
        np.testing.assert_allclose(take_apart(sums).solved(0.9), above - below, rtol=1e-14)
