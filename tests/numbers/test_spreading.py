"""Label spreading on r × r numbers against dense n × n algebra, by every system that solves it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from biglp._algebra import GramSums, LabelledRows, iterate, leave_one_out, take_apart, without_noise
from biglp._core import StoppedShortWarning
from biglp._graph import Normalisation
from helpers import anchor_graph, soft_problem
from small_graphs import (
    anchor_problem,
    dense_of,
    factor_problem,
    scores_of,
    sparse_sums_of,
    sums_of,
)

OPPOSED = np.array([[1.0, -0.9], [-0.9, 1.0]])


ALPHAS = (0.01, 0.5, 0.99, 0.999)
RANK = 250
"""Landmarks from which on factors are made."""


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


@pytest.fixture(scope="module")
def many():
    features, codes = anchor_problem(n=900, k=RANK, apart=True)
    return features, codes, sparse_sums_of(features, codes)


def system_of(sums, kind):
    if kind == "all":
        system = take_apart(dense_of(sums))
    elif kind == "dense":
        system = take_apart(dense_of(sums), 45, few_alphas=True)
    elif kind == "dense factor of a sparse matrix":
        system = take_apart(sums, 1000)
    elif kind == "sparse":
        system = take_apart(sums)
    else:
        pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')
        system = take_apart(dense_of(sums) if "dense" in kind else sums, 20, "torch:cpu")
    name = {"all": "Spectrum", "sparse": "SparseSystem"}.get(kind, "DenseSystem")
    assert type(system).__name__ == ("GpuSystem" if "GPU" in kind else name)
    return system


@pytest.mark.parametrize(
    "kind", ["all", "dense", "dense factor of a sparse matrix", "sparse", "GPU", "GPU, dense"]
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
            # More than two thirds of the landmarks: a factor is inverted.
            returns = system.returns(storage(features), alpha)
            np.testing.assert_allclose(
                returns, spectrum.returns(features, alpha), rtol=1e-8, atol=1e-12
            )
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


class TestSparse:
    @pytest.mark.parametrize("alpha", ALPHAS)
    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=6, deadline=None)
    def test_every_digit_of_the_dense_solve(self, alpha, seed):
        features, codes = anchor_problem(seed=seed)
        sums = sparse_sums_of(features, codes)
        found, expected = take_apart(sums).solved(alpha), take_apart(dense_of(sums)).solved(alpha)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=0)
        Y = ref.one_hot(codes)
        scores = ref.closed_form(ref.normalised_graph(features @ features.T), Y, alpha)
        np.testing.assert_allclose((1 - alpha) * Y + features @ found, scores, atol=1e-10)
