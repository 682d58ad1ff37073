"""Label spreading on r × r numbers against dense n × n algebra: scores, masses, leave-one-out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from biglp._algebra import (
    GramSums,
    LabelledRows,
    iterate,
    leave_one_out,
    share_offsets,
    take_apart,
    without_noise,
)
from biglp._core import StoppedShortWarning
from biglp._graph import Normalisation
from helpers import anchor_graph, shares_of, soft_problem
from small_graphs import factor_problem, scores_of, sums_of

ALPHAS = (0.01, 0.5, 0.99)
OPPOSED = np.array([[1.0, -0.9], [-0.9, 1.0]])
"""A graph: its degrees are 0.1, so ρ(S) = 19."""


class TestClosedForm:
    @pytest.mark.parametrize("alpha", ALPHAS)
    @pytest.mark.parametrize("signed", [False, True])
    def test_it_is_the_dense_solve(self, alpha, signed):
        F, normalised, codes = factor_problem(signed=signed)
        expected = ref.closed_form(ref.normalised_graph(F @ F.T), ref.one_hot(codes), alpha)
        system = take_apart(sums_of(normalised, codes))
        for coefficients in (system.coefficients(alpha), system.solved(alpha)):
            found = scores_of(normalised, codes, coefficients, alpha)
            np.testing.assert_allclose(found, expected, atol=1e-11)

    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_parts_of_the_graph_without_labels_get_exact_zeros(self, alpha):
        # Two parts that no row ties together; the eigenvectors of a shared eigenvalue 1 mix them.
        rng = np.random.default_rng(0)
        F = np.zeros((80, 10))
        F[:40, :5], F[40:, 5:] = rng.random((40, 5)), rng.random((40, 5))
        codes = np.where(np.arange(80) < 10, np.arange(80) % 2, -1)
        normalised, _ = Normalisation(F.sum(axis=0), 80).apply(F)
        coefficients = take_apart(sums_of(normalised, codes)).solved(alpha)
        assert (coefficients[:5] > 0).all()
        assert (coefficients[5:] == 0).all()

    def test_coefficients_far_from_any_label_keep_their_digits(self):
        # A chain of parts, each tied to the next by a weak link: scores fall by 1e-4 at each step.
        link, length, alpha = 1e-4, 30, 0.5
        H = 0.5 * np.eye(length) + link * (np.eye(length, k=1) + np.eye(length, k=-1))
        targets = np.zeros((length, 1))
        targets[0] = 1.0
        sums = GramSums(H, targets, np.ones(length), np.array([1]), 10)
        found = take_apart(sums).solved(alpha)
        step = alpha * link / (1 - 0.5 * alpha)  # the exact ratio, to first order in the link
        np.testing.assert_allclose(found[1:] / found[:-1], step, rtol=1e-6)
        assert found[-1] < 1e-100
        np.testing.assert_array_equal(without_noise(found, sums, alpha), found)

    def test_noise_is_cut_only_where_signs_can_cancel(self):
        H = np.array([[0.5, -0.1], [-0.1, 0.5]])
        signed = GramSums(H, np.eye(2), np.ones(2), np.ones(2), 5)
        coefficients = np.array([[1.0, -1e-9], [1e-17, -2.0]])
        cut = without_noise(coefficients, signed, 0.9)
        np.testing.assert_array_equal(cut, [[1.0, -1e-9], [0.0, -2.0]])

    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_a_spectral_radius_above_one_is_divided_out(self, alpha):
        codes = np.array([0, 1])
        values, vectors = np.linalg.eigh(OPPOSED)
        F = vectors * np.sqrt(values)
        normalised, repaired = Normalisation(F.sum(axis=0), 2).apply(F)
        system = take_apart(sums_of(normalised, codes))
        assert repaired == 0
        assert system.radius == pytest.approx(19.0)
        expected = ref.closed_form(OPPOSED / 0.1 / 19.0, np.eye(2), alpha)
        iterated, _ = iterate(system.sums, alpha, system.radius, tol=1e-13)
        for coefficients in (system.solved(alpha), iterated):
            found = scores_of(normalised, codes, coefficients, alpha)
            np.testing.assert_allclose(found, expected, atol=1e-10)

    def test_a_radius_below_one_is_left_alone(self):
        _, normalised, codes = factor_problem()
        system = take_apart(sums_of(0.5 * normalised, codes))
        assert system.radius == 1.0
        assert system.values.max() == pytest.approx(0.25)


class TestIteration:
    @pytest.mark.parametrize("alpha", ALPHAS)
    def test_in_r_space_it_is_the_iteration_on_rows(self, alpha):
        F, normalised, codes = factor_problem()
        sums = sums_of(normalised, codes)
        coefficients, n_iter = iterate(sums, alpha, take_apart(sums).radius, tol=1e-13)
        expected = ref.iterative(ref.normalised_graph(F @ F.T), ref.one_hot(codes), alpha)
        found = scores_of(normalised, codes, coefficients, alpha)
        np.testing.assert_allclose(found, expected, atol=1e-10)
        assert 1 < n_iter < 10_000

    def test_each_step_is_one_of_the_paper_and_stopping_short_says_what_to_do(self):
        F, normalised, codes = factor_problem()
        sums, Y, alpha = sums_of(normalised, codes), ref.one_hot(codes), 0.7
        S, scores = ref.normalised_graph(F @ F.T), Y
        for steps in range(1, 4):
            # After t steps in r-space, one more step brings F: the paper's iterate number t + 1.
            scores = alpha * S @ scores + (1 - alpha) * Y
            with pytest.warns(StoppedShortWarning) as caught:
                coefficients, n_iter = iterate(sums, alpha, 1.0, max_iter=steps, tol=1e-9)
            assert n_iter == steps
            expected = alpha * S @ scores + (1 - alpha) * Y
            found = scores_of(normalised, codes, coefficients, alpha)
            np.testing.assert_allclose(found, expected, atol=1e-12)
        message = str(caught[0].message)
        for words in ("max_iter=3", "relative change of", "1e-09", "closed_form", "alpha=0.7"):
            assert words in message

    def test_the_tolerance_is_relative(self):
        _, normalised, codes = factor_problem()
        sums = sums_of(normalised, codes)
        large, steps = iterate(sums, 0.9, 1.0)
        small, same_steps = iterate(replace(sums, targets=sums.targets * 1e-12), 0.9, 1.0)
        assert steps == same_steps
        np.testing.assert_allclose(small * 1e12, large, rtol=1e-9)

    def test_labels_without_any_tie_stop_at_once(self):
        sums = GramSums(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.array([1, 1]), 2)
        coefficients, n_iter = iterate(sums, 0.5, 1.0)
        assert n_iter == 1
        assert not coefficients.any()


class TestLeaveOneOut:
    @pytest.mark.parametrize("alpha", ALPHAS)
    @pytest.mark.parametrize("signed", [False, True])
    def test_it_is_refitting_without_each_label(self, alpha, signed):
        F, normalised, codes = factor_problem(signed=signed)
        known = np.flatnonzero(codes >= 0)
        system = take_apart(sums_of(normalised, codes))
        expected = ref.leave_one_out(ref.normalised_graph(F @ F.T), ref.one_hot(codes), alpha)
        for some in (slice(None), slice(3, 6)):
            labelled = LabelledRows(normalised[known[some]], codes[known[some]])
            scores, masses = leave_one_out(system, labelled, alpha)
            np.testing.assert_allclose(scores, expected[0][some], atol=1e-10)
            np.testing.assert_allclose(masses, expected[1][some], rtol=1e-9)

    @pytest.mark.parametrize("alpha", [0.5, 0.99])
    def test_it_is_refitting_without_each_weighted_distribution(self, alpha):
        X, _, Y, weights, L = soft_problem(n=60, labelled=15)
        targets = weights[:, None] * Y
        Z = ref.anchor_weights(X, L, 1.5, 5)
        features = Z / np.sqrt(Z.sum(axis=0))
        known = np.flatnonzero(targets.any(axis=1))
        labelled = LabelledRows(features[known], Y[known].argmax(axis=1), targets[known])
        found = leave_one_out(take_apart(sums_of(features, targets)), labelled, alpha)
        expected = ref.leave_one_out(anchor_graph(X, L), targets, alpha)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-10)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-8)


class TestDegrees:
    """Degrees from column sums, and their repair."""

    @given(seed=st.integers(0, 2**32 - 1), below=st.sampled_from([0.0, 0.5]))
    @settings(max_examples=30, deadline=None)
    def test_repair_is_the_same_rule_in_n_space(self, seed, below):
        rng = np.random.default_rng(seed)
        F = rng.normal(size=(40, 4)) + below  # many negative degrees
        F[rng.integers(40, size=3)] = 0.0
        normalised, repaired = Normalisation(F.sum(axis=0), 40).apply(F)
        degrees, expected = ref.repaired_degrees(F @ F.T)
        assert repaired == expected
        assert np.isfinite(normalised).all()
        np.testing.assert_allclose(normalised, F / np.sqrt(degrees)[:, None], rtol=1e-9, atol=1e-12)

    def test_rows_of_zeros_and_rows_beside_them_are_tied_to_nothing(self):
        for rows in (np.zeros((5, 3)), np.array([[1.0, -2.0, 3.0], [0, 0, 0]])):
            normalised, _ = Normalisation(np.zeros(3), 10).apply(rows)
            assert not normalised.any()

    def test_mixing_afterwards_is_mixing_before(self):
        rng = np.random.default_rng(0)
        P, T = rng.random((30, 5)), rng.normal(size=(5, 4)) + 1.0
        sums = (P @ T).sum(axis=0)
        before, n_before = Normalisation(sums, 30).apply(P @ T)
        after, n_after = Normalisation(sums, 30, mixing=T).apply(P)
        np.testing.assert_allclose(after @ T, before, rtol=1e-12)
        assert n_before == n_after
        codes = np.arange(30) % 3 - 1
        mixed, direct = sums_of(after, codes).mixed(T), sums_of(before, codes)
        for name in ("gram", "targets", "totals", "counts"):
            np.testing.assert_allclose(getattr(mixed, name), getattr(direct, name), atol=1e-12)


class TestClassShares:
    """Thresholds that make the answers as frequent as the labels."""

    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 10_000),
        n=st.integers(50, 400),
        shares=st.lists(st.floats(0.05, 1.0), min_size=2, max_size=5),
    )
    def test_offsets_give_the_shares(self, seed, n, shares):
        shares = np.array(shares) / np.sum(shares)
        scores = np.random.default_rng(seed).normal(size=(n, len(shares)))
        found = (scores - share_offsets(scores, shares)).argmax(axis=1)
        # Two classes are exact up to the row at the threshold.
        slack = 1.5 / n if len(shares) == 2 else 0.02 + 2.0 / n
        np.testing.assert_allclose(shares_of(found, len(shares)), shares, atol=slack)

    def test_rows_that_are_sorted_by_class_are_all_looked_at(self, monkeypatch):
        monkeypatch.setattr("biglp._algebra.balance.MOST_CELLS", 0)  # 1,000 rows at most
        order = np.sort(np.random.default_rng(0).normal(size=5000))
        scores, shares = np.column_stack([-order, order]), np.array([0.3, 0.7])
        found = shares_of((scores - share_offsets(scores, shares)).argmax(axis=1), 2)
        np.testing.assert_allclose(found, shares, atol=0.01)

    def test_a_constant_on_a_class_changes_nothing(self):
        scores = np.random.default_rng(0).normal(size=(300, 3))
        shares, moved = np.array([0.2, 0.3, 0.5]), scores + np.array([0.0, 7.0, -3.0])
        plain, other = share_offsets(scores, shares), share_offsets(moved, shares)
        same = (scores - plain).argmax(axis=1) == (moved - other).argmax(axis=1)
        assert same.mean() > 0.98
