"""Measured targets that cannot be used are refused."""

import numpy as np
import pytest

from biglp._core.errors import LabelError
from biglp._labels.targets import encode_targets


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0], r"y has 2 rows but X has 3 rows"),
        ([np.nan] * 3, r"none of the 3 rows has a target"),
        ([1.0, np.inf, 2.0], r"infinity, or NaN beside a number, in row 1"),
        ([[1.0, np.nan], [1, 1], [1, 1]], r"NaN beside a number, in row 0"),
        (["a", "b", "c"], r"no numbers .* For classes use LowRankLabelPropagation"),
        ([1j, 0, 1], "Complex data not supported"),
        (np.zeros((3, 1, 1)), r"got shape \(3, 1, 1\)"),
    ],
)
def test_targets_that_cannot_be_used_are_refused(y, message):
    with pytest.raises(LabelError, match=message):
        encode_targets(y, 3)
