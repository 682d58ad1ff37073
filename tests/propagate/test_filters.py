"""Spectral filters against dense n × n algebra: the iteration, and label spreading as its limit."""

import numpy as np
import pytest

import reference as ref
from biglp._propagate.filters import Iterated, Spreading, filtered
from biglp._propagate.systems import Spectrum
from small_graphs import anchor_blobs, sums_of

ALPHA = 0.9


@pytest.mark.parametrize("steps", [1, 2, 5, 50])
def test_the_iteration_is_a_filter(steps):
    features, W, Y = anchor_blobs()
    spectrum, S = Spectrum.of(sums_of(features, Y)), ref.normalised_graph(W)
    scores = Y
    for _ in range(steps + 1):  # C after t steps is the paper's iterate number t + 1
        scores = ALPHA * S @ scores + (1 - ALPHA) * Y
    found = (1 - ALPHA) * Y + features @ filtered(spectrum, Iterated(ALPHA, steps))
    np.testing.assert_allclose(found, scores, atol=1e-12)


def test_many_steps_are_label_spreading():
    features, W, Y = anchor_blobs()
    spectrum = Spectrum.of(sums_of(features, Y))
    spread = filtered(spectrum, Spreading(ALPHA))
    np.testing.assert_allclose(filtered(spectrum, Iterated(ALPHA, 1000)), spread, atol=1e-12)
    expected = ref.closed_form(ref.normalised_graph(W), Y, ALPHA)
    np.testing.assert_allclose((1 - ALPHA) * Y + features @ spread, expected, atol=1e-11)
