"""Rows drawn at random."""

import numpy as np
import pytest

from biglp._rows.source import row_noise, sample_indices


class TestSampling:
    @pytest.mark.parametrize("size", [1, 10, 99, 100, 500])
    def test_indices_are_distinct_sorted_and_within(self, size):
        indices = sample_indices(100, size, seed=3)
        assert len(indices) == min(size, 100)
        assert (np.diff(indices) > 0).all()
        assert indices.min() >= 0
        assert indices.max() < 100

    def test_every_row_is_as_likely(self):
        drawn = np.concatenate([sample_indices(20, 5, seed) for seed in range(2000)])
        counts = np.bincount(drawn, minlength=20)
        assert abs(counts / 500 - 1).max() < 0.25  # five standard deviations

    @pytest.mark.parametrize("cut", [1, 7, 1000, 1024, 2500])
    def test_noise_belongs_to_rows_and_not_to_blocks(self, cut):
        whole = row_noise(5, 0, 2500, 3)
        parts = [row_noise(5, start, min(start + cut, 2500), 3) for start in range(0, 2500, cut)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        assert 0 <= whole.min() < whole.max() < 1
        assert len(np.unique(whole)) == whole.size
