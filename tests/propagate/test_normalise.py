"""Degrees from column sums, and their repair, against dense n × n algebra."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from biglp._graph.normalise import Normalisation
from small_graphs import factor_problem, sums_of


def test_normalisation_takes_degrees_from_column_sums():
    F, normalised, _ = factor_problem()
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


def test_new_rows_beside_training_rows_of_zeros_are_tied_to_nothing():
    normalised, _ = Normalisation(np.zeros(3), 10).apply(np.array([[1.0, -2.0, 3.0], [0, 0, 0]]))
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
