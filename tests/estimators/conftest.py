"""What several tests of the estimators need."""

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """scikit-learn's digits, a hundred labels of them, and the truth."""
    X, truth = load_digits(return_X_y=True)
    y = np.full(len(truth), -1)
    rows = np.random.default_rng(0).choice(len(truth), 100, replace=False)
    y[rows] = truth[rows]
    return X.astype(np.float32), y, truth
