"""The small algebra against dense n × n algebra: solvers, rescaling, balance, leave-one-out."""

import numpy as np
import pytest
from biglp._answers.spreading_answer import Decision
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from biglp._core.errors import ParameterError, StoppedShortWarning
from biglp._labels.labels import OwnLabels
from biglp._propagate.class_balance import class_mass, given_prior, power_prior
from biglp._propagate.closed_form import solve, without_noise
from biglp._propagate.iteration import iterate
from biglp._propagate.leave_one_out import LabelledRows, leave_one_out
from biglp._propagate.normalise import Normalisation
from biglp._propagate.sums import GramSums
from biglp._propagate.systems import Spectrum

ALPHAS = (0.01, 0.5, 0.99)
OPPOSED = np.array([[1.0, -0.9], [-0.9, 1.0]])
"""A graph: its degrees are 0.1, so ρ(S) = 19."""


def problem(n=60, rank=8, classes=3, seed=0, signed=False):
    """A random factor F of a graph, its normalised form, and labels on a third of the rows."""
    rng = np.random.default_rng(seed)
    F = rng.random((n, rank)) ** 3 - (0.1 if signed else 0.0)
    codes = np.where(np.arange(n) % 3 == 0, rng.permutation(np.arange(n) % classes), -1)
    normalised, _ = Normalisation(F.sum(axis=0), n).apply(F)
    return F, normalised, codes


def sums_of(normalised, codes):
    Y = ref.one_hot(codes)
    return GramSums(
        normalised.T @ normalised,
        normalised.T @ Y,
        normalised.sum(axis=0),
        Y.sum(axis=0).astype(int),
        len(codes),
    )


def scores_of(normalised, codes, coefficients, alpha):
    return (1 - alpha) * ref.one_hot(codes) + normalised @ coefficients


def factor_of(W):
    values, vectors = np.linalg.eigh(W)
    return vectors * np.sqrt(values)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("signed", [False, True])
def test_closed_form_is_the_dense_solve(alpha, signed):
    F, normalised, codes = problem(signed=signed)
    S = ref.normalised_graph(F @ F.T)
    expected = ref.closed_form(S, ref.one_hot(codes), alpha)
    spectrum = Spectrum.of(sums_of(normalised, codes))
    for coefficients in (
        spectrum.coefficients(alpha),
        solve(spectrum.sums, alpha, spectrum.radius),
    ):
        found = scores_of(normalised, codes, coefficients, alpha)
        np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_parts_of_the_graph_without_labels_get_exact_zeros(alpha):
    # Two parts that no row ties together; the eigenvectors of a shared eigenvalue 1 mix them.
    rng = np.random.default_rng(0)
    F = np.zeros((80, 10))
    F[:40, :5], F[40:, 5:] = rng.random((40, 5)), rng.random((40, 5))
    codes = np.where(np.arange(80) < 10, np.arange(80) % 2, -1)
    normalised, _ = Normalisation(F.sum(axis=0), 80).apply(F)
    spectrum = Spectrum.of(sums_of(normalised, codes))
    coefficients = solve(spectrum.sums, alpha, spectrum.radius)
    assert (coefficients[:5] > 0).all()
    assert (coefficients[5:] == 0).all()


def test_coefficients_far_from_any_label_keep_their_digits():
    # A chain of parts, each tied to the next by a weak link: scores fall by 1e-4 at each step.
    link, length, alpha = 1e-4, 30, 0.5
    H = 0.5 * np.eye(length) + link * (np.eye(length, k=1) + np.eye(length, k=-1))
    targets = np.zeros((length, 1))
    targets[0] = 1.0
    sums = GramSums(H, targets, np.ones(length), np.array([1]), 10)
    found = solve(sums, alpha, 1.0)
    step = alpha * link / (1 - 0.5 * alpha)  # the exact ratio, to first order in the link
    np.testing.assert_allclose(found[1:] / found[:-1], step, rtol=1e-6)
    assert found[-1] < 1e-100
    np.testing.assert_array_equal(without_noise(found, sums, alpha), found)


def test_noise_is_cut_only_where_signs_can_cancel():
    signed = GramSums(np.array([[0.5, -0.1], [-0.1, 0.5]]), np.eye(2), np.ones(2), np.ones(2), 5)
    coefficients = np.array([[1.0, -1e-9], [1e-17, -2.0]])
    cut = without_noise(coefficients, signed, 0.9)
    np.testing.assert_array_equal(cut, [[1.0, -1e-9], [0.0, -2.0]])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_iteration_in_r_space_is_the_iteration_on_rows(alpha):
    F, normalised, codes = problem()
    spectrum = Spectrum.of(sums_of(normalised, codes))
    coefficients, n_iter = iterate(spectrum.sums, alpha, spectrum.radius, tol=1e-13)
    expected = ref.iterative(ref.normalised_graph(F @ F.T), ref.one_hot(codes), alpha)
    np.testing.assert_allclose(
        scores_of(normalised, codes, coefficients, alpha), expected, atol=1e-10
    )
    assert 1 < n_iter < 10_000


def test_each_iteration_is_one_of_the_paper():
    F, normalised, codes = problem()
    spectrum, Y, alpha = Spectrum.of(sums_of(normalised, codes)), ref.one_hot(codes), 0.7
    S = ref.normalised_graph(F @ F.T)
    scores = Y
    for steps in range(1, 4):
        # After t steps in r-space, one more step brings F: the paper's iterate number t + 1.
        scores = alpha * S @ scores + (1 - alpha) * Y
        with pytest.warns(StoppedShortWarning, match=f"max_iter={steps} iterations"):
            coefficients, n_iter = iterate(spectrum.sums, alpha, spectrum.radius, max_iter=steps)
        assert n_iter == steps
        expected = alpha * S @ scores + (1 - alpha) * Y
        np.testing.assert_allclose(
            scores_of(normalised, codes, coefficients, alpha), expected, atol=1e-12
        )


def test_stopping_short_says_how_far_it_came_and_what_to_do():
    _, normalised, codes = problem()
    spectrum = Spectrum.of(sums_of(normalised, codes))
    with pytest.warns(StoppedShortWarning) as caught:
        iterate(spectrum.sums, 0.999, spectrum.radius, max_iter=5, tol=1e-9)
    message = str(caught[0].message)
    for part in ("max_iter=5", "relative change of", "1e-09", "closed_form", "alpha=0.999"):
        assert part in message


def test_tolerance_is_relative():
    _, normalised, codes = problem()
    sums = sums_of(normalised, codes)
    tiny = GramSums(sums.gram, sums.targets * 1e-12, sums.totals, sums.counts, sums.n_rows)
    radius = Spectrum.of(sums).radius
    large, steps = iterate(sums, 0.9, radius)
    small, same_steps = iterate(tiny, 0.9, radius)
    assert steps == same_steps
    np.testing.assert_allclose(small * 1e12, large, rtol=1e-9)


def test_labels_without_any_tie_stop_at_once():
    sums = GramSums(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.array([1, 1]), 2)
    coefficients, n_iter = iterate(sums, 0.5, 1.0)
    assert n_iter == 1
    assert not coefficients.any()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("solver", ["closed form", "iteration"])
def test_a_spectral_radius_above_one_is_divided_out(alpha, solver):
    codes = np.array([0, 1])
    normalised, repaired = Normalisation(factor_of(OPPOSED).sum(axis=0), 2).apply(
        factor_of(OPPOSED)
    )
    spectrum = Spectrum.of(sums_of(normalised, codes))
    assert repaired == 0
    assert spectrum.radius == pytest.approx(19.0)
    if solver == "iteration":
        coefficients, _ = iterate(spectrum.sums, alpha, spectrum.radius, tol=1e-13)
    else:
        coefficients = solve(spectrum.sums, alpha, spectrum.radius)
    S = OPPOSED / 0.1 / 19.0
    expected = ref.closed_form(S, np.eye(2), alpha)
    found = scores_of(normalised, codes, coefficients, alpha)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert np.isfinite(found).all()


def test_a_radius_below_one_is_left_alone():
    _, normalised, codes = problem()
    spectrum = Spectrum.of(sums_of(0.5 * normalised, codes))
    assert spectrum.radius == 1.0
    assert spectrum.values.max() == pytest.approx(0.25)


def test_normalisation_takes_degrees_from_column_sums():
    F, normalised, _ = problem()
    W = F @ F.T
    np.testing.assert_allclose(
        normalised @ normalised.T, W / np.sqrt(np.outer(W.sum(1), W.sum(1))), atol=1e-12
    )


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_repair_is_the_same_rule_in_n_space(seed):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(40, 4)) + 0.5  # many negative degrees
    F[rng.integers(40, size=3)] = 0.0
    normalised, repaired = Normalisation(F.sum(axis=0), 40).apply(F)
    degrees, expected_repaired = ref.repaired_degrees(F @ F.T)
    assert repaired == expected_repaired
    assert np.isfinite(normalised).all()
    np.testing.assert_allclose(normalised, F / np.sqrt(degrees)[:, None], rtol=1e-9, atol=1e-12)


def test_rows_of_zeros_keep_their_zeros():
    normalised, repaired = Normalisation(np.zeros(3), 5).apply(np.zeros((5, 3)))
    assert repaired == 0
    assert not normalised.any()


def test_mixing_afterwards_is_mixing_before():
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


@pytest.mark.parametrize("alpha", ALPHAS)
def test_class_mass_is_the_column_sum_of_scores(alpha):
    F, normalised, codes = problem()
    sums = sums_of(normalised, codes)
    S, Y = ref.normalised_graph(F @ F.T), ref.one_hot(codes)
    coefficients = Spectrum.of(sums).coefficients(alpha)
    found = class_mass(sums.totals, coefficients, sums.counts, alpha)
    np.testing.assert_allclose(found, ref.closed_form(S, Y, alpha).sum(axis=0), rtol=1e-10)


def test_class_mass_is_never_below_that_of_the_labels():
    found = class_mass(np.array([1.0]), np.array([[-5.0, 2.0]]), np.array([3, 4]), 0.9)
    np.testing.assert_allclose(found, [0.3, 2.4])


def test_power_prior():
    counts = np.array([1, 4, 4])
    np.testing.assert_allclose(power_prior(counts, 0.0), [1 / 3] * 3)
    np.testing.assert_allclose(power_prior(counts, 1.0), [1 / 9, 4 / 9, 4 / 9])
    np.testing.assert_allclose(power_prior(counts, 0.5), [0.2, 0.4, 0.4])


def test_given_prior_is_made_to_add_up_to_one():
    np.testing.assert_allclose(given_prior([1, 3], 2), [0.25, 0.75])


@pytest.mark.parametrize(
    "bad", [[1.0], [1, 1, 1], [0, 1], [-1, 2], [np.nan, 1], "ab", None, [[1, 1]]]
)
def test_a_prior_that_does_not_fit_is_refused(bad):
    with pytest.raises(ParameterError, match=r"class_balance=.* 2 positive numbers"):
        given_prior(bad, 2)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("signed", [False, True])
def test_leave_one_out_is_refitting_without_each_label(alpha, signed):
    F, normalised, codes = problem(signed=signed)
    known = np.flatnonzero(codes >= 0)
    spectrum = Spectrum.of(sums_of(normalised, codes))
    scores, masses = leave_one_out(spectrum, LabelledRows(normalised[known], codes[known]), alpha)
    expected_scores, expected_masses = ref.leave_one_out(
        ref.normalised_graph(F @ F.T), ref.one_hot(codes), alpha
    )
    np.testing.assert_allclose(scores, expected_scores, atol=1e-10)
    np.testing.assert_allclose(masses, expected_masses, rtol=1e-9)


def test_leave_one_out_of_some_rows_only():
    _, normalised, codes = problem()
    known = np.flatnonzero(codes >= 0)
    spectrum = Spectrum.of(sums_of(normalised, codes))
    every = leave_one_out(spectrum, LabelledRows(normalised[known], codes[known]), 0.9)
    some = leave_one_out(spectrum, LabelledRows(normalised[known[3:6]], codes[known[3:6]]), 0.9)
    for all_rows, some_rows in zip(every, some, strict=True):
        np.testing.assert_allclose(some_rows, all_rows[3:6], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_add_up_to_one_and_unreached_rows_get_the_prior(dtype):
    prior = np.array([0.2, 0.3, 0.5])
    decision = Decision(np.eye(3), np.array([10.0, 20.0, 30.0]), prior)
    features = np.array([[1, 1, 2], [0, 0, 0], [-1, -2, -3], [-1, 3, 1], [0, 0, 0]], dtype=dtype)
    own = OwnLabels(np.array([4]), np.array([[0.0, 1.0, 0.0]]), np.ones(1))
    found, n_unreached = decision.probabilities(features, own)
    expected = [[0.25, 0.25, 0.5], prior, [2 / 3, 1 / 3, 0], [0, 0.75, 0.25], [0, 1, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert n_unreached == 1
    assert found.dtype == dtype


@pytest.mark.parametrize("size", [1e-38, 1e-42, 1e-30, 1e30])
def test_probabilities_of_tiny_and_huge_scores_are_never_nan(size):
    decision = Decision(np.eye(2), np.ones(2), np.array([0.5, 0.5]))
    found, _ = decision.probabilities(np.array([[size, 3 * size]], dtype=np.float32))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
