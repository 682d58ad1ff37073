"""The sparse solve against the dense one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from biglp._algebra.conjugate import conjugate_gradients, energies, solve_in_layers
from biglp._algebra.spreading import iterate, without_noise
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import take_apart
from small_graphs import anchor_problem, dense_of, solve, sparse_sums_of

MORE_ALPHAS = (0.01, 0.5, 0.99, 0.999)


class TestSparseSolve:
    @pytest.mark.parametrize("alpha", MORE_ALPHAS)
    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=15, deadline=None)
    def test_every_digit_of_the_dense_solve(self, alpha, seed):
        features, codes = anchor_problem(seed=seed)
        sums = sparse_sums_of(features, codes)
        dense = dense_of(sums)
        system = take_apart(sums)
        expected = solve(dense, alpha, system.radius)
        np.testing.assert_allclose(system.coefficients(alpha), expected, rtol=1e-8, atol=0)
        np.testing.assert_allclose(solve(sums, alpha, system.radius), expected, rtol=1e-8, atol=0)

    @pytest.mark.parametrize("alpha", MORE_ALPHAS)
    def test_scores_are_those_of_the_dense_graph(self, alpha):
        features, codes = anchor_problem()
        Y = ref.one_hot(codes)
        found = (1 - alpha) * Y + features @ take_apart(
            sparse_sums_of(features, codes)
        ).coefficients(alpha)
        expected = ref.closed_form(ref.normalised_graph(features @ features.T), Y, alpha)
        np.testing.assert_allclose(found, expected, atol=1e-10)

    @pytest.mark.parametrize("alpha", MORE_ALPHAS)
    def test_parts_without_labels_get_exact_zeros(self, alpha):
        features, codes = anchor_problem(apart=True)
        found = take_apart(sparse_sums_of(features, codes)).coefficients(alpha)
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
        gram = sparse_sums_of(*anchor_problem()).gram
        right = np.random.default_rng(0).random((gram.shape[0], 3))
        right[:, 1] = 0.0
        found = solve_in_layers(gram, 0.9, scale * right) / scale
        np.testing.assert_allclose(found, solve_in_layers(gram, 0.9, right), rtol=1e-9)

    def test_only_free_entries_are_solved_for(self):
        gram = sparse_sums_of(*anchor_problem()).gram
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
        gram = sparse_sums_of(*anchor_problem()).gram
        vectors = np.random.default_rng(0).random((gram.shape[0], 4)) * [1.0, 1e-9, 0.0, 1e9]
        system = np.eye(gram.shape[0]) - 0.99 * gram.toarray()
        expected = np.einsum("ij,ij->j", vectors, np.linalg.solve(system, vectors))
        np.testing.assert_allclose(energies(gram, 0.99, vectors), expected, rtol=1e-9)

    def test_the_iteration_takes_a_sparse_matrix(self):
        sums = sparse_sums_of(*anchor_problem())
        found, steps = iterate(sums, 0.9, 1.0)
        expected, same = iterate(dense_of(sums), 0.9, 1.0)
        assert steps == same
        np.testing.assert_allclose(found, expected, rtol=1e-10)


class TestLongGraphs:
    """Graphs of few ties in which labels are far away."""

    @staticmethod
    def chain(length, link=1e-3):
        ties = sparse.diags_array(np.full(length, 0.5)) + link * (
            sparse.eye_array(length, k=1) + sparse.eye_array(length, k=-1)
        )
        targets = np.zeros((length, 3))
        targets[0, 0], targets[length // 2, 1] = 1.0, 1e-200
        return sparse.csr_array(ties), targets

    def test_elimination_takes_over_and_keeps_all_digits(self, monkeypatch):
        gram, targets = self.chain(40)
        by_steps = []

        def counted(*given):
            by_steps.append(given)
            return conjugate_gradients(*given)

        monkeypatch.setattr("biglp._algebra.conjugate.conjugate_gradients", counted)
        found = solve_in_layers(gram, 0.9, targets)
        assert len(by_steps) == 3
        monkeypatch.setattr("biglp._algebra.conjugate.FEW_TIES", 0)
        expected = solve_in_layers(gram, 0.9, targets)
        assert len(by_steps) > 10
        np.testing.assert_allclose(found[:, :2], expected[:, :2], rtol=1e-8, atol=0)
        assert not found[:, 2].any()

    def test_values_of_both_signs(self):
        gram, targets = self.chain(40)
        targets[7, 0] = -1.0
        above, below = np.maximum(targets, 0.0), np.maximum(-targets, 0.0)
        expected = solve_in_layers(gram, 0.9, above) - solve_in_layers(gram, 0.9, below)
        np.testing.assert_array_equal(solve_in_layers(gram, 0.9, targets), expected)
