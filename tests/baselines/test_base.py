"""What both baselines do with rows and labels that cannot be used."""

import numpy as np
import pytest
from scipy import sparse

from biglp._core.errors import BadRowsError, LabelError
from helpers import blobs
from paper.baselines import DensePropagation, NearestNeighbours


@pytest.mark.parametrize("baseline", [DensePropagation, NearestNeighbours])
def test_bad_rows_and_labels_are_explained(baseline):
    X, y, _ = blobs()
    with pytest.raises(LabelError, match="none of the 200 rows"):
        baseline().fit(X, np.full(200, -1))
    X[3, 1] = np.nan
    for rows in (X, sparse.csr_matrix(X)):
        with pytest.raises(BadRowsError, match=r"in 1 of 200 rows .*rows 3\)"):
            baseline().fit(rows, y)
