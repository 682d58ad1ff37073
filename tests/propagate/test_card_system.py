"""A Gram matrix that is factorised where the rows are: torch's CPU stands for a card."""

import numpy as np
import pytest

from biglp._algebra import systems
from biglp._algebra.spreading import LabelledRows, leave_one_out
from biglp._algebra.systems import GpuSystem, SparseSystem, Spectrum, take_apart
from small_graphs import anchor_problem, dense_of, sparse_sums_of

pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 0.9, 0.999])
def test_same_answers_as_all_eigenvectors(alpha, dense, monkeypatch):
    monkeypatch.setattr(systems, "FACTOR_RANK", 10)
    features, codes = anchor_problem()
    sums = sparse_sums_of(features, codes)
    sums = dense_of(sums) if dense else sums
    found = take_apart(sums, 20, "torch:cpu")
    assert isinstance(found, GpuSystem)
    expected = Spectrum.from_sums(dense_of(sparse_sums_of(features, codes)))
    rows = np.flatnonzero(codes >= 0)
    labelled = LabelledRows(features[rows], codes[rows])
    for one, other in zip(
        leave_one_out(found, labelled, alpha), leave_one_out(expected, labelled, alpha), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.solved(alpha), expected.solved(alpha), rtol=1e-8, atol=1e-12)


def test_few_landmarks_stay_on_the_processor(monkeypatch):
    sums = sparse_sums_of(*anchor_problem())
    assert isinstance(take_apart(sums, 20, "torch:cpu"), SparseSystem)
    monkeypatch.setattr(systems, "FACTOR_RANK", 10)
    assert not isinstance(take_apart(sums, 20), GpuSystem)
    assert isinstance(take_apart(sums, 1000, "torch:cpu"), GpuSystem)
