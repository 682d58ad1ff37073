"""Leave-one-out is refitting without each label."""

import numpy as np
import pytest

import reference as ref
from biglp._algebra.spreading import LabelledRows, leave_one_out, left_alone
from biglp._algebra.sums import GramSums
from biglp._algebra.systems import Spectrum
from biglp._graph.anchors import NEAREST
from helpers import anchor_graph, soft_problem
from small_graphs import factor_problem, sums_of

ALPHAS = (0.01, 0.5, 0.99)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("signed", [False, True])
def test_leave_one_out_is_refitting_without_each_label(alpha, signed):
    F, normalised, codes = factor_problem(signed=signed)
    known = np.flatnonzero(codes >= 0)
    spectrum = Spectrum.from_sums(sums_of(normalised, codes))
    scores, masses = leave_one_out(spectrum, LabelledRows(normalised[known], codes[known]), alpha)
    expected_scores, expected_masses = ref.leave_one_out(
        ref.normalised_graph(F @ F.T), ref.one_hot(codes), alpha
    )
    np.testing.assert_allclose(scores, expected_scores, atol=1e-10)
    np.testing.assert_allclose(masses, expected_masses, rtol=1e-9)


def test_leave_one_out_of_some_rows_only():
    _, normalised, codes = factor_problem()
    known = np.flatnonzero(codes >= 0)
    spectrum = Spectrum.from_sums(sums_of(normalised, codes))
    every = leave_one_out(spectrum, LabelledRows(normalised[known], codes[known]), 0.9)
    some = leave_one_out(spectrum, LabelledRows(normalised[known[3:6]], codes[known[3:6]]), 0.9)
    for all_rows, some_rows in zip(every, some, strict=True):
        np.testing.assert_allclose(some_rows, all_rows[3:6], rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_leave_one_out_is_refitting_without_each_weighted_distribution(alpha):
    X, _, Y, weights, L = soft_problem(n=60, labelled=15)
    given = weights[:, None] * Y
    Z = ref.anchor_weights(X, L, 1.5, NEAREST)
    features = Z / np.sqrt(Z.sum(axis=0))
    known = np.flatnonzero(given.any(axis=1))
    sums = GramSums(
        features.T @ features,
        features.T @ given,
        features.sum(axis=0),
        given.sum(axis=0),
        len(X),
    )
    labelled = LabelledRows(features[known], Y[known].argmax(axis=1), given[known])
    scores, masses = leave_one_out(Spectrum.from_sums(sums), labelled, alpha)
    expected_scores, expected_masses = ref.leave_one_out(anchor_graph(X, L), given, alpha)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-10)
    np.testing.assert_allclose(masses, expected_masses, rtol=1e-8)


def test_rows_left_alone_are_those_whose_class_has_no_other_label():
    targets = np.array([[0.3, 0.0, 0.0], [0.0, 0.7, 0.1], [0.0, 0.0, 0.2], [0.0, 0.1, 0.0]])
    assert left_alone(targets.sum(axis=0), targets).tolist() == [True, False, False, False]
